package webchat

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// Attach keeps a file in the memory of the test, under a name that tells whose
// it is.
func (m *memory) Attach(_ context.Context, d claybot.Descriptor, f claybot.FileReference, content io.Reader) (claybot.FileReference, error) {
	b, err := io.ReadAll(content)
	if err != nil {
		return f, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refuse != nil {
		return f, m.refuse
	}
	if m.files == nil {
		m.files = make(map[string][]byte)
		m.named = make(map[string]claybot.FileReference)
	}
	f.ID, f.Size = fmt.Sprintf("file%d", len(m.files)+1), int64(len(b))
	m.files[d.Key()+f.ID], m.named[d.Key()+f.ID] = b, f
	return f, nil
}

func (m *memory) Attached(_ context.Context, d claybot.Descriptor, id string) (claybot.FileReference, io.ReadCloser, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, ok := m.files[d.Key()+id]
	if !ok {
		return claybot.FileReference{}, nil, fmt.Errorf("file: %w", storage.ErrNotFound)
	}
	return m.named[d.Key()+id], io.NopCloser(bytes.NewReader(b)), nil
}

func do(t *testing.T, h http.Handler, method, path, kind, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", kind)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestFiles(t *testing.T) {
	m, _ := start(t)
	h := m.chat.Handler(m, m, func(*http.Request) string { return "ann" })
	w := do(t, h, "POST", "/files?conversation=c&name=page.html", "text/html; charset=utf-8", "<script>alert(1)</script>")
	var kept fileView
	if err := json.Unmarshal(w.Body.Bytes(), &kept); err != nil || w.Code != http.StatusCreated || kept.Name != "page.html" || kept.MIMEType != "text/html" || kept.Size != 25 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if strings.Contains(w.Body.String(), "path") {
		t.Errorf("the answer tells where the file is kept: %s", w.Body)
	}

	w = do(t, h, "GET", "/files/"+kept.ID+"?conversation=c", "", "")
	if w.Code != http.StatusOK || w.Body.String() != "<script>alert(1)</script>" || w.Header().Get("Content-Type") != "application/octet-stream" ||
		w.Header().Get("Content-Disposition") != "attachment; filename=page.html" || w.Header().Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	for _, path := range []string{"/files/" + kept.ID, "/files/nothing?conversation=c"} {
		if w := do(t, h, "GET", path, "", ""); w.Code != http.StatusNotFound {
			t.Errorf("%s: got %d", path, w.Code)
		}
	}

	w = do(t, h, "POST", "/messages", "application/json", `{"id":"1","text":"","files":["`+kept.ID+`"]}`)
	if w.Code != http.StatusBadRequest {
		t.Errorf("a file of another conversation: got %d %s", w.Code, w.Body)
	}
	w = do(t, h, "POST", "/messages?conversation=c", "application/json", `{"id":"1","text":"","files":["`+kept.ID+`"]}`)
	if w.Code != http.StatusAccepted || len(m.posts) != 1 || len(m.posts[0].Files) != 1 || m.posts[0].Files[0].Name != "page.html" {
		t.Errorf("%d %s, posted %+v", w.Code, w.Body, m.posts)
	}
	w = do(t, h, "GET", "/transcript?conversation=c", "", "")
	if !strings.Contains(w.Body.String(), `"files":[{"id":"`+kept.ID+`"`) {
		t.Errorf("the transcript shows no file: %s", w.Body)
	}
	many := strings.Repeat(`"a",`, maxFiles) + `"b"`
	if w := do(t, h, "POST", "/messages", "application/json", `{"text":"x","files":[`+many+`]}`); w.Code != http.StatusBadRequest {
		t.Errorf("too many files: got %d", w.Code)
	}
	m.refuse = fmt.Errorf("save: %w", storage.ErrTooMany)
	if w := do(t, h, "POST", "/files?name=x", "", "x"); w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("too large: got %d", w.Code)
	}
	m.refuse = fmt.Errorf("save: %w", storage.ErrFull)
	if w := do(t, h, "POST", "/files?name=x", "", "x"); w.Code != http.StatusServiceUnavailable {
		t.Errorf("disk full: got %d", w.Code)
	}
}

// A page gets a link to a file that the agent sends, a terminal the words.
func TestSentFilesAreShown(t *testing.T) {
	f := claybot.FileReference{ID: "f1", Name: "report.pdf", MIMEType: "application/pdf", Size: 1234, Path: "agents/a/attachments/f1", Kind: claybot.FileDocument}
	o := claybot.Outgoing{ID: "file/r1/c1", N: 1, Kind: claybot.OutgoingFile, Run: "r1", Text: "*here*", Route: me.Route(), File: &f}

	m, srv := start(t)
	c := open(t, srv.Client(), srv.URL+"/stream", "")
	m.chat.Preview(me.Route(), "r1", 1, "I am")
	c.want(t, "preview", "I am")
	m.mu.Lock()
	m.outbox = append(m.outbox, o)
	m.mu.Unlock()
	if _, err := m.chat.SendFile(t.Context(), o, nil); err != nil {
		t.Fatal(err)
	}
	e := c.want(t, "message", `"file":{"id":"f1","name":"report.pdf","mimeType":"application/pdf","size":1234}`)
	if strings.Contains(e.data, "attachments") {
		t.Errorf("the page is told where the file is kept: %s", e.data)
	}
	m.chat.Preview(me.Route(), "r1", 1, "I am not done") // the file ends nothing
	c.want(t, "preview", "not done")

	terminal := New(Config{Name: "terminal"})
	if got, want := terminal.saidView(o).Text, "*here*\n\n[document report.pdf, 1 kB; in the data directory it is agents/a/attachments/f1]"; got != want {
		t.Errorf("a terminal shows %q, want %q", got, want)
	}
}

package webchat

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/web"
)

// lineOf is the only line of a transcript.
func lineOf(t *testing.T, srv *httptest.Server) asked {
	t.Helper()
	resp, err := srv.Client().Do(as(t, srv, "me", http.MethodGet, "/transcript", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var out struct{ Entries []line }
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil || len(out.Entries) != 1 || out.Entries[0].User == nil {
		t.Fatalf("%+v, %v", out, err)
	}
	return *out.Entries[0].User
}

func as(t *testing.T, srv *httptest.Server, user, method, path, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, srv.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Login", user)
	return r
}

// What a change did is in its answer, in the events of all open windows, and in each later
// transcript.
func TestChangesOfAMessage(t *testing.T) {
	const of = claybot.MessageID("web/main/1")
	for name, tc := range map[string]struct {
		method  string
		skipped map[claybot.MessageID]string
		parked  bool
		want    effect
		status  int
	}{
		"edit in time":        {method: "PATCH", want: effectInTime},
		"late edit":           {method: "PATCH", skipped: map[claybot.MessageID]string{of + "/edit/e1": storage.SkippedLate}, want: effectLate},
		"noted edit":          {method: "PATCH", skipped: map[claybot.MessageID]string{of + "/edit/e1": ""}, want: effectNoted},
		"refused edit":        {method: "PATCH", skipped: map[claybot.MessageID]string{of + "/edit/e1": "secret"}, status: http.StatusUnprocessableEntity},
		"edit while parked":   {method: "PATCH", parked: true, want: effectWaits},
		"deletion in time":    {method: "DELETE", skipped: map[claybot.MessageID]string{of: storage.SkippedDeleted}, want: effectInTime},
		"deletion in the run": {method: "DELETE", want: effectStopped},
		"late deletion":       {method: "DELETE", skipped: map[claybot.MessageID]string{of + "/deleted": storage.SkippedLate}, want: effectLate},
	} {
		t.Run(name, func(t *testing.T) {
			m, srv := startAs(t, web.Operator)
			window := open(t, srv.Client(), srv.URL+"/stream", "")
			if code, v := call(t, srv, "POST", "/messages", `{"id":"1","text":"frist"}`); code != http.StatusAccepted {
				t.Fatal(code, v)
			}
			m.became(tc.skipped)
			m.parked = tc.parked
			if tc.want == effectNoted {
				m.noted = true
			}
			body := ""
			if tc.method == "PATCH" {
				body = `{"id":"e1","text":"first"}`
			}
			code, v := call(t, srv, tc.method, "/messages/1", body)
			if tc.status != 0 {
				if code != tc.status || lineOf(t, srv).Text != "frist" || lineOf(t, srv).Edited != 0 {
					t.Errorf("%d %v, then %+v", code, v, lineOf(t, srv))
				}
				return
			}
			text := map[string]string{"PATCH": "first", "DELETE": ""}[tc.method]
			if code != http.StatusAccepted || v["effect"] != string(tc.want) || v["text"] != text {
				t.Errorf("%d %v, want %q and %q", code, v, tc.want, text)
			}
			window.want(t, "user", fmt.Sprintf(`"text":%q`, text))
			m.parked = false
			if tc.parked {
				return
			}
			if got := lineOf(t, srv); got.Text != text || got.Effect != tc.want || (got.Edited != 0) != (text != "") || (got.Deleted != 0) != (text == "") {
				t.Errorf("the transcript has %+v", got)
			}
			if last := m.posted()[1]; last.Amends != of || last.From.UserID != web.Operator || last.Context.MessageID != "1" {
				t.Errorf("posted %+v", last)
			}
		})
	}
}

// Each request that cannot be carried out says why, and changes nothing.
func TestRefusedChanges(t *testing.T) {
	m, srv := start(t)
	for _, body := range []string{`{"id":"1","text":"first"}`, `{"id":"2","text":"/status"}`, `{"id":"3","text":"third"}`} {
		if code, v := call(t, srv, "POST", "/messages", body); code != http.StatusAccepted {
			t.Fatal(code, v)
		}
	}
	for range 2 { // again, as after a lost answer
		if code, v := call(t, srv, "DELETE", "/messages/3", ""); code != http.StatusAccepted || v["deleted"] == nil {
			t.Error("deletion", code, v)
		}
		if code, v := call(t, srv, "PATCH", "/messages/1", `{"id":"e","text":"second"}`); code != http.StatusAccepted || v["text"] != "second" {
			t.Error("edit", code, v)
		}
	}
	before := len(m.posted())
	if before != 5 {
		t.Errorf("%d messages are stored: repeats count as new ones", before)
	}
	for name, tc := range map[string]struct {
		user, method, path, body string
		status                   int
		code                     string
	}{
		"unknown message":      {"me", "PATCH", "/messages/9", `{"text":"x"}`, 404, "not_found"},
		"other conversation":   {"me", "PATCH", "/messages/1?conversation=b", `{"text":"x"}`, 404, "not_found"},
		"other user":           {"you", "PATCH", "/messages/1", `{"text":"x"}`, 404, "not_found"},
		"deletion by another":  {"you", "DELETE", "/messages/1", "", 404, "not_found"},
		"the owner's own path": {web.Operator, "DELETE", "/messages/1", "", 404, "not_found"},
		"forged path":          {web.Operator, "DELETE", "/messages/..%2Fme%2Fmain%2F1", "", 404, "not_found"},
		"no login":             {"", "DELETE", "/messages/1", "", 401, "login"},
		"a change":             {"me", "DELETE", "/messages/1%2Fedit%2Fe", "", 404, "not_found"},
		"command":              {"me", "PATCH", "/messages/2", `{"text":"x"}`, 409, "not_a_text"},
		"deleted command":      {"me", "DELETE", "/messages/2", "", 409, "not_a_text"},
		"deleted message":      {"me", "PATCH", "/messages/3", `{"text":"x"}`, 404, "not_found"},
		"empty":                {"me", "PATCH", "/messages/1", `{"text":" \n "}`, 400, "bad_request"},
		"no text":              {"me", "PATCH", "/messages/1", `{}`, 400, "bad_request"},
		"unknown field":        {"me", "PATCH", "/messages/1", `{"text":"x","files":[]}`, 400, "bad_request"},
		"bad id":               {"me", "PATCH", "/messages/1", `{"id":"a/b","text":"x"}`, 400, "bad_request"},
		"too long":             {"me", "PATCH", "/messages/1", `{"text":"` + strings.Repeat("x", textLimit+1) + `"}`, 400, "bad_request"},
		"more than 1 MiB":      {"me", "PATCH", "/messages/1", `{"text":"` + strings.Repeat("x", bodyLimit) + `"}`, 413, "too_large"},
	} {
		resp, err := srv.Client().Do(as(t, srv, tc.user, tc.method, tc.path, tc.body))
		if err != nil {
			t.Fatal(err)
		}
		var out struct {
			Error struct{ Code, Message string }
		}
		err = json.NewDecoder(resp.Body).Decode(&out)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != tc.status || out.Error.Code != tc.code || out.Error.Message == "" {
			t.Errorf("%s: %d %+v, %v", name, resp.StatusCode, out, err)
		}
	}
	if got := len(m.posted()); got != before {
		t.Errorf("%d messages are stored, want %d", got, before)
	}
	m.mu.Lock()
	m.refuse = errors.New("the disk is slow")
	m.mu.Unlock()
	if code, v := call(t, srv, "PATCH", "/messages/1", `{"text":"third"}`); code != http.StatusServiceUnavailable {
		t.Error("an edit that was not stored is acknowledged", code, v)
	}
}

// A change that overtakes its message on the way waits until that is stored.
func TestChangeWaitsForItsMessage(t *testing.T) {
	m, srv := start(t)
	m.hold, m.entered = make(chan struct{}), make(chan struct{}, 2)
	sent := make(chan int, 2)
	go func() { code, _ := call(t, srv, "POST", "/messages", `{"id":"1","text":"frist"}`); sent <- code }()
	<-m.entered
	go func() { code, _ := call(t, srv, "PATCH", "/messages/1", `{"text":"first"}`); sent <- code }()
	close(m.hold)
	for range 2 {
		if code := <-sent; code != http.StatusAccepted {
			t.Error(code)
		}
	}
}

// The newest of several edits is shown, and after a deletion nothing; a change of what is
// before the transcript is not a line of its own.
func TestChangesInATranscript(t *testing.T) {
	m, srv := start(t)
	at := claybot.At(time.Now())
	change := func(id string, typ claybot.MessageType, text string) claybot.AgentMessage {
		return claybot.AgentMessage{ID: claybot.MessageID("a" + id), Type: typ, Amends: "a", Text: text, At: at}
	}
	message := claybot.AgentMessage{ID: "a", Type: claybot.MessageUser, Text: "one", At: at, Files: []claybot.FileReference{{ID: "f"}}}
	e1, e2, note, gone := change("/edit/1", claybot.MessageEdit, "two"), change("/edit/2", claybot.MessageEdit, "three"), change("/edit/3", claybot.MessageSystem, texts.Edited("four")), change("/deleted", claybot.MessageDelete, "")
	elsewhere := e1
	elsewhere.Amends = "before"
	entry := func(m claybot.AgentMessage, skipped string) storage.Entry {
		return storage.Entry{Message: &m, Skipped: skipped}
	}
	for name, tc := range map[string]struct {
		changes []storage.Entry
		text    string
		effect  effect
	}{
		"none":                {nil, "one", ""},
		"two":                 {[]storage.Entry{entry(e1, storage.SkippedEdit), entry(e2, storage.SkippedLate)}, "three", effectLate},
		"noted":               {[]storage.Entry{entry(e1, storage.SkippedLate), entry(note, "")}, "four", effectNoted},
		"note withdrawn":      {[]storage.Entry{entry(note, storage.SkippedEdit)}, "four", effectLate},
		"note deleted":        {[]storage.Entry{entry(note, storage.SkippedDeleted), entry(gone, storage.SkippedLate)}, "", effectLate},
		"deleted":             {[]storage.Entry{entry(e1, storage.SkippedEdit), entry(gone, storage.SkippedLate), entry(e2, storage.SkippedLate)}, "", effectLate},
		"refused":             {[]storage.Entry{entry(e1, "secret")}, "one", ""},
		"of a message before": {[]storage.Entry{entry(elsewhere, storage.SkippedEdit)}, "one", ""},
	} {
		m.mu.Lock()
		m.fixed = append([]storage.Entry{entry(message, "")}, tc.changes...)
		m.mu.Unlock()
		got := lineOf(t, srv)
		if got.Text != tc.text || got.Effect != tc.effect || (got.Deleted != 0) != (tc.text == "") || (len(got.Files) == 0) != (tc.text == "") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A change that another member has stored is shown in open windows, as it is stored; what
// is not stored is not, and others see nothing of it.
func TestChangedElsewhere(t *testing.T) {
	m, srv := start(t)
	window := open(t, srv.Client(), srv.URL+"/stream", "")
	me := claybot.User("web", "main", "me")
	post := func(x claybot.AgentMessage) {
		x.From.UserID, x.At = "me", claybot.Now()
		if err := m.Post(t.Context(), me, x); err != nil {
			t.Fatal(err)
		}
	}
	post(claybot.AgentMessage{ID: "web/main/1", Type: claybot.MessageUser, Text: "frist", Context: claybot.MessageContext{MessageID: "1"}})
	edit := claybot.AgentMessage{ID: "web/main/1/edit/e", Type: claybot.MessageEdit, Amends: "web/main/1", Text: "first"}
	unknown := edit
	unknown.ID, unknown.Amends = "web/main/9/edit/e", "web/main/9"
	m.chat.Changed(me, unknown)
	post(edit)
	m.chat.Changed(me, edit)
	window.want(t, "user", `"text":"first"`)
	gone := claybot.AgentMessage{ID: "web/main/1/deleted", Type: claybot.MessageDelete, Amends: "web/main/1"}
	post(gone)
	m.chat.Changed(claybot.User("web", "main", "you"), gone) // not theirs
	m.chat.Changed(me, gone)
	window.want(t, "user", `"deleted":`)
}

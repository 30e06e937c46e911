package llm

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/claybot/claybot"
)

// pdf is about what a PDF of n pages looks like; packed, its objects are in a compressed stream.
func pdf(n int, packed bool) []byte {
	objects := "<< /Type /Pages /Count 1 >>\n" + strings.Repeat("<< /Type /Page /Parent 1 0 R >>\n", n)
	if packed {
		var z bytes.Buffer
		w := zlib.NewWriter(&z)
		_, _ = w.Write([]byte(objects)) // a buffer takes everything
		_ = w.Close()
		objects = fmt.Sprintf("5 0 obj\n<< /Type /ObjStm /Length %d /Filter /FlateDecode >>\nstream\r\n%s\nendstream\nendobj\n", z.Len(), z.String())
	}
	return []byte("%PDF-1.5\n" + objects + "%%EOF\n")
}

// listing is a PDF of one page with some more objects.
func listing(objects ...string) []byte {
	return append(pdf(1, false), "<< "+strings.Join(objects, " >> endobj << ")+" >> endobj"...)
}

func TestReadable(t *testing.T) {
	for name, tt := range map[string]struct {
		data  []byte
		pages int // 0: it cannot be read
	}{
		"one page":                {pdf(1, false), 1},
		"packed":                  {pdf(7, true), 7},
		"the most":                {pdf(MaxPages, true), MaxPages},
		"too many pages":          {pdf(MaxPages+1, true), 0},
		"one object many times":   {listing("/Type /Pages /Kids [" + strings.Repeat("2 0 R ", 100) + "] /Count 100"), 100},
		"more than its objects":   {listing("/Count 101 /Type/Pages"), 0},
		"the highest count":       {listing("/Type /Pages /Count 7 /Resources << /Font << /F1 <ab> >> >>", "/Type /Pages /Count 3"), 7},
		"a count of bookmarks":    {listing("/Type /Outlines /Count 500", "/Type /Pages /D << /Count 900 >>"), 1},
		"a count somewhere else":  {listing("/Type /Pages /Count 500 0 R"), 1},
		"brackets that stay open": {append([]byte("%PDF-1.7 >>>> "+strings.Repeat("<< ", 1000)), listing("/Type /Pages /Count 9")...), 9},
		"no page found":           {append([]byte("%PDF-1.7 "), make([]byte, 2*guessedPage)...), 3},
		"a broken stream":         {[]byte("%PDF-1.7 /ObjStm stream\nno zlib endstream"), 1},
		"no end":                  {[]byte("%PDF-1.7 /ObjStm"), 1},
		"encrypted":               {append(pdf(1, false), "trailer << /Encrypt 4 0 R >>"...), 0},
		"another type":            {[]byte("PK\x03\x04"), 0},
		"empty":                   {nil, 0},
		"too large":               {append(pdf(1, false), make([]byte, MaxDocument)...), 0},
	} {
		d, err := Readable(tt.data)
		if d.Pages != tt.pages || (tt.pages == 0) != errors.Is(err, ErrNoDocument) || tt.pages > 0 && !bytes.Equal(d.Data, tt.data) {
			t.Errorf("%s: %d pages, %v", name, d.Pages, err)
		}
	}
}

func TestDocumentNames(t *testing.T) {
	for name, want := range map[string]string{"": "document.pdf", "a.pdf": "a.pdf", "scan": "scan.pdf", strings.Repeat("ü", 200): strings.Repeat("ü", maxFileName) + ".pdf"} {
		if got := (&Document{Name: name}).FileName(); got != want {
			t.Errorf("%q: got %q", name, got)
		}
	}
}

// Documents are shown as pictures are, as long as there is room for them.
func TestAlbumOfDocuments(t *testing.T) {
	files := map[string][]byte{"one": pdf(1, false), "sixty": pdf(60, true), "fake": []byte("hello"), "locked": append(pdf(1, false), "/Encrypt"...)}
	a := NewAlbum(func(f claybot.FileReference) ([]byte, error) { return files[f.Path], nil })
	ref := func(path string) claybot.FileReference {
		return claybot.FileReference{Name: path + ".pdf", MIMEType: "application/pdf", Size: 10, Path: path}
	}
	user := func(paths ...string) claybot.Record {
		r := claybot.Record{Type: claybot.RecordUser, Text: "read"}
		for _, p := range paths {
			r.Files = append(r.Files, ref(p))
		}
		return r
	}
	large := user("one")
	large.Files[0].Size = MaxDocument + 1
	result := []claybot.Record{
		{Type: claybot.RecordAssistant, ToolCalls: []claybot.ToolCall{{ID: "c", Name: "fetch", Args: "{}"}}},
		{Type: claybot.RecordTool, ToolCallID: "c", Text: "got", Files: []claybot.FileReference{ref("one")}},
	}
	for name, tt := range map[string]struct {
		history []claybot.Record
		tokens  int64
		want    string
	}{
		"one":                {[]claybot.Record{user("one")}, 1e6, "one.pdf"},
		"no room":            {[]claybot.Record{user("one")}, pageTokens - 1, ""},
		"room for the newer": {[]claybot.Record{user("sixty"), user("one")}, 60 * pageTokens, "one.pdf"},
		"too many pages":     {[]claybot.Record{user("sixty"), user("one"), user("sixty")}, 1e6, "one.pdf sixty.pdf"},
		"no documents":       {[]claybot.Record{user("fake", "locked")}, 1e6, ""},
		"too large":          {[]claybot.Record{large}, 1e6, ""},
		"of a result":        {append([]claybot.Record{user()}, result...), 1e6, "one.pdf"},
	} {
		var shown []string
		for _, m := range a.Show(Messages(tt.history), tt.tokens) {
			if n := strings.Count(m.Content, fileRead); n != len(m.Documents) && m.Role == RoleUser {
				t.Errorf("%s: %q has %d documents", name, m.Content, len(m.Documents))
			}
			for _, d := range m.Documents {
				shown = append(shown, d.Name)
			}
		}
		if got := strings.Join(shown, " "); got != tt.want {
			t.Errorf("%s: shown %q, want %q", name, got, tt.want)
		}
	}
	m := a.Show(Messages([]claybot.Record{user("one")}), 1e6)[0]
	if text := Without([]Message{m}, false, func(Document) bool { return true })[0].Content; !strings.Contains(text, `[the document name="one.pdf", application/pdf, `) || !strings.HasSuffix(text, "cannot be read by this model]") {
		t.Errorf("without documents: %s", text)
	}
	with := Estimate(Request{Messages: []Message{m}}, Response{}).Input
	m.Documents = nil
	if without := Estimate(Request{Messages: []Message{m}}, Response{}).Input; with-without != pageTokens {
		t.Errorf("a page is estimated at %d tokens", with-without)
	}
}

func FuzzReadable(f *testing.F) {
	f.Add(pdf(1, false))
	f.Add(pdf(3, true))
	f.Add([]byte("%PDF-/ObjStm stream"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if d, err := Readable(data); (err == nil) != (d.Pages > 0) {
			t.Errorf("%d pages, %v", d.Pages, err)
		}
	})
}

// A reader of no documents, which counts no tokens.
type textOnly struct{ modelFunc }

func (textOnly) Fit(r Request) Request {
	r.Messages = Without(r.Messages, false, func(Document) bool { return true })
	return r
}

// Nothing is set aside or booked for documents that are not sent.
func TestUnreadDocumentsCostNothing(t *testing.T) {
	j, r := &jar{limit: 1e9}, ask()
	r.Messages[0].Documents = []Document{{Data: pdf(1, false), Name: "long.pdf", Pages: MaxPages}}
	metered := Metered(textOnly{func(context.Context, Request) (Response, error) { return Response{Text: "hi", Model: "m"}, nil }}, tenDollars)
	if resp, err := metered.Chat(t.Context(), r); err != nil || resp.Usage.Input > 100 {
		t.Errorf("%v: took %+v", err, resp.Usage)
	}
	m := Budgeted(metered, "m", j, tenDollars, nil)
	resp, err := m.Chat(t.Context(), r)
	if err != nil || resp.Usage.Input > 100 || !resp.Usage.Estimated || j.last.Tokens > 2*DefaultAnswer || len(j.booked) != 1 || j.booked[0].Input > 100 {
		t.Errorf("%v: took %+v, set aside %d, booked %+v", err, resp.Usage, j.last.Tokens, j.booked)
	}
	if len(r.Messages[0].Documents) != 1 {
		t.Error("the request given has changed")
	}
}

// A settled message whose document was left out is encoded anew where the document is read again.
func TestWithoutKeepsNoEncoding(t *testing.T) {
	m := Message{
		Content: "read", encoding: new(encoding), Documents: []Document{{Data: pdf(1, false), Name: "a.pdf", Pages: 1}, {Data: pdf(2, false), Name: "b.pdf", Pages: 2}},
		Images: []Image{{MIMEType: "image/png", Data: []byte("x"), Name: "p.png"}},
	}
	same := Message{Content: "other", encoding: new(encoding)}
	got := Without([]Message{m, same}, false, func(d Document) bool { return d.Name == "a.pdf" })
	if len(got[0].Documents) != 1 || got[0].Documents[0].Name != "b.pdf" || !strings.Contains(got[0].Content, `"a.pdf"`) || len(got[0].Images) != 1 || got[0].encoding != nil || got[1].encoding != same.encoding {
		t.Errorf("got %+v", got)
	}
	if got := Without([]Message{m}, true, func(Document) bool { return false }); len(got[0].Images) != 0 || len(got[0].Documents) != 2 || !strings.Contains(got[0].Content, `"p.png"`) {
		t.Errorf("got %+v", got)
	}
}

// A document that was made readable is hashed once.
func TestSum(t *testing.T) {
	d, err := Readable(pdf(1, false))
	if err != nil || d.Sum() != sha256.Sum256(d.Data) || d.Sum() != (&Document{Data: d.Data}).Sum() {
		t.Errorf("%v: %x", err, d.Sum())
	}
	d.Data = nil
	if d.Sum() == sha256.Sum256(nil) {
		t.Error("it was hashed again")
	}
}

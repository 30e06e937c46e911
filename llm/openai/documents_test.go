package openai

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/openai/openaitest"
)

var pdf = []byte("%PDF-1.4 <</Type /Page>>")

// reading asks with documents: two of the user's, with a picture, and two of a result.
func reading() llm.Request {
	d := llm.Document{Data: pdf, Name: "lease.pdf", Pages: 1}
	r := ask("what is this?")
	r.Messages[0].Documents = []llm.Document{d, {Data: []byte("%PDF-1.5"), Name: "plan", Pages: 1}}
	r.Messages[0].Images = []llm.Image{{MIMEType: "image/png", Data: png, Name: "cat.png"}}
	r.Messages = append(r.Messages,
		llm.Message{Role: llm.RoleAssistant, Calls: []claybot.ToolCall{call("a")}},
		llm.Message{Role: llm.RoleTool, CallID: "a", Content: "a file", Documents: []llm.Document{d}},
		llm.Message{Role: llm.RoleAssistant, Content: "I see"},
		llm.Message{Role: llm.RoleUser, Content: "and?"})
	return r
}

// Documents arrive, those of results in a message of the user behind them all. A server that takes none gets words about
// them, once and for all; a document that is refused is left out of all further requests, and others are not.
func TestDocuments(t *testing.T) {
	for _, tt := range []struct {
		fault               openaitest.Fault
		dialect             openaitest.Dialect
		quirks              llm.Quirks
		calls, again, other int // requests of the first and of a second call, and of one with other documents
	}{
		{"", "", llm.Quirks{}, 1, 1, 1},
		{"", openaitest.OpenRouter, quirksOf("openrouter"), 1, 1, 1},
		{"", "", responding, 1, 1, 1},
		{"", openaitest.VLLM, llm.Quirks{}, 1, 1, 1}, // and a refused one, which the emulator does not count
		{"", openaitest.LlamaCPP, quirksOf("llama.cpp"), 1, 1, 1},
		{openaitest.FaultNoDocuments, "", llm.Quirks{}, 2, 1, 1},
		{openaitest.FaultNoDocuments, "", responding, 2, 1, 1},
		// The newest document is left out first, then all: the others are noted, and the newest by the second call.
		{openaitest.FaultBadDocument, "", llm.Quirks{}, 3, 2, 2},
		{openaitest.FaultBadDocument, "", responding, 3, 2, 2},
		{openaitest.FaultNoReading, "", llm.Quirks{}, 3, 2, 2},
	} {
		t.Run(string(tt.fault)+" "+string(tt.dialect), func(t *testing.T) {
			s, c := serve(t, openaitest.Config{Dialect: tt.dialect, Reply: func(openaitest.Request) openaitest.Reply {
				return openaitest.Reply{Text: "ok", Fault: tt.fault}
			}}, Config{SystemFallback: FallbackNever, Quirks: &tt.quirks})
			other := reading()
			other.Messages[0].Documents, other.Messages[2].Documents = []llm.Document{{Data: []byte("%PDF-1.6"), Name: "new.pdf", Pages: 1}}, nil
			for i, r := range []llm.Request{reading(), reading(), other} {
				before := s.Calls()
				if _, err := c.Chat(t.Context(), r); err != nil {
					t.Fatal(err)
				}
				if n, want := s.Calls()-before, []int{tt.calls, tt.again, tt.other}[i]; n != want {
					t.Errorf("call %d took %d requests, want %d", i, n, want)
				}
			}
			shown := tt.fault == "" && tt.dialect != openaitest.VLLM && tt.dialect != openaitest.LlamaCPP
			if refused := len(s.Refused()); refused > 1 || refused > 0 && tt.dialect != openaitest.VLLM {
				t.Errorf("refused %v", s.Refused())
			}
			checkDocuments(t, s.Requests()[tt.calls+tt.again-1].Messages, shown, tt.quirks.Responses)
		})
	}
}

func checkDocuments(t *testing.T, m []llm.Message, shown, inResults bool) {
	t.Helper()
	if len(m[0].Images) != 1 {
		t.Error("the picture was left out")
	}
	if !shown {
		if len(m[0].Documents) > 0 || strings.Count(m[0].Content, "cannot be read") != 2 || !strings.Contains(m[0].Content, `"lease.pdf"`) || strings.Count(m[2].Content, "cannot be read") != 1 {
			t.Errorf("no line stands in the place of the documents: %+v", m)
		}
		return
	}
	result := m[2]
	if !inResults {
		if result = m[3]; result.Content != resultFiles {
			t.Errorf("the documents of the result do not follow it: %+v", m)
		}
	}
	d := m[0].Documents
	if len(d) != 2 || d[0].Name != "lease.pdf" || string(d[0].Data) != string(pdf) || d[1].Name != "plan.pdf" || len(result.Documents) != 1 || strings.Contains(m[0].Content, "cannot be read") {
		t.Errorf("got %+v", m)
	}
}

func quirksOf(preset string) llm.Quirks {
	p, _ := llm.PresetNamed(preset)
	return p.Quirks
}

// Words about documents teach something only where documents were sent, and in the words of many servers.
func TestDocumentsAreLearned(t *testing.T) {
	for said, want := range map[string][2]uint32{
		"Invalid value: 'file'. Supported values are: 'text', 'image_url'.":                                  {fieldDocuments, 0},
		"unknown variant `file`, expected `text`":                                                            {fieldDocuments, 0},
		"This model does not support PDF input":                                                              {fieldDocuments, 0},
		"Invalid value: 'input_file'. Supported values are: 'input_text'.":                                   {fieldDocuments, 0},
		"The PDF has more than 100 pages":                                                                    {0, fieldDocuments},
		"unsupported file: the document is corrupt":                                                          {0, fieldDocuments},
		"not supported; see our documentation":                                                               {0, 0},
		"The document is not supported":                                                                      {0, fieldDocuments},
		"Invalid schema for function 'create_document': the keyword 'format' is not supported by this model": {0, 0},
		"Invalid schema for function 'read': the value 'pdf' of 'type' is not supported by this model":       {0, fieldDocuments},
	} {
		p := parseProblem(400, []byte(`{"error":{"message":"`+said+`"}}`))
		if always, once := p.refused(); always&fieldDocuments != want[0] || once&fieldDocuments != want[1] {
			t.Errorf("%s: got %b %b", said, always, once)
		}
	}
	p := parseProblem(404, []byte(`{"error":{"message":"No endpoints found that support file input","code":404}}`))
	if always, _ := p.refused(); always != fieldDocuments {
		t.Errorf("a broker without a model that reads: %b", always)
	}
	s, c := serve(t, openaitest.Config{Reply: func(openaitest.Request) openaitest.Reply {
		return openaitest.Reply{Fault: openaitest.FaultNoReading}
	}}, Config{})
	if _, err := c.Chat(t.Context(), ask("x")); err != nil || c.Refused() != 0 || s.Calls() != 1 {
		t.Errorf("got %v after %d calls, learned %b", err, s.Calls(), c.Refused())
	}
}

// A client says what it will not send, before the call is paid for: a preset that reads none, a server that refused all, or a
// document that was refused.
func TestFit(t *testing.T) {
	for _, tt := range []struct {
		fault  openaitest.Fault
		quirks llm.Quirks
		called bool // before
		left   int  // documents
	}{
		{"", llm.Quirks{}, false, 3},
		{"", quirksOf("ollama"), false, 0},
		{openaitest.FaultNoDocuments, llm.Quirks{}, true, 0},
		{openaitest.FaultBadDocument, llm.Quirks{}, true, 2}, // the newest, twice
		{openaitest.FaultNoImages, llm.Quirks{}, true, 3},
	} {
		_, c := serve(t, openaitest.Config{Reply: func(openaitest.Request) openaitest.Reply {
			return openaitest.Reply{Text: "ok", Fault: tt.fault}
		}}, Config{SystemFallback: FallbackNever, Quirks: &tt.quirks})
		if tt.called {
			if _, err := c.Chat(t.Context(), reading()); err != nil {
				t.Fatal(err)
			}
		}
		n, pictures := 0, 0
		for _, m := range c.Fit(reading()).Messages {
			n += len(m.Documents)
			pictures += len(m.Images)
		}
		if n != tt.left || (pictures == 0) != (tt.fault == openaitest.FaultNoImages) {
			t.Errorf("%q: %d documents and %d pictures are left", tt.fault, n, pictures)
		}
	}
}

// refuser is a server that refuses each request with one of some signs in its body; calls counts all requests.
func refuser(t *testing.T, status int, said string, signs ...string) (c *Client, calls *atomic.Int32) {
	t.Helper()
	calls = new(atomic.Int32)
	fake := openaitest.New(openaitest.Config{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		body, _ := io.ReadAll(r.Body)
		if slices.ContainsFunc(signs, func(sign string) bool { return strings.Contains(string(body), sign) }) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"error":{"message":%q}}`, said)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		fake.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return New(Config{BaseURL: srv.URL, Model: "m", SystemFallback: FallbackNever}), calls
}

// A refusal that names pictures and documents is about what the request has, and a run never fails for it.
func TestRefusalsOfImagesAndDocuments(t *testing.T) {
	const neither, picture, file = "This model does not support image or document inputs", `"image_url"`, `"file"`
	for _, tt := range []struct {
		name              string
		pictures, reading bool
		status            int
		said              string
		signs             []string // in a request that is refused
		calls             int32
		want              uint32
	}{
		{"a picture", true, false, 400, neither, []string{picture, file}, 2, fieldImages},
		{"a document", false, true, 400, neither, []string{picture, file}, 2, fieldDocuments},
		{"both", true, true, 400, neither, []string{picture, file}, 3, fieldImages | fieldDocuments},
		{"a picture, as a broker says it", true, false, 404, neither, []string{picture, file}, 2, fieldImages},
		{"a document, as a broker says it", false, true, 404, neither, []string{picture, file}, 2, fieldDocuments},
		{"a document beside a picture that is seen", true, true, 400, "Invalid value: 'file'. Supported values are: 'text', 'image_url'.", []string{file}, 2, fieldDocuments},
		{"a picture that breaks a server", true, false, 500, "cannot read the image or document", []string{picture}, 2, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, calls := refuser(t, tt.status, tt.said, tt.signs...)
			r := ask("what is this?")
			if tt.pictures {
				r.Messages[0].Images = []llm.Image{{MIMEType: "image/png", Data: png, Name: "cat.png"}}
			}
			if tt.reading {
				r.Messages[0].Documents = []llm.Document{{Data: pdf, Name: "lease.pdf", Pages: 1}}
			}
			if _, err := c.Chat(t.Context(), r); err != nil {
				t.Fatalf("after %d calls: %v", calls.Load(), err)
			}
			if n := calls.Load(); n != tt.calls || c.Refused() != tt.want {
				t.Errorf("%d calls, want %d; learned %b, want %b", n, tt.calls, c.Refused(), tt.want)
			}
		})
	}
}

// Only what was found to be at fault is left out of later calls: a document without which the server answers, the newest first.
func TestInnocentDocumentsStay(t *testing.T) {
	sent := func(data string) string { return base64.StdEncoding.EncodeToString([]byte(data)) }
	const first, second, last = "%PDF-1.4 first", "%PDF-1.4 second", "%PDF-1.4 the last"
	for _, tt := range []struct {
		name, said string
		signs      []string
		calls      int32
		left       []string
		fails      bool
	}{
		{"the newest", "The PDF is damaged", []string{sent(last)}, 2, []string{first, second}, false},
		{"the newest, in words that name nothing", "bad request", []string{sent(last)}, 2, []string{first, second}, false},
		{"an older one", "The PDF is damaged", []string{sent(first)}, 3, []string{last}, false},
		{"none", "bad request", []string{"messages"}, 3, []string{first, second, last}, true},
		{"a tool that is named after documents", "Invalid schema for function 'create_document': 'pdf' is not supported by this model", []string{"messages"}, 3, []string{first, second, last}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, calls := refuser(t, 400, tt.said, tt.signs...)
			r := ask("what is this?")
			r.Messages[0].Documents = []llm.Document{{Data: []byte(first), Pages: 1}, {Data: []byte(second), Pages: 1}}
			r.Messages = append(r.Messages, llm.Message{Role: llm.RoleAssistant, Content: "A lease."},
				llm.Message{Role: llm.RoleUser, Content: "And this?", Documents: []llm.Document{{Data: []byte(last), Pages: 1}}})
			if _, err := c.Chat(t.Context(), r); (err != nil) != tt.fails {
				t.Fatal(err)
			}
			var left []string
			for _, m := range c.Fit(r).Messages {
				for _, d := range m.Documents {
					left = append(left, string(d.Data))
				}
			}
			if n := calls.Load(); n != tt.calls || !slices.Equal(left, tt.left) || c.Refused() != 0 {
				t.Errorf("%d calls, want %d; %q is left, want %q; learned %b", n, tt.calls, left, tt.left, c.Refused())
			}
		})
	}
}

package anthropic

import (
	"strings"
	"testing"

	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/anthropic/anthropictest"
)

// Documents arrive, with their names, also in results. A server that takes none gets words about them, once and for all; a
// document that is refused is left out of all further requests, and others are not.
func TestDocuments(t *testing.T) {
	d := llm.Document{Data: []byte("%PDF-1.4 a"), Name: "lease.pdf", Pages: 1}
	r := ask("what is this?")
	r.Messages[0].Documents = []llm.Document{d}
	r.Messages[0].Images = []llm.Image{{MIMEType: "image/png", Data: png, Name: "cat.png"}}
	r.Messages = append(r.Messages,
		llm.Message{Role: llm.RoleAssistant, Calls: twoCalls[:1]},
		llm.Message{Role: llm.RoleTool, CallID: twoCalls[0].ID, Content: "a file", Documents: []llm.Document{d}})
	other := ask("and this?")
	other.Messages[0].Documents = []llm.Document{{Data: []byte("%PDF-1.4 b"), Name: "new.pdf", Pages: 1}}
	for _, tt := range []struct {
		fault               anthropictest.Fault
		calls, again, other int // requests of the first and of a second call, and of one with another document
	}{
		{"", 1, 1, 1},
		{anthropictest.FaultNoDocuments, 2, 1, 1},
		{anthropictest.FaultBadDocument, 2, 1, 2},
	} {
		t.Run(string(tt.fault), func(t *testing.T) {
			s, c := serve(t, anthropictest.Config{Reply: func(anthropictest.Request) anthropictest.Reply {
				return anthropictest.Reply{Text: "ok", Fault: tt.fault}
			}}, Config{})
			for i, r := range []llm.Request{r, r, other} {
				before := s.Calls()
				if _, err := c.Chat(t.Context(), r); err != nil {
					t.Fatal(err)
				}
				if n, want := s.Calls()-before, []int{tt.calls, tt.again, tt.other}[i]; n != want {
					t.Errorf("call %d took %d requests, want %d", i, n, want)
				}
			}
			m := s.Requests()[tt.calls].Messages
			if len(m[0].Images) != 1 || len(s.Refused()) > 0 {
				t.Errorf("the picture was left out, or something refused: %+v, %v", m, s.Refused())
			}
			if tt.fault == "" {
				if got := append(m[0].Documents, m[2].Documents...); len(got) != 2 || got[0].Name != "lease.pdf" || string(got[1].Data) != "%PDF-1.4 a" {
					t.Errorf("got %+v", m)
				}
				return
			}
			if len(m[0].Documents)+len(m[2].Documents) > 0 || !strings.Contains(m[0].Content, `"lease.pdf"`) || !strings.Contains(m[2].Content, "cannot be read") {
				t.Errorf("no line stands in the place of the documents: %+v", m)
			}
		})
	}
}

// A refusal that names documents and pictures is about pictures too: the client finds out which. One of a tool switches nothing off.
func TestRefusalsOfImagesAndDocuments(t *testing.T) {
	for said, want := range map[string][2]uint32{
		"messages.0.content.0: this model does not support image or document inputs": {fieldImages | fieldDocuments, 0},
		"messages.0.content.0: this model does not support document blocks":          {fieldDocuments, 0},
		"Could not process image or document":                                        {0, fieldImages | fieldDocuments},
		"Could not process image":                                                    {0, fieldImages},
		"tools.0.custom.name: create_document is not supported":                      {0, 0},
		"tools.0.custom.input_schema: the type document is not supported":            {0, fieldDocuments},
	} {
		p := parseProblem(400, []byte(`{"type":"error","error":{"type":"invalid_request_error","message":"`+said+`"}}`))
		if always, once := p.refused(); always != want[0] || once != want[1] {
			t.Errorf("%s: got %b %b", said, always, once)
		}
	}
}

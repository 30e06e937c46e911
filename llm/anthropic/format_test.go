package anthropic

import (
	"encoding/json"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/anthropic/anthropictest"
)

// A strict schema is sent as the API has it. A model that has no such thing is asked without from then on, and a schema that it
// does not take is left out of that call alone.
func TestFormat(t *testing.T) {
	const closed, open = `{"type":"object","additionalProperties":false}`, `{"type":"object"}`
	for _, tt := range []struct {
		name        string
		fault       anthropictest.Fault
		format      *claybot.AnswerFormat
		sent        string
		first, then int // refused requests of the first and of the second call
	}{
		{"strict", "", &claybot.AnswerFormat{Schema: json.RawMessage(closed), Strict: true}, closed, 0, 0},
		{"not strict", "", &claybot.AnswerFormat{Schema: json.RawMessage(closed)}, "", 0, 0},
		{"an object", "", &claybot.AnswerFormat{}, "", 0, 0},
		{"none", "", nil, "", 0, 0},
		{"open", "", &claybot.AnswerFormat{Schema: json.RawMessage(open), Strict: true}, "", 1, 1},
		{"unknown to the model", anthropictest.FaultNoFormat, &claybot.AnswerFormat{Schema: json.RawMessage(closed), Strict: true}, "", 1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := anthropictest.New(anthropictest.Config{Reply: func(anthropictest.Request) anthropictest.Reply {
				return anthropictest.Reply{Text: "{}", Fault: tt.fault}
			}})
			url, stop, err := s.Start()
			if err != nil {
				t.Fatal(err)
			}
			defer stop()
			c := New(Config{BaseURL: url, Model: "m"})
			defer c.CloseIdleConnections()
			refused := 0
			for _, want := range []int{tt.first, tt.then} {
				before := s.Calls() + len(s.Refused())
				resp, err := c.Chat(t.Context(), llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Content: "x"}}, Format: tt.format})
				if err != nil || resp.Text != "{}" {
					t.Fatal(resp, err)
				}
				all := s.Requests()
				if refused = s.Calls() + len(s.Refused()) - before - 1; refused != want || all[len(all)-1].Format != tt.sent {
					t.Errorf("%d refused, want %d; the answer was asked for as %q", refused, want, all[len(all)-1].Format)
				}
			}
		})
	}
}

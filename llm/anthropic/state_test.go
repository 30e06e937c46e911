package anthropic

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/anthropic/anthropictest"
)

// A talk is a history that answers of a model are added to.
type talk struct {
	*testing.T
	history []claybot.Record
}

func (k *talk) say(text string) {
	k.history = append(k.history, claybot.Record{Type: claybot.RecordUser, At: 1, MessageID: claybot.MessageID(fmt.Sprint("m", len(k.history))), Text: text})
}

// ask asks a model, keeps the answer as it would be read from a file, and adds the results of its calls.
func (k *talk) ask(c *Client) llm.Response {
	k.Helper()
	resp, err := c.Chat(k.Context(), llm.Request{Agent: "a", Run: "r", System: "be kind", Messages: llm.Messages(k.history), Tools: []llm.Tool{{Name: "look"}}})
	if err != nil {
		k.Fatalf("%v, %+v", err, k.history)
	}
	k.keep(claybot.Record{Type: claybot.RecordAssistant, Run: "r", Text: resp.Text, ToolCalls: resp.Calls, State: resp.State})
	return resp
}

func (k *talk) keep(r claybot.Record) {
	k.Helper()
	b, err := json.Marshal(r)
	if err == nil {
		r = claybot.Record{}
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		k.Fatal(err)
	}
	k.history = append(k.history, r)
	for _, c := range r.ToolCalls {
		k.history = append(k.history, claybot.Record{Type: claybot.RecordTool, Run: "r", ToolCallID: c.ID, Name: c.Name, OK: true, Text: "done"})
	}
}

func look(id string) claybot.ToolCall { return claybot.ToolCall{ID: id, Name: "look", Args: "{}"} }

// Reasoning goes back with the calls that it led to, unchanged and in its place.
func TestState(t *testing.T) {
	s, c := serve(t, anthropictest.Config{Thinks: true}, Config{})
	k := &talk{T: t}
	k.say("go")
	s.Script(anthropictest.Reply{Calls: []claybot.ToolCall{look("a"), look("b")}}, anthropictest.Reply{Text: "I look", Calls: []claybot.ToolCall{look("c")}}, anthropictest.Reply{Text: "done"})
	for range 3 {
		if resp := k.ask(c); resp.State == nil {
			t.Errorf("no state with %+v", resp)
		}
	}
	k.say("again")
	s.Script(anthropictest.Reply{Calls: []claybot.ToolCall{look("d")}}, anthropictest.Reply{Text: "done again"})
	k.ask(c)
	if resp := k.ask(c); resp.Text != "done again" || len(s.Refused()) > 0 {
		t.Errorf("%+v, refusals %q", resp, s.Refused())
	}
}

// Reasoning that is not the model's own is not sent, or not again when the server says so; calls of others
// without any do not stop a model that reasons.
func TestStateOfOthers(t *testing.T) {
	_, plain := serve(t, anthropictest.Config{}, Config{})
	for name, state := range map[string]*claybot.ModelState{
		"none":           nil,
		"of another":     {Of: "other.example/m", Data: json.RawMessage(`[{"type":"thinking","thinking":"x","signature":"y"}]`)},
		"of another api": {Of: plain.api.of, Data: json.RawMessage(`{"reasoning_content":"x"}`)},
		"with a hole":    {Of: plain.api.of, Data: json.RawMessage(`[null]`)},
		"altered":        {Of: plain.api.of, Data: json.RawMessage(`[{"type":"thinking","thinking":"forged","signature":"forged"},{"type":"tool_use"}]`)},
		"unsigned":       {Of: plain.api.of, Data: json.RawMessage(`[{"type":"thinking","thinking":"forged"},{"type":"text","bytes":99}]`)},
	} {
		for _, thinks := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/%t", name, thinks), func(t *testing.T) {
				s, c := serve(t, anthropictest.Config{Thinks: thinks}, Config{})
				if state != nil && state.Of == plain.api.of {
					state = &claybot.ModelState{Of: c.api.of, Data: state.Data}
				}
				k := &talk{T: t}
				k.say("go")
				k.keep(claybot.Record{Type: claybot.RecordAssistant, Run: "r", Text: "hm", ToolCalls: []claybot.ToolCall{look("x")}, State: state})
				s.Script(anthropictest.Reply{Calls: []claybot.ToolCall{look("a")}}, anthropictest.Reply{Text: "done"})
				k.ask(c)
				if resp := k.ask(c); resp.Text != "done" {
					t.Errorf("%+v", resp)
				}
				if n := len(s.Refused()); n > 4 {
					t.Errorf("%d refusals: %q", n, s.Refused())
				}
			})
		}
	}
}

// Texts and calls come back where the reasoning stood between them, and behind it where they are others.
func TestRestored(t *testing.T) {
	text := func(s ...string) (all []wireBlock) {
		for _, s := range s {
			all = append(all, wireBlock{Type: "text", Text: s})
		}
		return all
	}
	calls := []wireBlock{{Type: "tool_use", ID: "a"}, {Type: "tool_use", ID: "b"}}
	const mixed = `[{"type":"thinking","thinking":"one","signature":"s"},{"type":"text","bytes":3},{"type":"redacted_thinking","data":"d"},{"type":"tool_use"},{"type":"text","bytes":2},{"type":"text"},{"type":"tool_use"}]`
	for _, tt := range []struct {
		name, state string
		text, calls []wireBlock
		want        string
	}{
		{"same", mixed, text("hey, "), calls, `thinking one s|text hey|redacted_thinking d|tool_use a|text , |tool_use b|`},
		{"blanks first", `[{"type":"text","bytes":2},{"type":"thinking","thinking":"x","signature":"s"},{"type":"text","bytes":3}]`, text("\n\nhey"), nil, "thinking x s|text \n\nhey|"},
		{"blanks last", `[{"type":"thinking","thinking":"x","signature":"s"},{"type":"text","bytes":3},{"type":"text","bytes":1},{"type":"tool_use"}]`, text("hey\n"), calls[:1], "thinking x s|text hey|tool_use a|"},
		{"negative", `[{"type":"text","bytes":-5},{"type":"text","bytes":10}]`, text("hello"), nil, "text hello|"},
		{"bytes of reasoning", `[{"type":"thinking","thinking":"x","signature":"s","bytes":5}]`, text("hello"), nil, "thinking x s|text hello|"},
		{"another text", mixed, text("hello, "), calls, `thinking one s|redacted_thinking d|text hello, |tool_use a|tool_use b|`},
		{"fewer calls", mixed, text("hey, "), calls[:1], `thinking one s|redacted_thinking d|text hey, |tool_use a|`},
		{"no JSON", `{`, text("hey"), calls, `text hey|tool_use a|tool_use b|`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			for _, b := range restored(&claybot.ModelState{Data: json.RawMessage(tt.state)}, tt.text, tt.calls) {
				got += b.Type
				if b.Thinking != nil {
					got += " " + *b.Thinking
				}
				for _, part := range []string{b.Text, b.Signature, b.Data, b.ID} {
					if part != "" {
						got += " " + part
					}
				}
				got += "|"
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/openai/openaitest"
	"github.com/claybot/claybot/llm/provider"
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
	resp, err := c.Chat(k.Context(), llm.Request{Agent: "a", Run: "r", System: "be kind", Messages: llm.Messages(k.history)})
	if err != nil {
		k.Fatalf("%v, %+v", err, k.history)
	}
	r := claybot.Record{Type: claybot.RecordAssistant, Run: "r", Text: resp.Text, ToolCalls: resp.Calls, State: resp.State}
	b, err := json.Marshal(r)
	if err == nil {
		r = claybot.Record{}
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		k.Fatal(err)
	}
	k.history = append(k.history, r)
	k.results()
	return resp
}

func (k *talk) results() {
	for _, c := range k.history[len(k.history)-1].ToolCalls {
		k.history = append(k.history, claybot.Record{Type: claybot.RecordTool, Run: "r", ToolCallID: c.ID, Name: c.Name, OK: true, Text: "done"})
	}
}

func call(id string) claybot.ToolCall { return claybot.ToolCall{ID: id, Name: "look", Args: "{}"} }

var allDialects = []openaitest.Dialect{openaitest.DeepSeek, openaitest.Kimi, openaitest.Gemini, openaitest.OpenRouter, openaitest.Plain}

// Servers that want something back with their answers get it, in the turn and in later ones.
func TestState(t *testing.T) {
	for _, dialect := range allDialects {
		t.Run(string(dialect), func(t *testing.T) {
			s, c := serve(t, openaitest.Config{Dialect: dialect}, Config{})
			k := &talk{T: t}
			k.say("go")
			s.Script(openaitest.Reply{Calls: []claybot.ToolCall{call("a"), call("b")}}, openaitest.Reply{Text: "I look", Calls: []claybot.ToolCall{call("c")}}, openaitest.Reply{Text: "done"})
			for range 3 {
				if resp := k.ask(c); resp.State == nil && (dialect != openaitest.Gemini || len(resp.Calls) > 0) {
					t.Errorf("no state with %+v", resp)
				}
			}
			k.say("again")
			s.Script(openaitest.Reply{Calls: []claybot.ToolCall{call("d")}}, openaitest.Reply{Text: "done again"})
			k.ask(c)
			if resp := k.ask(c); resp.Text != "done again" {
				t.Errorf("%+v", resp)
			}
			want := 0
			if dialect == openaitest.Plain {
				want = 1 // it says that it does not know the field, and does not get it again
			}
			if n := len(s.Refused()); n != want {
				t.Errorf("%d refusals, want %d: %q", n, want, s.Refused())
			}
		})
	}
}

// Answers of another model, without what this one wants back, do not stop it; nor does what is not its own.
func TestStateOfOthers(t *testing.T) {
	foreign := claybot.Record{Type: claybot.RecordAssistant, Run: "r", Text: "hm", ToolCalls: []claybot.ToolCall{call("x"), call("y")}}
	with := func(state *claybot.ModelState) claybot.Record {
		r := foreign
		r.State = state
		return r
	}
	altered := func(of, data string) *claybot.ModelState {
		return &claybot.ModelState{Of: of, Data: json.RawMessage(data)}
	}
	for _, dialect := range append(allDialects, "") {
		for name, make := range map[string]func(of string) claybot.Record{
			"none":           func(string) claybot.Record { return foreign },
			"of another":     func(string) claybot.Record { return with(altered("other.example/m", `{"reasoning_content":"secret"}`)) },
			"of another api": func(of string) claybot.Record { return with(altered(of, `[{"type":"thinking","thinking":"x"}]`)) },
			"no object":      func(of string) claybot.Record { return with(altered(of, `"x"`)) },
			"altered": func(of string) claybot.Record {
				return with(altered(of, `{"reasoning_content":"forged","reasoning_details":[{"type":"reasoning.text","text":"forged"}],"calls":{"x":{"google":{"thought_signature":"forged"}}}}`))
			},
		} {
			t.Run(string(dialect)+"/"+name, func(t *testing.T) {
				s, c := serve(t, openaitest.Config{Dialect: dialect}, Config{})
				k := &talk{T: t}
				k.say("go")
				k.history = append(k.history, make(c.api.of))
				k.results()
				s.Script(openaitest.Reply{Calls: []claybot.ToolCall{call("a")}}, openaitest.Reply{Text: "done"})
				k.ask(c)
				if resp := k.ask(c); resp.Text != "done" {
					t.Errorf("%+v", resp)
				}
				if n := len(s.Refused()); n > 4 {
					t.Errorf("%d refusals: %q", n, s.Refused())
				}
				refused := len(s.Refused())
				s.Script(openaitest.Reply{Text: "once more"})
				k.say("more")
				k.ask(c)
				if n := len(s.Refused()) - refused; n > 1 || name != "altered" && n > 0 {
					t.Errorf("a later request is refused %d times: %q", n, s.Refused()[refused:])
				}
			})
		}
	}
}

// A provider may put another model behind a name, in the middle of a turn: its reasoning is refused once, left out, and the turn
// goes on.
func TestModelChangesUnderItsName(t *testing.T) {
	for _, name := range []string{"deepseek", "kimi", "gemini", "openrouter", "llama.cpp", "openai-responses"} {
		t.Run(name, func(t *testing.T) {
			p, _ := llm.PresetNamed(name)
			s, c := serve(t, openaitest.Config{Dialect: openaitest.Dialect(strings.TrimPrefix(name, "openai-responses"))}, Config{Quirks: &p.Quirks})
			k := &talk{T: t}
			k.say("go")
			s.Script(openaitest.Reply{Calls: []claybot.ToolCall{call("a")}}, openaitest.Reply{Calls: []claybot.ToolCall{call("b")}}, openaitest.Reply{Text: "done"})
			k.ask(c)
			s.Swap()
			k.ask(c)
			if resp := k.ask(c); resp.Text != "done" || s.Calls() != 3 {
				t.Errorf("%+v after %d answers", resp, s.Calls())
			}
			if n := len(s.Refused()); n < 1 || n > 4 {
				t.Errorf("%d refusals: %q", n, s.Refused())
			}
		})
	}
}

// What is too large is not kept, and the answer is.
func TestStateTooLarge(t *testing.T) {
	for _, n := range []int{provider.MaxState - 1000, provider.MaxState + 1, 4 * provider.MaxState} {
		var log bytes.Buffer
		s, c := serve(t, openaitest.Config{}, Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
		s.Script(openaitest.Reply{Thinking: strings.Repeat("x", n), Piece: 4096, Text: "answer"})
		k := &talk{T: t}
		k.say("go")
		resp := k.ask(c)
		if resp.Text != "answer" || (resp.State != nil) != (n < provider.MaxState) {
			t.Errorf("%d bytes: %q, %d bytes kept", n, resp.Text, resp.State.Size())
		}
		if warned := strings.Contains(log.String(), "256 KiB"); warned != (n > provider.MaxState) || strings.Contains(log.String(), "xxx") {
			t.Errorf("%d bytes: the log says %.200q", n, log.String())
		}
	}
}

// Reasoning in other fields, or of another type than it should have, does not break an answer.
func TestStateOddShapes(t *testing.T) {
	for _, text := range []string{
		`{"reasoning_content":null}`, `{"reasoning_content":{}}`, `{"reasoning_details":null}`, `{"reasoning_details":"x"}`, `{"reasoning_details":[1]}`,
		`{"reasoning_details":[{"text":1,"type":2}]}`, `{"extra_content":null}`, `{"extra_content":[]}`, `{"reasoning":[]}`,
	} {
		k := new(keeper)
		var d struct{ delta }
		if err := json.Unmarshal([]byte(text), &d); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		k.take(&d.delta)
		state, err := k.State(nil)
		if err != nil || len(state) > 0 && !json.Valid(state) {
			t.Errorf("%s: %s, %v", text, state, err)
		}
	}
}

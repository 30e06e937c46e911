package demo_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/demo"
)

// "ask me" shows how an agent asks: a question first, then what was chosen.
func TestAskMe(t *testing.T) {
	tools := []llm.Tool{{Name: "ask_user", Description: "Asks.", Parameters: []byte(`{"type":"object"}`)}}
	chat := func(history ...claybot.Record) llm.Response {
		t.Helper()
		r, err := demo.New(demo.Config{}).Chat(t.Context(), llm.Request{Messages: llm.Messages(history), Tools: tools})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	history := []claybot.Record{said("hi"), answered("Hello!"), said("Ask me")}
	r := chat(history...)
	if len(r.Calls) != 1 || r.Calls[0].Name != "ask_user" || r.Stop != llm.StopTools {
		t.Fatalf("got %+v", r)
	}
	var q struct {
		Question, Key string
		Options       []string
	}
	if err := json.Unmarshal([]byte(r.Calls[0].Args), &q); err != nil || q.Question != "Which colour do you like?" || strings.Join(q.Options, " ") != "red green blue" {
		t.Errorf("asks %+v, %v", q, err)
	}
	history = append(history, answered("", r.Calls...))
	for result, want := range map[string]string{
		`{"colour":"green"}`:                        "You chose green.",
		"{\"colour\":\"red\"}\n(no answer in time)": "You chose red. (no answer in time)",
		`{"a":1,"b":2}`:                             "`ask_user` returned: {\"a\":1,\"b\":2}",
		"error: no person":                          "`ask_user` returned: error: no person",
	} {
		last := claybot.Record{Type: claybot.RecordTool, ToolCallID: r.Calls[0].ID, Name: "ask_user", OK: true, Text: result}
		if got := chat(append(history[:len(history):len(history)], last)...); got.Text != want || len(got.Calls) != 0 {
			t.Errorf("%s: %q, want %q", result, got.Text, want)
		}
	}
	if r := chat(said("help")); !strings.Contains(r.Text, "`ask me`") {
		t.Errorf("help is %q", r.Text)
	}
	if r := chat(said("ask me why")); len(r.Calls) != 0 {
		t.Errorf("asks %+v", r.Calls)
	}
}

package react_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/runs"
)

// An answer that is to be JSON is asked for once more if it is none; after that the run fails,
// also where it goes on after a crash.
func TestFormat(t *testing.T) {
	schema := &claybot.AnswerFormat{Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)}
	refused := llmtest.Reply{Err: &llm.Error{Class: llm.Permanent, Text: "no"}}
	for _, tt := range []struct {
		name    string
		format  *claybot.AnswerFormat
		replies []llmtest.Reply
		want    string
		fault   string
		calls   int64
	}{
		{"right", schema, []llmtest.Reply{llmtest.Say(`{"n":1}`)}, `{"n":1}`, "", 1},
		{"fenced", schema, []llmtest.Reply{llmtest.Say("```json\n{\"n\":1}\n```")}, `{"n":1}`, "", 1},
		{"repaired", schema, []llmtest.Reply{llmtest.Say("Here: 1"), llmtest.Say(`{"n":2}`)}, `{"n":2}`, "", 2},
		{"wrong type, repaired", schema, []llmtest.Reply{llmtest.Say(`{"n":"x"}`), llmtest.Say(`{"n":2}`)}, `{"n":2}`, "", 2},
		{"empty, repaired", schema, []llmtest.Reply{llmtest.Say(""), llmtest.Say(`{"n":2}`)}, `{"n":2}`, "", 2},
		{"wrong twice", schema, []llmtest.Reply{llmtest.Say(`{"n":"x"}`), llmtest.Say(`{"n":"y"}`)}, `{"n":"y"}`, "field n", 2},
		{"not repaired", schema, []llmtest.Reply{llmtest.Say(`{}`), refused}, `{}`, `"n"`, 1},
		{"any object", &claybot.AnswerFormat{}, []llmtest.Reply{llmtest.Say(`{"a":[]}`)}, `{"a":[]}`, "", 1},
		{"endless schema", &claybot.AnswerFormat{Schema: json.RawMessage(`{"$ref":"#"}`)}, []llmtest.Reply{llmtest.Say(`{}`), llmtest.Say(`{}`)}, `{}`, "invalid schema: a reference leads back", 2},
		{"no object", &claybot.AnswerFormat{}, []llmtest.Reply{llmtest.Say(`[]`), llmtest.Say(`7`)}, `7`, "not the JSON", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := newJournal("hi")
			j.messages = []claybot.AgentMessage{{Format: tt.format}}
			script := llmtest.NewScript(tt.replies...)
			err := j.run(t, loop(script, nil))
			for range 2 {
				var end *runs.Error
				if (err != nil) != (tt.fault != "") || err != nil && (!errors.As(err, &end) || end.Code != runs.CodeFormat || !strings.Contains(end.Text, tt.fault)) {
					t.Errorf("the run ends with %v, want %q", err, tt.fault)
				}
				err = j.run(t, loop(script, nil)) // as after a crash before the end
			}
			if r := j.last(); r.Text != tt.want || r.Tokens.LLMCalls != tt.calls || j.usage.LLMCalls != tt.calls {
				t.Errorf("record %+v, usage %+v, want %s with %d calls", r, j.usage, tt.want, tt.calls)
			}
			asked := script.Requests()[0]
			if asked.Format != tt.format || !strings.Contains(asked.System, "must be one JSON") {
				t.Errorf("request %+v", asked)
			}
		})
	}
}

package llm_test

import (
	"reflect"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
)

// What a run asked, and what was said to it, is no message of the conversation:
// the result of the call has the answer.
func TestMessagesOfQuestions(t *testing.T) {
	q := claybot.Question{ID: "q", Text: "Which?", Type: claybot.QuestionText}
	history := []claybot.Record{
		{Type: claybot.RecordUser, MessageID: "m", Text: "go"},
		{Type: claybot.RecordAssistant, ToolCalls: []claybot.ToolCall{{ID: "c", Name: "ask_user", Args: "{}"}}},
		{Type: claybot.RecordQuestion, Question: &q},
		{Type: claybot.RecordAnswer, Answer: &claybot.Answer{Question: "q", Value: []byte(`"red"`)}},
		{Type: claybot.RecordTool, ToolCallID: "c", Name: "ask_user", OK: true, Text: `{"answer":"red"}`},
	}
	got := llm.Messages(history)
	want := llm.Messages([]claybot.Record{history[0], history[1], history[4]})
	if err := llm.Check(got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, r := range history[2:4] {
		if n := llm.Bytes(&r); n != 0 {
			t.Errorf("%s takes %d bytes", r.Type, n)
		}
	}
}

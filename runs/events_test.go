package runs_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
)

func TestEventOf(t *testing.T) {
	long := strings.Repeat("é", runs.PreviewLimit)
	tests := []struct {
		name string
		rec  claybot.Record
		want claybot.EventType
		data string
	}{
		{
			"answer",
			claybot.Record{
				Type: claybot.RecordAssistant, Run: "r", At: 7, Step: 2, Text: "hi", Model: "m",
				Tokens: &claybot.Usage{Input: 1, LLMCalls: 1},
			},
			claybot.EventAssistantMessage,
			`{"step":2,"text":"hi","calls":[],"tokens":{"input":1,"output":0,"cachedInput":0,"costMicroUSD":0,"llmCalls":1,"toolCalls":0},"model":"m"}`,
		},
		{
			"answer with calls",
			claybot.Record{
				Type: claybot.RecordAssistant, Run: "r", At: 7, Step: 1,
				ToolCalls: []claybot.ToolCall{{ID: "a", Name: "wait", Args: `{"seconds":1}`}},
			},
			claybot.EventAssistantMessage, `{"step":1,"text":"","calls":[{"callId":"a","tool":"wait"}]}`,
		},
		{
			"result",
			claybot.Record{Type: claybot.RecordTool, Run: "r", At: 7, ToolCallID: "a", Name: "wait", OK: true, MS: 12, Text: "done"},
			claybot.EventToolSucceeded, `{"callId":"a","tool":"wait","ms":12,"preview":"done"}`,
		},
		{
			"failure",
			claybot.Record{Type: claybot.RecordTool, Run: "r", At: 7, ToolCallID: "a", Name: "wait", Text: "error: no"},
			claybot.EventToolFailed, `{"callId":"a","tool":"wait","ms":0,"error":"error: no"}`,
		},
		{
			"interrupted",
			claybot.Record{Type: claybot.RecordTool, Run: "r", At: 7, ToolCallID: "a", Name: "pay", Interrupted: true, Text: "?"},
			claybot.EventToolFailed, `{"callId":"a","tool":"pay","ms":0,"error":"?","code":"interrupted"}`,
		},
		{
			"long result",
			claybot.Record{Type: claybot.RecordTool, Run: "r", At: 7, Name: "w", OK: true, Text: long},
			claybot.EventToolSucceeded, `{"callId":"","tool":"w","ms":0,"preview":"` + runs.Preview(long) + `"}`,
		},
		{"user", claybot.Record{Type: claybot.RecordUser, Run: "r"}, "", ""},
		{"system", claybot.Record{Type: claybot.RecordSystem, Run: "r"}, "", ""},
		{"note", claybot.Record{Type: claybot.RecordNote, Run: "r"}, "", ""},
		{"reset", claybot.Record{Type: claybot.RecordReset}, "", ""},
		{"start", claybot.Record{Type: claybot.RecordStart}, "", ""},
		{"unknown", claybot.Record{Type: "later"}, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ev, ok := runs.EventOf(tt.rec)
			if ok != (tt.want != "") || ev.Type != tt.want || string(ev.Data) != tt.data {
				t.Errorf("got %v %s %s, want %s %s", ok, ev.Type, ev.Data, tt.want, tt.data)
			}
			if ok && (ev.V != 1 || ev.Run != "r" || ev.At != 7 || ev.Seq != 0) {
				t.Errorf("event %+v", ev)
			}
		})
	}
}

func TestMadeEvents(t *testing.T) {
	call := claybot.ToolCall{ID: "a", Name: "pay"}
	tests := []struct {
		ev   claybot.Event
		want claybot.EventType
		data string
	}{
		{runs.ToolCalled("r", call, "once"), claybot.EventToolCalled, `{"callId":"a","tool":"pay","effect":"once","argsPreview":"{}","status":"running"}`},
		{
			runs.Finished("r", "bye", claybot.Usage{Output: 3}), claybot.EventRunFinished,
			`{"output":"bye","usage":{"input":0,"output":3,"cachedInput":0,"costMicroUSD":0,"llmCalls":0,"toolCalls":0}}`,
		},
		{runs.Failed("r", claybot.RunError{Code: "deadline", Text: "late"}, 4), claybot.EventRunFailed, `{"code":"deadline","error":"late","step":4}`},
		{runs.Stopped("r", "user", ""), claybot.EventRunCanceled, `{"by":"user"}`},
	}
	for _, tt := range tests {
		if tt.ev.Type != tt.want || string(tt.ev.Data) != tt.data || tt.ev.V != 1 || tt.ev.Run != "r" || tt.ev.At == 0 {
			t.Errorf("got %+v %s, want %s %s", tt.ev, tt.ev.Data, tt.want, tt.data)
		}
	}
}

func TestExplain(t *testing.T) {
	cause := errors.New("cause")
	err := fmt.Errorf("run: %w", &runs.Error{Code: runs.CodeModel, Text: "no answer", Err: cause})
	if got := runs.Explain(err); got != (claybot.RunError{Code: "model_error", Text: "no answer"}) {
		t.Errorf("got %+v", got)
	}
	if !errors.Is(err, cause) {
		t.Error("the cause is lost")
	}
	if got := runs.Explain(cause); got != (claybot.RunError{Code: "internal", Text: "cause"}) {
		t.Errorf("got %+v", got)
	}
}

func FuzzPreview(f *testing.F) {
	f.Add("short")
	f.Add(strings.Repeat("é", runs.PreviewLimit))
	f.Add(strings.Repeat("\x80", runs.PreviewLimit+1))
	f.Fuzz(func(t *testing.T, text string) {
		got := runs.Preview(text)
		if len(got) > runs.PreviewLimit || utf8.ValidString(text) && !utf8.ValidString(got) {
			t.Fatalf("%d bytes became %d bytes %q", len(text), len(got), got)
		}
	})
}

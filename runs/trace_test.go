package runs_test

import (
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
)

// A run stays in the trace with which it began, whatever joins it.
func TestTraceOfARun(t *testing.T) {
	const caller = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	own := runs.TraceOf("r", nil)
	for _, tt := range []struct {
		name     string
		messages []claybot.AgentMessage
		want     string
	}{
		{"none", nil, own.ID},
		{"a person's", []claybot.AgentMessage{{ID: "a"}}, own.ID},
		{"a caller's", []claybot.AgentMessage{{ID: "a", Traceparent: caller}}, "4bf92f3577b34da6a3ce929d0e0e4736"},
		{"a caller's joins", []claybot.AgentMessage{{ID: "a"}, {ID: "b", Traceparent: caller}}, own.ID},
		{"malformed", []claybot.AgentMessage{{ID: "a", Traceparent: caller[:50]}}, own.ID},
	} {
		if got := runs.TraceOf("r", tt.messages); got.ID != tt.want || got.Span != own.Span {
			t.Errorf("%s: %+v, want %s", tt.name, got, tt.want)
		}
	}
}

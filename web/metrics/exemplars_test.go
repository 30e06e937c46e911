package metrics

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
)

// A bucket of a histogram names the trace of its newest value, in OpenMetrics alone, and only if traces are exported.
// https://github.com/prometheus/OpenMetrics/blob/v1.0.0/specification/OpenMetrics.md#exemplars
func TestExemplars(t *testing.T) {
	const caller = "4bf92f3577b34da6a3ce929d0e0e4736"
	own := runs.TraceOf("r2", nil).ID
	line := regexp.MustCompile(`^(claybot_[a-z_]+_bucket)\{.*le="([^"]+)"\} \d+ # \{trace_id="([0-9a-f]{32})"\} ([0-9.]+) 1\d{9}\.\d{3}$`)
	for _, tt := range []struct {
		name, accept string
		otlp         OTLP
		want         []string
	}{
		{"OpenMetrics", typeOpenMetrics, OTLP{Endpoint: "http://127.0.0.1:1"}, []string{
			"claybot_run_duration_seconds_bucket 2.5 " + own + " 2",
			"claybot_run_duration_seconds_bucket 60.0 " + caller + " 59",
			"claybot_model_call_duration_seconds_bucket 0.5 " + caller + " 0.5",
			"claybot_model_call_duration_seconds_bucket +Inf " + own + " 601",
			"claybot_tool_duration_seconds_bucket 2.5 " + caller + " 1.9",
		}},
		{"text", "text/plain", OTLP{Endpoint: "http://127.0.0.1:1"}, nil},
		{"no traces", typeOpenMetrics, OTLP{}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := New(Config{OTLP: tt.otlp, Serve: yes})
			m.Event("a1", event("r1", 1, claybot.EventRunStarted, runs.MessagesTaken{Traceparent: "00-" + caller + "-00f067aa0ba902b7-01"}))
			m.Event("a1", event("r1", 2, claybot.EventAssistantMessage, runs.AssistantMessage{Step: 1, Model: "m", MS: 300}))
			m.Event("a1", event("r1", 3, claybot.EventAssistantMessage, runs.AssistantMessage{Step: 2, Model: "m", MS: 500}))
			m.Event("a1", event("r1", 5, claybot.EventToolSucceeded, runs.ToolEnded{CallID: "c1", Tool: "look", MS: 1900}))
			m.Event("a2", event("r2", 1, claybot.EventRunStarted, runs.MessagesTaken{}))
			m.Event("a2", event("r2", 2, claybot.EventAssistantMessage, runs.AssistantMessage{Step: 1, Model: "m", MS: 601_000}))
			m.Event("a2", event("r2", 3, claybot.EventRunFinished, runs.RunFinished{}))
			m.Event("a1", event("r1", 60, claybot.EventRunFinished, runs.RunFinished{}))
			text, _ := get(t, serve(t, m).URL+"/metrics", tt.accept)
			var got []string
			for l := range strings.Lines(text) {
				if !strings.Contains(l, "trace_id") {
					continue
				}
				found := line.FindStringSubmatch(strings.TrimSuffix(l, "\n"))
				if found == nil {
					t.Fatalf("malformed line %q", l)
				}
				got = append(got, strings.Join(found[1:], " "))
			}
			slices.Sort(got)
			slices.Sort(tt.want)
			if !slices.Equal(got, tt.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}

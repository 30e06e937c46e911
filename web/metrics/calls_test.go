package metrics

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/runs"
)

// tree are the spans of a trace, each below its parent, with times since the beginning of the root in seconds,
// classes of errors, and the attributes that are asked for.
func tree(all []got, parent string, indent int, began int64, attrs ...string) (lines []string) {
	for _, s := range all {
		if s.parent != parent {
			continue
		}
		if began == 0 {
			began = s.start
		}
		line := strings.Repeat("  ", indent) + fmt.Sprintf("%s %.1f-%.1f", s.name, float64(s.start-began)/1e9, float64(s.end-began)/1e9)
		if s.failed {
			line += fmt.Sprintf(" failed %v", s.attrs["error.type"])
		}
		for _, key := range attrs {
			if v, ok := s.attrs[key]; ok {
				line += fmt.Sprintf(" %s=%v", key[strings.LastIndexByte(key, '.')+1:], v)
			}
		}
		lines = append(lines, line)
		lines = append(lines, tree(all, s.id, indent+1, began, attrs...)...)
	}
	return lines
}

// traced are the spans of events as a receiver reads them.
func traced(t *testing.T, tr *tracer) []got {
	t.Helper()
	var spans []tracedSpan
	for _, s := range tr.all() {
		spans = append(spans, tracedSpan{tr.trace, s})
	}
	all, err := readTraces(otlpBody("1", spans))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

const callersSpan = "00f067aa0ba902b7"

// A trace shows the tries of model calls, the waits between them, and which of them answered.
func TestTraceOfTries(t *testing.T) {
	try := func(seq int64, d runs.ModelCallFailed) claybot.Event {
		return event("r", seq, claybot.EventModelCallFailed, d)
	}
	started := event("r", 10, claybot.EventRunStarted, runs.MessagesTaken{
		WaitedMS: 3000, Traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-" + callersSpan + "-01",
	})
	down := func(seq int64, step, n int, again bool) claybot.Event {
		d := runs.ModelCallFailed{Step: step, Route: "fast", Try: n, Class: "transient", Status: 503, MS: 1000, Again: again}
		if again {
			d.WaitMS = 500
		}
		return try(seq, d)
	}
	for _, tt := range []struct {
		name   string
		events []claybot.Event
		want   []string
	}{
		{"an answer after a retry and a fallback", []claybot.Event{
			started, down(12, 1, 1, true), down(14, 1, 2, false),
			event("r", 14, claybot.EventProviderSwitched, runs.ProviderSwitched{From: "fast", To: "slow", Class: "transient"}),
			event("r", 17, claybot.EventAssistantMessage, runs.AssistantMessage{Step: 1, Model: "slow", MS: 6000}),
			event("r", 18, claybot.EventRunFinished, runs.RunFinished{}),
		}, []string{
			"invoke_agent 0.0-11.0",
			"  queue 0.0-3.0",
			"  chat slow 4.0-10.0 tries=3",
			"    attempt fast 4.0-5.0 failed transient try=1 status_code=503",
			"    retry 5.0-5.5",
			"    attempt fast 6.0-7.0 failed transient try=2 status_code=503",
			"    attempt slow 7.0-10.0",
		}},
		{"no answer", []claybot.Event{
			started, down(12, 1, 1, true), try(13, runs.ModelCallFailed{Step: 1, Route: "fast", Try: 2, Class: "permanent", Status: 401, MS: 100}),
			event("r", 13, claybot.EventRunFailed, runs.RunFailed{Code: runs.CodeModel}),
		}, []string{
			"invoke_agent 0.0-6.0 failed model_error",
			"  queue 0.0-3.0",
			"  chat 4.0-6.0 failed permanent tries=2",
			"    attempt fast 4.0-5.0 failed transient try=1 status_code=503",
			"    retry 5.0-5.5",
			"    attempt fast 5.9-6.0 failed permanent try=2 status_code=401",
		}},
		{"stopped before the second try", []claybot.Event{
			started, down(12, 1, 1, true), event("r", 12, claybot.EventRunCanceled, runs.RunCanceled{By: "user"}),
		}, []string{
			"invoke_agent 0.0-5.0 failed canceled",
			"  queue 0.0-3.0",
			"  chat 4.0-5.0 failed transient tries=1",
			"    attempt fast 4.0-5.0 failed transient try=1 status_code=503",
			"    retry 5.0-5.0",
		}},
		{"a pause until the end", []claybot.Event{
			started, event("r", 11, claybot.EventAwaitingInput, runs.AwaitingInput{Reason: claybot.AwaitApproval, Questions: []claybot.Question{{}}}),
			event("r", 15, claybot.EventRunCanceled, runs.RunCanceled{By: "user"}),
		}, []string{
			"invoke_agent 0.0-8.0 failed canceled",
			"  queue 0.0-3.0",
			"  wait approval 4.0-8.0 reason=approval questions=1",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tr := newTracer("r", "a", "openai")
			for _, e := range tt.events {
				tr.add(e)
			}
			all := traced(t, tr)
			got := tree(all, callersSpan, 0, 0, "claybot.tries", "claybot.try", "http.response.status_code", "claybot.wait.reason", "claybot.wait.questions")
			if !slices.Equal(got, tt.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
			seen := make(map[string]bool)
			for _, s := range all {
				if s.trace != "4bf92f3577b34da6a3ce929d0e0e4736" || seen[s.id] {
					t.Errorf("span %+v", s)
				}
				seen[s.id] = true
			}
		})
	}
}

// A run that failed tells which models were asked and why none answered, in a trace that the caller began.
func TestTraceOfAFailedRun(t *testing.T) {
	srv := newReceiver(t)
	r := newRig(t, Config{OTLP: OTLP{Endpoint: srv.URL}}, nil)
	refused := func(name string, status int) llm.Route {
		e := llm.Failed(llm.Permanent, "secret")
		e.Status = status
		return llm.Route{Name: name, Model: llm.Retried(llmtest.NewScript(llmtest.Reply{Err: e}), llm.Retries{Route: name})}
	}
	r.model = llm.Fallback(nil, refused("fast", 401), refused("slow", 404))
	r.sayIn("00-4bf92f3577b34da6a3ce929d0e0e4736-"+callersSpan+"-01", "m1", "secret")
	r.line.arrived(t, 1)
	r.stop()
	all := slices.DeleteFunc(srv.taken(1), func(s got) bool { return s.name == "queue" }) // the machine may have been fast
	for i := range all {
		all[i].start, all[i].end = 1, 1
		if all[i].trace != "4bf92f3577b34da6a3ce929d0e0e4736" {
			t.Errorf("span %+v", all[i])
		}
	}
	// A send that ended before the run's other spans were made stands before them.
	slices.SortStableFunc(all, func(a, b got) int { return strings.Compare(a.name, b.name) })
	want := []string{
		"invoke_agent 0.0-0.0 failed model_refused",
		"  chat 0.0-0.0 failed permanent",
		"    attempt fast 0.0-0.0 failed permanent status_code=401",
		"    attempt slow 0.0-0.0 failed permanent status_code=404",
		"  send chat 0.0-0.0",
	}
	if got := tree(all, callersSpan, 0, 0, "http.response.status_code"); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if text := fmt.Sprint(all); strings.Contains(text, "secret") {
		t.Errorf("a text leaves: %s", text)
	}
}

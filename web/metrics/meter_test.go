package metrics

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/runs"
)

// event is the nth event of a run, n seconds after a moment.
func event(run claybot.RunID, n int64, kind claybot.EventType, data any) claybot.Event {
	raw, err := json.Marshal(data)
	if err != nil {
		panic(err)
	}
	return claybot.Event{V: 1, Run: run, Seq: n, Type: kind, At: 1_700_000_000_000 + claybot.Time(n)*1000, Data: raw}
}

// story is a run with everything in it; texts hold the word secret.
func story(run claybot.RunID) []claybot.Event {
	usage := &claybot.Usage{Input: 100, CachedInput: 40, Output: 7, CostMicroUSD: 2500}
	return []claybot.Event{
		event(run, 1, claybot.EventRunStarted, runs.MessagesTaken{Agent: "a1", Messages: []claybot.MessageID{"m1"}}),
		event(run, 2, claybot.EventAssistantMessage, runs.AssistantMessage{Step: 1, Text: "secret", Model: "gpt-5", MS: 500, Tokens: usage}),
		event(run, 3, claybot.EventToolCalled, runs.ToolStarted{CallID: "c1", Tool: "look", ArgsPreview: `{"secret":1}`}),
		event(run, 5, claybot.EventToolSucceeded, runs.ToolEnded{CallID: "c1", Tool: "look", MS: 1900, Preview: "secret"}),
		event(run, 6, claybot.EventToolFailed, runs.ToolEnded{CallID: "c2", Tool: "made up", Error: "secret"}),
		event(run, 7, claybot.EventMessagesInjected, runs.MessagesTaken{Messages: []claybot.MessageID{"m2", "m3"}}),
		event(run, 8, claybot.EventAwaitingInput, runs.AwaitingInput{Reason: claybot.AwaitInfo, Questions: []claybot.Question{{Text: "secret"}}}),
		event(run, 9, claybot.EventRunResumed, runs.MessagesTaken{Agent: "a1"}),
		event(run, 10, claybot.EventContextCompacted, runs.ContextCompacted{How: "summary", Tokens: usage}),
		event(run, 11, claybot.EventSubagentStarted, runs.SubagentStarted{Agent: "a2", Name: "secret"}),
		event(run, 12, claybot.EventToolFailed, runs.ToolEnded{CallID: "c3", Tool: "look", MS: 3, Code: "interrupted", Error: "secret"}),
		event(run, 13, claybot.EventAssistantMessage, runs.AssistantMessage{Step: 2, Text: "secret", Model: "gpt-5", MS: 250, Tokens: usage}),
		event(run, 14, claybot.EventRunFinished, runs.RunFinished{Output: "secret"}),
	}
}

// page is what a meter exports now.
func pageOf(t *testing.T, m *Metrics) string {
	t.Helper()
	m.cfg.Serve = yes
	text, _ := get(t, serve(t, m).URL+"/metrics", "")
	return text
}

func TestEvents(t *testing.T) {
	m := New(Config{})
	for _, e := range story("r1") {
		m.Event("a1", e)
	}
	m.Event("a1", event("r2", 1, claybot.EventRunResumed, nil)) // of an earlier process
	m.Event("a1", event("r2", 2, claybot.EventRunFailed, runs.RunFailed{Code: runs.CodeDeadline, Step: 64}))
	m.Event("a2", event("r3", 1, claybot.EventRunStarted, nil))
	m.Event("a2", event("r3", 2, claybot.EventRunCanceled, runs.RunCanceled{By: "user"}))
	m.Event("a2", event("r4", 1, claybot.EventContextCompacted, runs.ContextCompacted{Tokens: &claybot.Usage{Output: 3}}))
	m.Panicked("worker")
	text := pageOf(t, m)
	page := parse(t, text)
	if strings.Contains(text, "secret") || strings.Contains(text, `"a1"`) || strings.Contains(text, "made up") {
		t.Errorf("the page shows what must not leave:\n%s", text)
	}
	for _, tt := range []struct {
		want   float64
		name   string
		labels []string
	}{
		{2, "claybot_runs_started_total", nil},
		{1, "claybot_runs_ended_total", []string{"state", "SUCCEEDED", "code", ""}},
		{1, "claybot_runs_ended_total", []string{"state", "FAILED", "code", "deadline"}},
		{1, "claybot_runs_ended_total", []string{"state", "CANCELED", "code", "user"}},
		{1, "claybot_run_duration_seconds", []string{"state", "SUCCEEDED"}},
		{1, "claybot_run_duration_seconds", []string{"state", "CANCELED"}},
		{3, "claybot_run_steps", nil},
		{1, "claybot_runs_paused_total", []string{"reason", "missing_info"}},
		{2, "claybot_model_call_duration_seconds", []string{"model", "gpt-5"}},
		{180, "claybot_model_tokens_total", []string{"model", "gpt-5", "kind", "input"}},
		{120, "claybot_model_tokens_total", []string{"model", "gpt-5", "kind", "cached_input"}},
		{21, "claybot_model_tokens_total", []string{"model", "gpt-5", "kind", "output"}},
		{3, "claybot_model_tokens_total", []string{"model", "other", "kind", "output"}},
		{1, "claybot_tool_calls_total", []string{"tool", "look", "outcome", "succeeded"}},
		{1, "claybot_tool_calls_total", []string{"tool", "look", "outcome", "interrupted"}},
		{1, "claybot_tool_calls_total", []string{"tool", "other", "outcome", "failed"}},
		{2, "claybot_tool_duration_seconds", []string{"tool", "look"}},
		{2, "claybot_messages_injected_total", nil},
		{2, "claybot_compactions_total", nil},
		{1, "claybot_subagents_started_total", nil},
		{1, "claybot_panics_total", []string{"where", "worker"}},
	} {
		if got := value(t, page, tt.name, tt.labels...); got != tt.want {
			t.Errorf("%s%q = %v, want %v", tt.name, tt.labels, got, tt.want)
		}
	}
	if h := page["claybot_run_duration_seconds"].GetMetric()[1].GetHistogram(); h.GetSampleSum() != 13 {
		t.Errorf("the run took %v s, want 13", h.GetSampleSum())
	}
	if d := page["claybot_tool_duration_seconds"]; len(d.GetMetric()) != 1 {
		t.Errorf("a call that was refused has a duration: %v", d)
	}
}

// Made-up names do not create an unbounded number of series.
func TestHostileNames(t *testing.T) {
	m := New(Config{Models: func() []string { return []string{"configured"} }})
	for i := range 1000 {
		name := fmt.Sprintf("name-%d", i)
		run := claybot.RunID(name)
		m.Received(name, agentsystem.ReceivedAccepted, time.Millisecond)
		m.Sent(claybot.Outgoing{Route: claybot.Route{Connector: name}}, delivery.AttemptFailed, time.Millisecond)
		m.Event("a", event(run, 1, claybot.EventRunStarted, nil))
		m.Event("a", event(run, 2, claybot.EventAssistantMessage, runs.AssistantMessage{Model: name, MS: 1, Tokens: &claybot.Usage{Input: 1}}))
		m.Event("a", event(run, 3, claybot.EventToolFailed, runs.ToolEnded{Tool: name}))
		m.Event("a", event(run, 3, claybot.EventToolCalled, runs.ToolStarted{Tool: "started-" + name}))
		m.Event("a", event(run, 4, claybot.EventToolSucceeded, runs.ToolEnded{Tool: "started-" + name}))
		m.Event("a", event(run, 5, claybot.EventAwaitingInput, runs.AwaitingInput{Reason: claybot.AwaitReason(name)}))
		m.Event("a", event(run, 6, claybot.EventRunFailed, runs.RunFailed{Code: name}))
	}
	m.Event("a", event("r", 1, claybot.EventAssistantMessage, runs.AssistantMessage{Model: "configured", MS: 1}))
	for _, odd := range []string{"", "a\nb", "\x1b[31m", "é", strings.Repeat("x", maxName+1), `"} 1`} {
		m.Event("a", event("r", 1, claybot.EventToolCalled, runs.ToolStarted{Tool: odd}))
		m.Event("a", event("r", 1, claybot.EventToolSucceeded, runs.ToolEnded{Tool: odd}))
	}
	text := pageOf(t, m)
	page := parse(t, text)
	for name, f := range page {
		if len(f.GetMetric()) > 3*maxTools {
			t.Errorf("%s has %d series", name, len(f.GetMetric()))
		}
	}
	if n := strings.Count(text, "\n"); n > 8000 {
		t.Errorf("%d lines", n)
	}
	for _, tt := range []struct {
		want   float64
		name   string
		labels []string
	}{
		{1, "claybot_model_call_duration_seconds", []string{"model", "configured"}},
		{1000 - maxModels, "claybot_model_call_duration_seconds", []string{"model", "other"}},
		{1000, "claybot_tool_calls_total", []string{"tool", "other", "outcome", "failed"}},
		{1000 - maxTools + 6, "claybot_tool_calls_total", []string{"tool", "other", "outcome", "succeeded"}},
		{1000 - maxConnectors, "claybot_sends_total", []string{"connector", "other", "outcome", "failed"}},
	} {
		if got := value(t, page, tt.name, tt.labels...); got != tt.want {
			t.Errorf("%s%q = %v, want %v", tt.name, tt.labels, got, tt.want)
		}
	}
	if strings.Contains(text, "\x1b") {
		t.Error("the page has control characters")
	}
}

// Events that cannot be read break nothing.
func TestBrokenEvents(t *testing.T) {
	m := New(Config{})
	for kind := range runs.Facts {
		for _, data := range []string{"", "null", "[]", `"x"`, "{", `{"step":"x"}`, `{"tokens":[]}`, `{"ms":-5,"tokens":{"input":-1,"costMicroUSD":-3}}`} {
			m.Event("a", claybot.Event{Run: "r", Type: kind, Data: json.RawMessage(data)})
		}
	}
	m.Event("a", claybot.Event{Type: "later"})
	if page := parse(t, pageOf(t, m)); value(t, page, "claybot_runs_ended_total", "state", "FAILED", "code", "other") != 8 {
		t.Errorf("runs that failed: %v", page["claybot_runs_ended_total"])
	}
}

// Runs that never end are not remembered for ever.
func TestOpenRunsAreBounded(t *testing.T) {
	var o openRuns
	for i := range maxOpen + 10 {
		o.begin(claybot.AgentID(fmt.Sprint(i)), openRun{run: "r"})
	}
	o.begin("again", openRun{run: "r"})
	o.begin("again", openRun{run: "s"})
	if len(o.by) != maxOpen || o.of("again", "s").run != "s" || o.of("again", "r").run != "" {
		t.Errorf("%d runs are remembered", len(o.by))
	}
	if o.end("again", "s"); len(o.by) != maxOpen-1 {
		t.Error("an ended run is remembered")
	}
}

// Everything may happen at once.
func TestConcurrent(t *testing.T) {
	m := New(Config{Serve: yes})
	srv := serve(t, m)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			agent := claybot.AgentID(fmt.Sprint("a", i))
			for n := range 50 {
				for _, e := range story(claybot.RunID(fmt.Sprint("r", i, "-", n))) {
					m.Event(agent, e)
				}
				m.Received("chat", agentsystem.ReceivedAccepted, time.Millisecond)
				m.Sent(claybot.Outgoing{Route: claybot.Route{Connector: "chat"}}, delivery.AttemptSent, time.Millisecond)
			}
		})
	}
	wg.Go(func() {
		for range 20 {
			text, _ := get(t, srv.URL+"/metrics", "")
			parse(t, text)
		}
	})
	wg.Wait()
	text, _ := get(t, srv.URL+"/metrics", "")
	page := parse(t, text)
	if got := value(t, page, "claybot_runs_ended_total", "state", "SUCCEEDED", "code", ""); got != 400 {
		t.Errorf("%v runs ended, want 400", got)
	}
	if got := value(t, page, "claybot_run_duration_seconds", "state", "SUCCEEDED"); got != 400 {
		t.Errorf("%v runs were timed, want 400", got)
	}
}

func BenchmarkEvent(b *testing.B) {
	m := New(Config{})
	events := story("r1")
	for b.Loop() {
		for _, e := range events {
			m.Event("a1", e)
		}
	}
}

// yes is what is wanted always.
func yes() bool { return true }

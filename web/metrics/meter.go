package metrics

import (
	"cmp"
	"encoding/json"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
)

// Received implements agentsystem.Meter.
func (m *Metrics) Received(connector, outcome string, took time.Duration) {
	connector = m.live.connectors.learn(connector)
	m.live.by["messages_received_total"].add(1, connector, outcome)
	m.live.by["message_receive_duration_seconds"].observe(took.Seconds(), connector)
}

// Rated implements agentsystem.Meter.
func (m *Metrics) Rated(connector string, vote claybot.Vote) {
	m.live.by["feedback_total"].add(1, m.live.connectors.learn(connector), string(vote))
}

// Sent implements agentsystem.Meter.
func (m *Metrics) Sent(o claybot.Outgoing, outcome string, took time.Duration) {
	connector := m.live.connectors.learn(o.Route.Connector)
	m.live.by["sends_total"].add(1, connector, outcome)
	if took <= 0 {
		return // nothing was sent
	}
	m.live.by["send_duration_seconds"].observe(took.Seconds(), connector)
	if o.Run != "" {
		m.exporter.add(item{run: o.Run, agent: o.Agent, span: sendSpan(o, connector, outcome, took)})
	}
}

// Panicked implements agentsystem.Meter.
func (m *Metrics) Panicked(where string) { m.live.by["panics_total"].add(1, where) }

// Event implements agentsystem.Meter.
func (m *Metrics) Event(agent claybot.AgentID, e claybot.Event) {
	l := m.live
	switch e.Type {
	case claybot.EventRunStarted:
		l.by["runs_started_total"].add(1)
		l.open.begin(agent, openRun{run: e.Run, began: e.At, trace: m.traceOf(e)})
	case claybot.EventRunResumed:
		if l.open.of(agent, e.Run).run == "" { // an earlier process began it
			l.open.begin(agent, openRun{run: e.Run, trace: m.traceOf(e)})
		}
	case claybot.EventAssistantMessage:
		l.answered(agent, e)
	case claybot.EventModelCallFailed:
		if d, ok := decoded[runs.ModelCallFailed](e); ok {
			l.by["model_calls_failed_total"].add(1, l.models.of(d.Route), l.codes.learn(d.Class))
		}
	case claybot.EventToolCalled:
		if d, ok := decoded[runs.ToolStarted](e); ok { // it was found and is about to run, so it exists
			l.tools.learn(d.Tool)
		}
	case claybot.EventToolSucceeded, claybot.EventToolFailed:
		l.toolEnded(agent, e)
	case claybot.EventContextCompacted:
		l.compacted(agent, e)
	case claybot.EventMessagesInjected:
		if d, ok := decoded[runs.MessagesTaken](e); ok {
			l.by["messages_injected_total"].add(float64(len(d.Messages)))
		}
	case claybot.EventAwaitingInput:
		if d, ok := decoded[runs.AwaitingInput](e); ok {
			l.by["runs_paused_total"].add(1, l.codes.learn(string(d.Reason)))
		}
	case claybot.EventSubagentStarted:
		l.by["subagents_started_total"].add(1)
	default:
	}
	if !e.Type.Ends() {
		return
	}
	l.ended(agent, e)
	m.exporter.add(item{run: e.Run, agent: agent})
}

// traceOf is the trace to which a run is exported that begins or goes on; empty where none is.
func (m *Metrics) traceOf(e claybot.Event) string {
	if !m.exporter.wanted() {
		return ""
	}
	t := newTracer(e.Run, "", "")
	t.add(e)
	return t.trace
}

// decoded is the data of an event; ok is false when it cannot be decoded.
func decoded[T any](e claybot.Event) (d T, ok bool) {
	err := json.Unmarshal(e.Data, &d)
	return d, err == nil
}

func (l *live) answered(agent claybot.AgentID, e claybot.Event) {
	d, ok := decoded[runs.AssistantMessage](e)
	if !ok {
		return
	}
	model := l.models.learn(d.Model)
	l.open.update(agent, e.Run, func(o *openRun) { o.steps, o.model = max(o.steps, d.Step), model })
	if d.MS > 0 {
		l.by["model_call_duration_seconds"].observeIn(l.open.of(agent, e.Run).trace, seconds(d.MS), model)
	}
	l.used(model, d.Tokens)
}

func (l *live) used(model string, u *claybot.Usage) {
	if u == nil {
		return
	}
	l.by["model_tokens_total"].add(float64(max(u.Input-u.CachedInput, 0)), model, "input")
	l.by["model_tokens_total"].add(float64(max(u.CachedInput, 0)), model, "cached_input")
	l.by["model_tokens_total"].add(float64(max(u.Output, 0)), model, "output")
	l.by["model_cost_usd_total"].add(float64(max(u.CostMicroUSD, 0))/1e6, model)
}

func (l *live) toolEnded(agent claybot.AgentID, e claybot.Event) {
	d, ok := decoded[runs.ToolEnded](e)
	if !ok {
		return
	}
	tool, outcome := l.tools.of(d.Tool), "failed"
	switch {
	case e.Type == claybot.EventToolSucceeded:
		tool, outcome = l.tools.learn(d.Tool), "succeeded"
	case d.Code == "interrupted":
		outcome = "interrupted"
	}
	l.by["tool_calls_total"].add(1, tool, outcome)
	if outcome == "succeeded" || d.MS > 0 { // others were refused and took nothing
		l.by["tool_duration_seconds"].observeIn(l.open.of(agent, e.Run).trace, seconds(max(d.MS, 0)), tool)
	}
}

func (l *live) compacted(agent claybot.AgentID, e claybot.Event) {
	d, ok := decoded[runs.ContextCompacted](e)
	if !ok {
		return
	}
	l.by["compactions_total"].add(1)
	l.used(cmp.Or(l.open.of(agent, e.Run).model, other), d.Tokens) // the model that responded last wrote the summary
}

// ended counts the end of a run.
func (l *live) ended(agent claybot.AgentID, e claybot.Event) {
	o := l.open.end(agent, e.Run)
	state, code := claybot.RunSucceeded, ""
	switch e.Type {
	case claybot.EventRunFailed:
		d, _ := decoded[runs.RunFailed](e) // it failed even without a code
		state, code = claybot.RunFailed, l.codes.learn(d.Code)
		o.steps = max(o.steps, d.Step)
	case claybot.EventRunCanceled:
		d, _ := decoded[runs.RunCanceled](e) // likewise
		state, code = claybot.RunCanceled, l.codes.learn(d.By)
	default:
	}
	l.by["runs_ended_total"].add(1, string(state), code)
	l.by["run_steps"].observe(float64(o.steps))
	if o.began != 0 {
		l.by["run_duration_seconds"].observeIn(o.trace, seconds(max(int64(e.At-o.began), 0)), string(state))
	}
}

func seconds(ms int64) float64 { return float64(ms) / 1000 }

// An openRun is what must be remembered of a run until it ends.
type openRun struct {
	run   claybot.RunID
	began claybot.Time // 0: in an earlier process
	steps int
	model string // that answered last
	trace string // to which it is exported; empty: to none
}

// maxOpen bounds the runs that are remembered. Those of deleted agents never
// end.
const maxOpen = 20_000

// openRuns are the unfinished runs, of which an agent has one at most. The zero
// value is ready.
type openRuns struct {
	mu sync.Mutex
	by map[claybot.AgentID]openRun
}

func (o *openRuns) begin(agent claybot.AgentID, r openRun) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.by == nil {
		o.by = make(map[claybot.AgentID]openRun)
	}
	if _, known := o.by[agent]; !known && len(o.by) >= maxOpen {
		for some := range o.by { // its end is not timed
			delete(o.by, some)
			break
		}
	}
	o.by[agent] = r
}

// of is the run of an agent if it is that one, else nothing.
func (o *openRuns) of(agent claybot.AgentID, run claybot.RunID) openRun {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r := o.by[agent]; r.run == run {
		return r
	}
	return openRun{}
}

func (o *openRuns) update(agent claybot.AgentID, run claybot.RunID, change func(*openRun)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r := o.by[agent]; r.run == run {
		change(&r)
		o.by[agent] = r
	}
}

// end forgets the run and returns what was known of it.
func (o *openRuns) end(agent claybot.AgentID, run claybot.RunID) openRun {
	o.mu.Lock()
	defer o.mu.Unlock()
	r := o.by[agent]
	if r.run != run {
		return openRun{}
	}
	delete(o.by, agent)
	return r
}

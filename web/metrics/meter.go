package metrics

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
)

// Received implements agentsystem.Meter.
func (m *Metrics) Received(connector, outcome string, took time.Duration) {
	connector = m.live.connectors.learn(connector)
	m.live.received.add(1, connector, outcome)
	m.live.receiveTook.observe(took.Seconds(), connector)
}

// Sent implements agentsystem.Meter.
func (m *Metrics) Sent(o claybot.Outgoing, outcome string, took time.Duration) {
	connector := m.live.connectors.learn(o.Route.Connector)
	m.live.sends.add(1, connector, outcome)
	if took <= 0 {
		return // nothing left
	}
	m.live.sendTook.observe(took.Seconds(), connector)
	if m.exporter != nil && o.Run != "" {
		m.exporter.add(item{run: o.Run, agent: o.Agent, span: sendSpan(o, connector, outcome, took)})
	}
}

// Panicked implements agentsystem.Meter.
func (m *Metrics) Panicked(where string) { m.live.panics.add(1, where) }

// Event implements agentsystem.Meter.
func (m *Metrics) Event(agent claybot.AgentID, e claybot.Event) {
	l := m.live
	switch e.Type {
	case claybot.EventRunStarted:
		l.runsStarted.add(1)
		l.open.begin(agent, openRun{run: e.Run, began: e.At})
	case claybot.EventRunResumed:
		if l.open.of(agent, e.Run).run == "" { // an earlier process began it
			l.open.begin(agent, openRun{run: e.Run})
		}
	case claybot.EventAssistantMessage:
		l.answered(agent, e)
	case claybot.EventToolCalled:
		var d runs.ToolStarted
		if decode(e, &d) { // it was found and is about to run, so it exists
			l.tools.learn(d.Tool)
		}
	case claybot.EventToolSucceeded, claybot.EventToolFailed:
		l.toolEnded(e)
	case claybot.EventContextCompacted:
		l.compacted(agent, e)
	case claybot.EventMessagesInjected:
		var d runs.MessagesTaken
		if decode(e, &d) {
			l.injected.add(float64(len(d.Messages)))
		}
	case claybot.EventAwaitingInput:
		var d runs.AwaitingInput
		if decode(e, &d) {
			l.runsPaused.add(1, l.codes.learn(string(d.Reason)))
		}
	case claybot.EventSubagentStarted:
		l.subagents.add(1)
	default:
	}
	if !e.Type.Ends() {
		return
	}
	l.ended(agent, e)
	if m.exporter != nil {
		m.exporter.add(item{run: e.Run, agent: agent})
	}
}

// decode reads the data of an event. What cannot be read is not counted.
func decode(e claybot.Event, to any) bool { return json.Unmarshal(e.Data, to) == nil }

func (l *live) answered(agent claybot.AgentID, e claybot.Event) {
	var d runs.AssistantMessage
	if !decode(e, &d) {
		return
	}
	model := l.models.learn(d.Model)
	l.open.update(agent, e.Run, func(o *openRun) { o.steps, o.model = max(o.steps, d.Step), model })
	if d.MS > 0 {
		l.modelTook.observe(seconds(d.MS), model)
	}
	l.used(model, d.Tokens)
}

func (l *live) used(model string, u *claybot.Usage) {
	if u == nil {
		return
	}
	l.modelTokens.add(float64(max(u.Input-u.CachedInput, 0)), model, "input")
	l.modelTokens.add(float64(max(u.CachedInput, 0)), model, "cached_input")
	l.modelTokens.add(float64(max(u.Output, 0)), model, "output")
	l.spent.add(float64(max(u.CostMicroUSD, 0))/1e6, model)
}

func (l *live) toolEnded(e claybot.Event) {
	var d runs.ToolEnded
	if !decode(e, &d) {
		return
	}
	tool, outcome := l.tools.of(d.Tool), "failed"
	switch {
	case e.Type == claybot.EventToolSucceeded:
		tool, outcome = l.tools.learn(d.Tool), "succeeded"
	case d.Code == "interrupted":
		outcome = "interrupted"
	}
	l.toolCalls.add(1, tool, outcome)
	if outcome == "succeeded" || d.MS > 0 { // others were refused and took nothing
		l.toolTook.observe(seconds(max(d.MS, 0)), tool)
	}
}

func (l *live) compacted(agent claybot.AgentID, e claybot.Event) {
	var d runs.ContextCompacted
	if !decode(e, &d) {
		return
	}
	l.compactions.add(1)
	model := l.open.of(agent, e.Run).model // the one that answered last has summarized
	if model == "" {
		model = other
	}
	l.used(model, d.Tokens)
}

// ended counts the end of a run.
func (l *live) ended(agent claybot.AgentID, e claybot.Event) {
	o := l.open.end(agent, e.Run)
	state, code := claybot.RunSucceeded, ""
	switch e.Type {
	case claybot.EventRunFailed:
		var d runs.RunFailed
		_ = decode(e, &d) // without a code it failed all the same
		state, code = claybot.RunFailed, l.codes.learn(d.Code)
		o.steps = max(o.steps, d.Step)
	case claybot.EventRunCanceled:
		var d runs.RunCanceled
		_ = decode(e, &d) // likewise
		state, code = claybot.RunCanceled, l.codes.learn(d.By)
	default:
	}
	l.runsEnded.add(1, string(state), code)
	l.runSteps.observe(float64(o.steps))
	if o.began != 0 {
		l.runTook.observe(seconds(max(int64(e.At-o.began), 0)), string(state))
	}
}

func seconds(ms int64) float64 { return float64(ms) / 1000 }

// An openRun is what must be remembered of a run until it ends.
type openRun struct {
	run   claybot.RunID
	began claybot.Time // 0: in an earlier process
	steps int
	model string // that answered last
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
	r := o.of(agent, run)
	if r.run == "" {
		return r
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.by, agent)
	return r
}

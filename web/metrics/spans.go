package metrics

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/runs"
)

// Kinds of spans, as OTLP counts them.
const (
	spanInternal = 1
	spanClient   = 3
	spanProducer = 4
)

// The most spans, and events of the root span, that one run has in its trace.
const (
	maxSpans      = 1000
	maxSpanEvents = 128
)

// A span is a piece of time within a trace.
type span struct {
	id, name   string // id: hexadecimal, as parent
	parent     string
	kind       int
	start, end time.Time
	attrs      []attribute
	events     []spanEvent
	err        string // class of the error; empty for none
	step       int    // of the loop, of a try
}

// A spanEvent is a moment within a span.
type spanEvent struct {
	name string
	at   time.Time
}

// An attribute is a string or an int64 with a name of the semantic conventions.
type attribute struct {
	key   string
	value any
}

// sendSpan is the span of one attempt to send a message of a run.
func sendSpan(o claybot.Outgoing, connector, outcome string, took time.Duration) *span {
	end := time.Now()
	s := &span{
		id:     runs.SpanID(8, "send", o.ID, strconv.Itoa(o.Attempts), strconv.FormatInt(end.UnixNano(), 10)),
		parent: runs.RootSpan(o.Run), name: "send " + connector, kind: spanProducer, start: end.Add(-took), end: end,
		attrs: []attribute{
			{"messaging.operation.name", "send"},
			{"messaging.operation.type", "send"},
			{"messaging.system", connector},
			{"claybot.outgoing.kind", string(o.Kind)},
			{"claybot.outgoing.outcome", outcome},
		},
	}
	if outcome != delivery.AttemptSent {
		s.err = outcome
	}
	return s
}

// A tracer makes the spans of one run from its events, without any text of the run.
type tracer struct {
	run      claybot.RunID
	agent    claybot.AgentID
	provider string
	trace    string // the id of the trace
	root     span
	spans    []span
	called   map[string]claybot.Time // when the tool of a call began
	paused   span                    // the pause that has not ended; empty for none
	failed   []span                  // tries of the model call that has not ended, and the waits between them
	usage    claybot.Usage
	model    string // that responded last
	taken    map[string]bool
	left     int // spans over the limit
}

func newTracer(run claybot.RunID, agent claybot.AgentID, provider string) *tracer {
	return &tracer{
		run: run, agent: agent, provider: provider, called: make(map[string]claybot.Time), taken: make(map[string]bool),
		trace: runs.TraceOf(run, nil).ID,
		root:  span{id: runs.RootSpan(run), name: "invoke_agent", kind: spanInternal},
	}
}

// add takes the events of the run in their order.
func (t *tracer) add(e claybot.Event) {
	at := e.At.Time()
	if t.root.start.IsZero() {
		t.root.start, t.root.end = at, at
	}
	if at.After(t.root.end) { // a clock may have been set back
		t.root.end = at
	}
	switch e.Type {
	case claybot.EventRunStarted, claybot.EventRunResumed:
		t.begun(e)
	case claybot.EventModelCallFailed:
		t.tried(e)
	case claybot.EventAssistantMessage:
		t.answered(e)
	case claybot.EventToolCalled:
		if d, ok := decoded[runs.ToolStarted](e); ok {
			t.called[d.CallID] = e.At
		}
	case claybot.EventToolSucceeded, claybot.EventToolFailed:
		t.tool(e)
	case claybot.EventAwaitingInput:
		t.pause(e)
	case claybot.EventRunFailed:
		d, _ := decoded[runs.RunFailed](e) // it failed even without a code
		t.root.err = cmp.Or(label(d.Code), "_OTHER")
	case claybot.EventRunCanceled:
		t.root.err = "canceled"
	default:
	}
	if moments[e.Type] && len(t.root.events) < maxSpanEvents {
		t.root.events = append(t.root.events, spanEvent{string(e.Type), at})
	}
	if e.Type.Ends() {
		t.resumed(at)
		t.unanswered(at)
	}
}

// moments are the types of events that the span of a run has.
var moments = map[claybot.EventType]bool{
	claybot.EventRunResumed: true, claybot.EventAwaitingInput: true, claybot.EventMessagesInjected: true, claybot.EventContextCompacted: true,
	claybot.EventPolicySwitched: true, claybot.EventProviderSwitched: true, claybot.EventBudgetReached: true, claybot.EventSubagentStarted: true,
}

// begun begins the run, from when the oldest of its messages waited, or goes on with it.
func (t *tracer) begun(e claybot.Event) {
	d, ok := decoded[runs.MessagesTaken](e)
	if !ok {
		return
	}
	if caller := claybot.ParseTrace(d.Traceparent); caller.ID != "" {
		t.trace, t.root.parent = caller.ID, caller.Span
	}
	at := e.At.Time()
	t.resumed(at)
	if waited := milliseconds(d.WaitedMS); waited > 0 {
		t.root.start = at.Add(-waited)
		t.child(span{id: runs.SpanID(8, "queue", string(t.run)), name: "queue", kind: spanInternal, start: t.root.start, end: at})
	}
}

// pause begins to wait.
func (t *tracer) pause(e claybot.Event) {
	d, _ := decoded[runs.AwaitingInput](e) // it waits even without a reason
	t.resumed(e.At.Time())
	t.paused = span{
		id: runs.SpanID(8, "wait", string(t.run), strconv.FormatInt(e.Seq, 10)), kind: spanInternal,
		name: strings.TrimSpace("wait " + label(string(d.Reason))), start: e.At.Time(),
		attrs: []attribute{{"claybot.wait.reason", label(string(d.Reason))}, {"claybot.wait.questions", int64(len(d.Questions))}},
	}
}

// resumed ends what the run waited for.
func (t *tracer) resumed(at time.Time) {
	if t.paused.id != "" {
		t.paused.end = at
		t.child(t.paused)
		t.paused = span{}
	}
}

func (t *tracer) tool(e claybot.Event) {
	d, ok := decoded[runs.ToolEnded](e)
	if !ok {
		return
	}
	end := e.At.Time()
	start := end.Add(-milliseconds(d.MS))
	if at, ok := t.called[d.CallID]; ok {
		start = at.Time()
		delete(t.called, d.CallID)
	}
	id := runs.ToolSpan(t.run, d.CallID)
	if t.taken[id] { // a model has used the id of the call again
		id = runs.SpanID(8, "tool", string(t.run), d.CallID, strconv.FormatInt(e.Seq, 10))
	}
	t.taken[id] = true
	tool := label(d.Tool)
	s := span{
		id: id, kind: spanInternal,
		name: "execute_tool " + tool, start: start, end: end,
		attrs: []attribute{
			{"gen_ai.operation.name", "execute_tool"},
			{"gen_ai.tool.name", tool},
			{"gen_ai.tool.call.id", label(d.CallID)},
			{"gen_ai.tool.type", "function"},
		},
	}
	if e.Type == claybot.EventToolFailed {
		s.err = cmp.Or(label(d.Code), "tool_error")
	}
	t.child(s)
}

func (t *tracer) child(s span) {
	if len(t.spans) >= maxSpans-1 {
		t.left++
		return
	}
	s.parent = cmp.Or(s.parent, t.root.id)
	if s.start.Before(t.root.start) { // clocks of the two were read apart
		s.start = t.root.start
	}
	if s.end.Before(s.start) {
		s.end = s.start
	}
	t.spans = append(t.spans, s)
}

// all are the spans of the run, its own first.
func (t *tracer) all() []span {
	root := t.root
	root.attrs = []attribute{
		{"gen_ai.operation.name", "invoke_agent"},
		{"gen_ai.provider.name", t.provider},
		{"gen_ai.agent.id", string(t.agent)},
		{"gen_ai.conversation.id", string(t.agent)},
		{"claybot.run.id", string(t.run)},
	}
	if t.model != "" {
		root.attrs = append(root.attrs, attribute{"gen_ai.request.model", t.model})
	}
	if t.usage != (claybot.Usage{}) {
		root.attrs = append(root.attrs, usage(t.usage)...)
	}
	if t.left > 0 {
		root.attrs = append(root.attrs, attribute{"claybot.spans.left_out", int64(t.left)})
	}
	return append([]span{root}, t.spans...)
}

func usage(u claybot.Usage) []attribute {
	return []attribute{
		{"gen_ai.usage.input_tokens", u.Input},
		{"gen_ai.usage.output_tokens", u.Output},
		{"gen_ai.usage.cache_read.input_tokens", u.CachedInput},
	}
}

// milliseconds is a length of time that an event has; none is negative.
func milliseconds(ms int64) time.Duration { return time.Duration(max(ms, 0)) * time.Millisecond }

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// label bounds a name that a model made up.
func label(s string) string { return s[:min(len(s), maxName)] }

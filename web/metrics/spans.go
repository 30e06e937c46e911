package metrics

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
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

// traceID is the id of the trace of a run, a hash of the run id, so that a trace that
// is sent again is the same.
func traceID(run claybot.RunID) string { return digest(16, "trace", string(run)) }

// rootID is the id of the span of the run as a whole.
func rootID(run claybot.RunID) string { return digest(8, "run", string(run)) }

// digest makes an id of size bytes.
func digest(size int, parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(strconv.Quote(p))) // no part can be taken for two
	}
	return hex.EncodeToString(h.Sum(nil)[:size])
}

// sendSpan is the span of one attempt to send a message of a run.
func sendSpan(o claybot.Outgoing, connector, outcome string, took time.Duration) *span {
	end := time.Now()
	s := &span{
		id:     digest(8, "send", o.ID, strconv.Itoa(o.Attempts), strconv.FormatInt(end.UnixNano(), 10)),
		parent: rootID(o.Run), name: "send " + connector, kind: spanProducer, start: end.Add(-took), end: end,
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
	root     span
	spans    []span
	called   map[string]claybot.Time // when the tool of a call began
	usage    claybot.Usage
	model    string // that responded last
	left     int    // spans over the limit
}

func newTracer(run claybot.RunID, agent claybot.AgentID, provider string) *tracer {
	return &tracer{
		run: run, agent: agent, provider: provider, called: make(map[string]claybot.Time),
		root: span{id: rootID(run), name: "invoke_agent", kind: spanInternal},
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
	case claybot.EventAssistantMessage:
		t.answered(e)
	case claybot.EventToolCalled:
		if d, ok := decoded[runs.ToolStarted](e); ok {
			t.called[d.CallID] = e.At
		}
	case claybot.EventToolSucceeded, claybot.EventToolFailed:
		t.tool(e)
	case claybot.EventRunResumed, claybot.EventAwaitingInput, claybot.EventMessagesInjected, claybot.EventContextCompacted,
		claybot.EventPolicySwitched, claybot.EventProviderSwitched, claybot.EventBudgetReached, claybot.EventSubagentStarted:
		if len(t.root.events) < maxSpanEvents {
			t.root.events = append(t.root.events, spanEvent{string(e.Type), at})
		}
	case claybot.EventRunFailed:
		d, _ := decoded[runs.RunFailed](e) // it failed even without a code
		t.root.err = cmp.Or(label(d.Code), "_OTHER")
	case claybot.EventRunCanceled:
		t.root.err = "canceled"
	default:
	}
}

func (t *tracer) answered(e claybot.Event) {
	d, ok := decoded[runs.AssistantMessage](e)
	if !ok {
		return
	}
	end := e.At.Time()
	s := span{
		id: digest(8, "chat", string(t.run), strconv.FormatInt(e.Seq, 10)), kind: spanClient,
		name: "chat", start: end.Add(-time.Duration(max(d.MS, 0)) * time.Millisecond), end: end,
		attrs: []attribute{
			{"gen_ai.operation.name", "chat"},
			{"gen_ai.provider.name", t.provider},
		},
	}
	if model := label(d.Model); model != "" {
		t.model = model
		s.name += " " + model
		s.attrs = append(s.attrs, attribute{"gen_ai.request.model", model}, attribute{"gen_ai.response.model", model})
	}
	if d.Tokens != nil {
		t.usage = t.usage.Add(*d.Tokens)
		s.attrs = append(s.attrs, usage(*d.Tokens)...)
	}
	t.child(s)
}

func (t *tracer) tool(e claybot.Event) {
	d, ok := decoded[runs.ToolEnded](e)
	if !ok {
		return
	}
	end := e.At.Time()
	start := end.Add(-time.Duration(max(d.MS, 0)) * time.Millisecond)
	if at, ok := t.called[d.CallID]; ok {
		start = at.Time()
		delete(t.called, d.CallID)
	}
	tool := label(d.Tool)
	s := span{
		id: digest(8, "tool", string(t.run), d.CallID, strconv.FormatInt(e.Seq, 10)), kind: spanInternal,
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
	s.parent = t.root.id
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

// label bounds a name that a model made up.
func label(s string) string { return s[:min(len(s), maxName)] }

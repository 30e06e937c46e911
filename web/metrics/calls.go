package metrics

import (
	"cmp"
	"strconv"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
)

// tried is a try of a model call that failed, and the wait for the next one.
func (t *tracer) tried(e claybot.Event) {
	d, ok := decoded[runs.ModelCallFailed](e)
	if !ok || len(t.failed) >= maxSpans {
		return
	}
	end, seq := e.At.Time(), strconv.FormatInt(e.Seq, 10)
	s := t.attempt(d.Route, runs.SpanID(8, "try", string(t.run), seq), end.Add(-milliseconds(d.MS)), end)
	s.step, s.err = d.Step, cmp.Or(label(d.Class), "_OTHER")
	s.attrs = append(s.attrs, attribute{"claybot.try", int64(d.Try)})
	if d.Status != 0 {
		s.attrs = append(s.attrs, attribute{"http.response.status_code", int64(d.Status)})
	}
	t.failed = append(t.failed, s)
	if d.Again {
		t.failed = append(t.failed, span{id: runs.SpanID(8, "retry", string(t.run), seq), name: "retry", kind: spanInternal, start: end, end: end.Add(milliseconds(d.WaitMS)), step: d.Step})
	}
}

// attempt is the span of one try of a model call.
func (t *tracer) attempt(model, id string, start, end time.Time) span {
	s := span{id: id, name: "attempt", kind: spanClient, start: start, end: end, attrs: t.chatting()}
	if model = label(model); model != "" {
		s.name += " " + model
		s.attrs = append(s.attrs, attribute{"gen_ai.request.model", model})
	}
	return s
}

// chat is the span of a model call of a step, with those of its tries below it.
func (t *tracer) chat(step int, seq int64, s span) {
	s.id = runs.ChatSpan(t.run, step)
	if step == 0 || t.taken[s.id] { // not of the loop, or a step that was begun again
		s.id = runs.SpanID(8, "chat", string(t.run), "event", strconv.FormatInt(seq, 10))
	}
	t.taken[s.id] = true
	s.kind = spanClient
	tries := t.failed
	t.failed = nil
	for i := range tries {
		if tries[i].start.Before(s.start) {
			s.start = tries[i].start
		}
		tries[i].parent = s.id
		tries[i].end = earlier(tries[i].end, s.end)
	}
	if n := len(tries); n > 0 && s.err == "" {
		last := t.attempt(t.model, runs.SpanID(8, "try", s.id), tries[n-1].end, s.end)
		last.parent = s.id
		tries = append(tries, last)
	}
	if len(tries) > 0 {
		s.attrs = append(s.attrs, attribute{"claybot.tries", int64(attempts(tries))})
	}
	t.child(s)
	for _, try := range tries {
		t.child(try)
	}
}

func attempts(all []span) (n int) {
	for _, s := range all {
		if s.kind == spanClient {
			n++
		}
	}
	return n
}

// unanswered ends a model call of which no try answered.
func (t *tracer) unanswered(at time.Time) {
	n := len(t.failed)
	if n == 0 {
		return
	}
	s := span{name: "chat", start: at, end: earlier(t.failed[n-1].end, at), attrs: t.chatting()}
	for _, try := range t.failed {
		s.err = cmp.Or(try.err, s.err)
	}
	t.chat(t.failed[n-1].step, 0, s)
}

// chatting are the attributes of every call of a model.
func (t *tracer) chatting() []attribute {
	return []attribute{{"gen_ai.operation.name", "chat"}, {"gen_ai.provider.name", t.provider}}
}

func (t *tracer) answered(e claybot.Event) {
	d, ok := decoded[runs.AssistantMessage](e)
	if !ok {
		return
	}
	end := e.At.Time()
	s := span{name: "chat", start: end.Add(-milliseconds(d.MS)), end: end, attrs: t.chatting()}
	if model := label(d.Model); model != "" {
		t.model = model
		s.name += " " + model
		s.attrs = append(s.attrs, attribute{"gen_ai.request.model", model}, attribute{"gen_ai.response.model", model})
	}
	if d.Tokens != nil {
		t.usage = t.usage.Add(*d.Tokens)
		s.attrs = append(s.attrs, usage(*d.Tokens)...)
	}
	t.chat(d.Step, e.Seq, s)
}

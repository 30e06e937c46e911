package flow

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/tools"
)

// child starts another flow, and waits for its end if the node does.
func (v *visit) child(ctx context.Context, spec *flows.Child, try int) (out Result, next string, err error) {
	task, taint, err := v.childTask(spec, nil)
	if err != nil {
		return out, "", err
	}
	if !spec.Waits() {
		id, err := v.cfg.Start(ctx, v.env("start", taint), task)
		switch {
		case err != nil && ctx.Err() != nil:
			return out, "", runs.Ended(ctx)
		case err != nil:
			return out, "", v.asError(CodeChild, err)
		}
		return v.put(string(id), mark{}), v.node.Next, nil
	}
	done, err := v.spawn(ctx, strconv.Itoa(try), task, taint)
	if e := (*runs.Error)(nil); errors.As(err, &e) && e.Code == CodeAgent {
		e.Code = CodeChild
	}
	if err != nil {
		return out, "", err
	}
	if out, err = v.childOutput(done, mark{}); err != nil {
		return out, "", &runs.TransientError{Err: err}
	}
	return out, v.node.Next, nil
}

// childTask fills the templates of a flow that is started.
func (v *visit) childTask(spec *flows.Child, more map[string]any) (t tools.Subagent, m mark, err error) {
	text, m, err := v.text(spec.Text, more)
	if err != nil {
		return t, m, err
	}
	t = tools.Subagent{Flow: spec.Flow, Task: text, Timeout: min(v.node.Timeout, flows.MaxWait)}
	if spec.Payload == nil {
		return t, m, nil
	}
	payload, also, err := v.fill(spec.Payload, more)
	if err != nil {
		return t, m, err
	}
	m.add(also)
	if t.Payload, err = json.Marshal(payload); err != nil {
		return t, m, v.failed(CodeFlow, "payload: %v", err)
	}
	return t, m, nil
}

// env is how the visit starts others.
func (v *visit) env(part string, m mark) tools.Env {
	t := v.state.Turn
	return tools.Env{Agent: t.Agent, Run: t.Run.ID, CallID: v.id(part), Route: t.Route(), Place: t.Place(), Tainted: m.tainted, Private: m.private}
}

// childOutput is what a flow put out that has ended.
func (v *visit) childOutput(d claybot.Result, m mark) (out Result, err error) {
	if !d.OK {
		return out, v.failed(CodeChild, "%s", d.Error)
	}
	var value any = d.Output
	if d.Value != nil {
		value = d.Value
	}
	m.add(mark{d.Tainted, d.Private})
	out = v.put(value, m)
	usage := d.TokenUsage
	out.Usage = &usage
	return out, nil
}

// maxChildOutput is the most bytes that a flow can put out for the run that started it.
const maxChildOutput = 64 << 10

// most is how many bytes the visit may put out.
func (v *visit) most(next string) int {
	if next == flows.End && awaited(v.state.Turn) {
		return maxChildOutput
	}
	return flows.MaxOutput
}

// awaited reports whether another run waits for the end of the run of a turn.
func awaited(t *runs.Turn) bool {
	return slices.ContainsFunc(t.Messages, func(m claybot.AgentMessage) bool { return m.Awaited != nil })
}

// Output implements runs.Outputter: a flow puts out what the node did that ended it; null where that
// failed.
func (e *Engine) Output(t *runs.Turn) (value json.RawMessage, tainted, private bool) {
	last := lastOf(t.History, t.Run.ID)
	var r Result
	if last == nil || failedIn(*last) || json.Unmarshal(runs.OutputOf(t.History, t.Run.ID)[last.Name], &r) != nil || len(r.Output) == 0 {
		return json.RawMessage("null"), false, false
	}
	return r.Output, r.Tainted, r.Private
}

// Said implements runs.Speaker: the text of the last reply of the run; empty if it sent none.
func (e *Engine) Said(ctx context.Context, t *runs.Turn) string {
	f, err := e.flow(ctx, t)
	if err != nil || start(t).Dry {
		return ""
	}
	return LastReply(f, t.Run.ID, t.History)
}

// LastReply returns the text of the last reply of a run of f, by its records; empty if it made none.
func LastReply(f *flows.Flow, run claybot.RunID, records []claybot.Record) (text string) {
	runs.Walk(records, run, func(r claybot.Record, _, output map[string]json.RawMessage) bool {
		n := f.Node(r.Name)
		if n == nil || n.Kind != flows.KindReply || failedIn(r) {
			return true
		}
		var out Result
		var said string
		if json.Unmarshal(output[r.Name], &out) == nil && json.Unmarshal(out.Output, &said) == nil && said != "" {
			text = said
		}
		return true
	})
	return text
}

// lastOf is the record of the node that ended a run; nil for none.
func lastOf(records []claybot.Record, run claybot.RunID) (last *claybot.Record) {
	for i := range records {
		if r := &records[i]; r.Run == run && r.Type == claybot.RecordNode {
			last = r
		}
	}
	return last
}

// failedIn reports whether a node failed in the visit that a record ends.
func failedIn(r claybot.Record) bool {
	if r.Change == nil {
		return false
	}
	var f Failure
	raw := bytes.TrimSpace(r.Change.Scratch["error"])
	return json.Unmarshal(raw, &f) == nil && f.Node == r.Name
}

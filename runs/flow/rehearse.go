package flow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
)

// CodeDry is the code of the error of a node that needs what a dry run does not have.
const CodeDry = "dry_run"

// notDone is what a node puts out that would have acted in a dry run.
const notDone = "(not done in a dry run)"

// Would begins what the record of a node says that did not act in a dry run.
const Would = "would "

// maxWould is the most bytes of what such a record says.
const maxWould = 4 << 10

// start is what started the run of a turn.
func start(t *runs.Turn) claybot.FlowStart {
	for _, m := range t.Messages {
		if m.Flow != nil {
			return *m.Flow
		}
	}
	return claybot.FlowStart{}
}

// A Past is what an earlier run did, by its records.
type Past struct {
	run     claybot.RunID
	records []claybot.Record
}

// PastOf returns what a run did.
func PastOf(run claybot.RunID, records []claybot.Record) Past { return Past{run, records} }

// An ended visit is what a node came to.
type ended struct {
	out    Result
	next   string
	reason string
	failed *Failure
}

// visit returns how a visit of a node ended, from 1; nil if it has not.
func (p Past) visit(node string, number int) (e *ended) {
	seen := 0
	runs.Walk(p.records, p.run, func(r claybot.Record, scratch, output map[string]json.RawMessage) bool {
		if r.Name != node {
			return true
		}
		if seen++; seen < number {
			return true
		}
		e = &ended{next: r.Next, reason: r.Text}
		var failed *Failure
		if json.Unmarshal(scratch["error"], &failed) == nil && failed != nil && failed.Node == node && failed.Code == r.Text {
			e.failed = failed
			return false
		}
		if json.Unmarshal(output[node], &e.out) != nil {
			e = nil // it cannot be used
		}
		return false
	})
	return e
}

// Before returns the records of the nodes that ended before the run first came to a node, as those of
// another run; ok is false if it never came there.
func (p Past) Before(start, node string, run claybot.RunID) (seed []claybot.Record, ok bool) {
	if node == start {
		return nil, true
	}
	runs.Walk(p.records, p.run, func(r claybot.Record, _, _ map[string]json.RawMessage) bool {
		ok = r.Next == node
		return !ok
	})
	if !ok {
		return nil, false
	}
	for _, r := range p.records {
		if r.Run != p.run || r.Type != claybot.RecordNode {
			continue
		}
		copied := claybot.Record{Type: r.Type, Run: run, At: r.At, Name: r.Name, Next: r.Next, Text: r.Text, Change: r.Change}
		if seed = append(seed, copied); r.Next == node && r.Name != node {
			break
		}
	}
	return seed, true
}

// past returns what the run did that is replayed; nil if this is no replay.
func (e *Engine) past(ctx context.Context, t *runs.Turn) (*Past, error) {
	replay := start(t).Replay
	if replay == nil {
		return nil, nil
	}
	records, err := e.cfg.Recorded(ctx, replay.Run)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, runs.Ended(ctx)
	case err != nil || len(records) == 0:
		return nil, &runs.Error{Code: CodeFlow, Text: fmt.Sprintf("the records of the run %s are not kept any more", replay.Run), Err: err}
	}
	return &Past{replay.Run, records}, nil
}

// replayed walks a graph that begins where a replay does.
func (e *Engine) replayed(ctx context.Context, t *runs.Turn, f *flows.Flow, past *Past) iter.Seq2[claybot.Record, error] {
	return func(yield func(claybot.Record, error) bool) {
		turn := *t
		if from := start(t).Replay.From; from != "" {
			seed, ok := past.Before(f.Start, from, t.Run.ID)
			if !ok {
				yield(claybot.Record{}, &runs.Error{Code: CodeFlow, Text: fmt.Sprintf("the run %s did not come to the node %s", past.run, from)})
				return
			}
			known := 0 // an earlier pass may have been cut off
			for _, r := range t.History {
				if r.Run == t.Run.ID && r.Type == claybot.RecordNode {
					known++
				}
			}
			turn.History = slices.Clone(t.History)
			for _, r := range seed[min(known, len(seed)):] {
				if !yield(r, nil) {
					return
				}
				turn.History = append(turn.History, r)
			}
		}
		for r, err := range e.graph(f, past).Run(ctx, &turn) {
			if !yield(r, err) {
				return
			}
		}
	}
}

// acts reports whether the node may change anything outside of the run.
func (v *visit) acts() bool { return v.actsAs(v.node) }

// actsAs is acts for a node, or a branch of one.
func (v *visit) actsAs(n *flows.Node) bool {
	effect := func(tool string) bool { return v.cfg.Effect(v.state.Turn.Agent, tool) != tools.ReadOnly }
	switch spec := n.Spec.(type) {
	case *flows.Tool:
		return effect(spec.Tool)
	case *flows.HTTP:
		return toolOf(spec) != toolRead
	case *flows.Agent, *flows.Each, *flows.Deep:
		a := n.Agent()
		deep, _ := spec.(*flows.Deep)
		return a.Remembers() || deep != nil && deep.Files == flows.FilesStore || slices.ContainsFunc(a.Tools, effect)
	case *flows.Parallel:
		return slices.ContainsFunc(spec.Branches, func(b flows.Node) bool { return v.actsAs(&b) })
	case *flows.Template, *flows.Switch, *flows.Wait, *flows.Ask:
		return false
	}
	return true
}

// event reports whether the node waits for a call of a program, which knows the address of the run that is
// replayed, and no other one.
func (v *visit) event() bool {
	spec, ok := v.node.Spec.(*flows.Wait)
	return ok && spec.Event != ""
}

// pure reports whether the node only computes.
func (v *visit) pure() bool {
	switch v.node.Spec.(type) {
	case *flows.Template, *flows.Switch:
		return true
	}
	return false
}

// rehearse works in place of the node: with what it came to in the run that is replayed, or by saying
// what it would do. done is false if the node has to work itself.
func (v *visit) rehearse(ctx context.Context, try int) (out Result, next string, done bool, err error) {
	dry := start(v.state.Turn).Dry
	if v.pure() || v.past == nil && !dry {
		return out, "", false, nil
	}
	if v.past != nil && (dry || v.acts() || v.event()) && !v.again() {
		if e := v.past.visit(v.node.Name, v.number); e != nil && (dry || !v.event() || e.reason != CodeExpired) {
			out, next, err = v.reuse(*e)
			return out, next, true, err
		}
		if spec := v.called(); spec != nil {
			if r, ok := v.result(try); ok {
				out, next, err = v.resulted(spec, r)
				return out, next, true, err
			}
		}
		if err := v.doubtful(); err != nil && !dry {
			return out, "", true, err
		}
	}
	switch {
	case dry:
		return v.pretend()
	case v.again():
		return v.restart(ctx)
	}
	return out, "", false, nil
}

// reuse ends the visit as it ended before.
func (v *visit) reuse(e ended) (out Result, next string, err error) {
	if e.failed != nil {
		return out, "", &runs.Error{Code: e.failed.Code, Text: e.failed.Text}
	}
	if next = e.next; !slices.ContainsFunc(v.node.Edges(), func(edge flows.Edge) bool { return edge.To == next }) {
		next = v.node.Next // the flow was changed since
	}
	v.state.Because(e.reason)
	return e.out, next, nil
}

// called is the node as a call of a tool; nil for others.
func (v *visit) called() *flows.Tool {
	switch spec := v.node.Spec.(type) {
	case *flows.Tool:
		return spec
	case *flows.HTTP:
		return &flows.Tool{Tool: toolOf(spec)}
	}
	return nil
}

// result returns what came of a call in the run that is replayed. A call that may have acted and has no
// result counts as cut off. One that was not let through was not made.
func (v *visit) result(try int) (r claybot.Record, ok bool) {
	asked, result := earlier(v.past.records, v.past.run, v.id(fmt.Sprint(try)))
	switch {
	case asked == nil:
		return r, false
	case result == nil:
		return claybot.Record{Type: claybot.RecordTool, Text: "cut off", Interrupted: true}, v.acts()
	case !result.OK && strings.HasPrefix(strings.TrimPrefix(tools.Unmarked(result.Text), "error: "), "not approved"):
		return r, false
	}
	return *result, true
}

// pretend says what the node would do, and goes on as if it were done. A node that only reads works; so
// does an agent without tools that act.
func (v *visit) pretend() (out Result, next string, done bool, err error) {
	if v.reads() {
		return out, "", false, nil
	}
	out, next, err = v.would()
	return out, next, true, err
}

// would is pretend for a node that does not work.
func (v *visit) would() (out Result, next string, err error) {
	next = v.node.Next
	var text string
	switch spec := v.node.Spec.(type) {
	case *flows.Tool:
		text, err = v.wouldCall(spec.Tool, spec.Args, spec.Approve)
	case *flows.HTTP:
		text, err = v.wouldCall(spec.Method+" "+spec.URL, spec.Body, nil)
	case *flows.Agent, *flows.Deep:
		var task tools.Subagent
		task, _, err = v.task(v.node.Agent(), nil)
		text = "give an agent the task: " + task.Task
	case *flows.Each:
		text = "give agents the items of " + spec.Over
	case *flows.Parallel:
		var all []member
		all, _, err = v.branches(spec)
		text = "start at once: " + tasksOf(all)
	case *flows.Child:
		var task tools.Subagent
		task, _, err = v.childTask(spec, nil)
		text = strings.TrimSpace("start the flow " + spec.Flow + " with " + task.Task + " " + string(task.Payload))
	case *flows.Reply:
		out, text, err = v.wouldReply(spec)
	case *flows.Ask:
		out, text, err = v.wouldAsk(spec)
	case *flows.Wait:
		if spec.Event != "" {
			text, out = "wait for a call of a program", v.put(notDone, mark{})
			break
		}
		text = "wait for " + spec.For.String()
		if spec.Until != "" {
			text, _, err = v.text(spec.Until, nil)
			text = "wait until " + text
		}
		out = v.put(v.cfg.Now().Add(spec.For).UTC().Format(time.RFC3339), mark{})
	default:
		text = "run the node"
	}
	if err != nil {
		return out, "", err
	}
	if out.Output == nil {
		out = v.put(notDone, mark{})
	}
	v.state.Because(Would + texts.Shorten(text, maxWould))
	return out, next, nil
}

// reads reports whether the node works in a dry run as well. What people have to approve does not.
func (v *visit) reads() bool {
	switch spec := v.node.Spec.(type) {
	case *flows.Tool:
		return spec.Approve == nil && !v.acts()
	case *flows.HTTP, *flows.Agent, *flows.Deep, *flows.Each, *flows.Parallel:
		return !v.acts()
	}
	return false
}

func (v *visit) wouldCall(what string, args any, approve *flows.Approve) (string, error) {
	filled, _, err := v.fill(args, nil)
	if err != nil {
		return "", err
	}
	text := "call " + strings.TrimSpace(what)
	if filled != nil {
		b, _ := json.Marshal(filled) // values come from JSON
		text += " with " + string(b)
	}
	if approve != nil {
		text += ", once " + whoOf(approve.By) + " approves it"
	}
	return text, nil
}

// whoOf names those who may answer.
func whoOf(by []string) string {
	if len(by) == 0 {
		return "the person of the run"
	}
	return strings.Join(by, " or ")
}

func (v *visit) wouldReply(spec *flows.Reply) (out Result, text string, err error) {
	said, m, err := v.text(spec.Text, nil)
	if err != nil {
		return out, "", err
	}
	to := spec.To
	if len(to) == 0 {
		to = []string{"trigger"}
	}
	return v.put(said, m), fmt.Sprintf("send to %s: %s", strings.Join(to, ", "), said), nil
}

func (v *visit) wouldAsk(spec *flows.Ask) (out Result, text string, err error) {
	question, _, err := v.text(spec.Text, nil)
	if err != nil {
		return out, "", err
	}
	var answer any
	switch claybot.QuestionType(spec.Type) {
	case "", claybot.QuestionConfirm, claybot.QuestionBoolean:
		answer = true
	case claybot.QuestionSelect:
		answer = spec.Options[0]
	case claybot.QuestionMultiselect:
		answer = spec.Options[:1]
	case claybot.QuestionNumber:
		answer = 1
	default:
		answer = notDone
	}
	out = v.put(answer, mark{})
	out.More = map[string]any{"answered": true, "by": ""}
	b, _ := json.Marshal(answer) // it is one of the above
	return out, fmt.Sprintf("ask %s: %s (taken as answered with %s)", whoOf(spec.By), question, b), nil
}

// explained says that a template fails in a dry run because nodes have not acted.
func (v *visit) explained(err error) error {
	var failed *runs.Error
	if !start(v.state.Turn).Dry || !errors.As(err, &failed) || failed.Code != CodeFlow {
		return err
	}
	var idle []string
	for _, r := range v.recorded() {
		if r.Type == claybot.RecordNode && strings.HasPrefix(r.Text, Would) && !slices.Contains(idle, r.Name) {
			idle = append(idle, r.Name)
		}
	}
	if len(idle) == 0 {
		return err
	}
	return &runs.Error{Code: CodeDry, Text: fmt.Sprintf("%s; in this dry run, these nodes did nothing: %s", failed.Text, strings.Join(idle, ", ")), Err: err}
}

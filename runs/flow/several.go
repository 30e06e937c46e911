package flow

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/tools"
)

// maxItems bounds the items of a node that works on a list.
const maxItems = 200

// spawn starts an agent or a flow, or waits for one that was started.
func (v *visit) spawn(ctx context.Context, part string, task tools.Subagent, m mark) (claybot.Result, error) {
	done, err := v.spawned(ctx, v.env(part, m), []tools.Subagent{task}, tools.Spawning{})
	if err == nil && done[0] == nil {
		err = v.unread()
	}
	if err != nil {
		return claybot.Result{}, err
	}
	return *done[0], nil
}

func (v *visit) unread() error {
	return v.failed(CodeAgent, "the answers of the agents cannot be read")
}

// spawned starts what is due of some tasks, and waits until they have ended, or enough of them.
func (v *visit) spawned(ctx context.Context, env tools.Env, all []tools.Subagent, how tools.Spawning) (done []*claybot.Result, err error) {
	r, err := v.cfg.Spawn(ctx, env, all, how)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, runs.Ended(ctx)
	case err != nil:
		return nil, v.asError(CodeAgent, err)
	case r.Wait != nil:
		return nil, &runs.WaitError{Awaiting: *r.Wait}
	}
	if err := json.Unmarshal([]byte(r.Text), &done); err != nil || len(done) != len(all) {
		return nil, v.unread()
	}
	return done, nil
}

// A member is one of several agents and flows that a node has at work at the same time.
type member struct {
	*visit              // as if it were a node
	agent  *flows.Agent // nil: a flow
	task   tools.Subagent
	call   string // names it, with n
	n      int
	label  string // before its error; empty: the error says it
}

// output is what a member put out. m is what was given to all of them.
func (x member) output(d claybot.Result, m mark) (Result, error) {
	if x.agent == nil {
		return x.childOutput(d, m)
	}
	return x.answered(x.agent, d, m)
}

// labeled is the error of a member, by its name.
func (x member) labeled(err error) error {
	if failed := (*runs.Error)(nil); x.label != "" && errors.As(err, &failed) {
		return &runs.Error{Code: failed.Code, Text: x.label + ": " + failed.Text}
	}
	return err
}

// A crowd is how several members work.
type crowd struct {
	members []member
	given   mark
	need    int  // so many successes end the node
	stop    bool // it ends when so many cannot be any more
	atOnce  int  // 0: all
}

// An outcome is how a member ended.
type outcome struct {
	out   Result
	err   error
	ended bool // neither stopped, nor dropped, nor never started
}

// lostBefore are the errors of members that were lost, in results that an earlier version stored without
// saying so in a field.
var lostBefore = []string{"canceled: stopped by the parent", "the message was dropped"}

// outcomes reads results. A member that was stopped or dropped has not ended, and counts as bad.
func (c *crowd) outcomes(done []*claybot.Result) (all []outcome, good, bad int) {
	all = make([]outcome, len(c.members))
	for i, d := range done {
		if d == nil {
			continue
		}
		if !d.OK && (d.Lost != "" || slices.Contains(lostBefore, d.Error)) {
			bad++
			continue
		}
		all[i].ended = true
		if all[i].out, all[i].err = c.members[i].output(*d, c.given); all[i].err != nil {
			all[i].err = c.members[i].labeled(all[i].err)
			bad++
		} else {
			good++
		}
	}
	return all, good, bad
}

// enough reports whether the node ends although members are at work.
func (c *crowd) enough(done []*claybot.Result) bool {
	_, good, bad := c.outcomes(done)
	return good >= c.need || c.stop && len(c.members)-bad < c.need
}

// gather lets the members work. With too few successes, it fails as the first one does that failed. done
// are the results of all, nil for those at work.
func (v *visit) gather(ctx context.Context, c crowd) (all []outcome, done []*claybot.Result, err error) {
	tasks := make([]tools.Subagent, len(c.members))
	for i, x := range c.members {
		tasks[i] = x.task
	}
	how := tools.Spawning{AtOnce: c.atOnce, Call: func(i int) (string, int) { return c.members[i].call, c.members[i].n }}
	if c.stop {
		how.Enough = c.enough
	}
	if done, err = v.spawned(ctx, v.env("", c.given), tasks, how); err != nil {
		return nil, nil, err
	}
	all, good, _ := c.outcomes(done)
	for _, o := range all {
		if c.stop && good < c.need && o.err != nil {
			return nil, nil, o.err
		}
	}
	if c.stop && good < c.need {
		return nil, nil, v.failed(CodeAgent, "what it started was stopped")
	}
	return all, done, nil
}

// each gives one agent to each item of a list.
func (v *visit) each(ctx context.Context, spec *flows.Each) (out Result, next string, err error) {
	over, taint, err := v.one(spec.Over, nil)
	if err != nil {
		return out, "", err
	}
	items, ok := over.([]any)
	if !ok {
		return out, "", v.failed(CodeFlow, "over is no list")
	}
	if len(items) > maxItems {
		return out, "", v.failed(CodeTooLarge, "%d items; the limit is %d", len(items), maxItems)
	}
	c := crowd{need: len(items), stop: stops(spec.OnError), atOnce: cmp.Or(spec.AtOnce, flows.DefaultAtOnce)}
	for i, item := range items {
		// Earlier versions started the items in calls of eight.
		x := member{visit: v, agent: &spec.Agent, call: v.id(fmt.Sprintf("items%d", i/8*8)), n: i % 8, label: fmt.Sprintf("item %d", i+1)}
		var m mark
		if x.task, m, err = v.task(&spec.Agent, map[string]any{"item": item, "index": i}); err != nil {
			return out, "", err
		}
		taint.add(m)
		c.members = append(c.members, x)
	}
	c.given = taint
	all, done, err := v.gather(ctx, c)
	if err != nil {
		return out, "", err
	}
	values, failed := make([]any, 0, len(items)), []int{}
	for i, o := range all {
		if o.bad() {
			failed = append(failed, i)
		}
		if spec.OnError == flows.OnErrorContinue && o.bad() {
			continue
		}
		values = append(values, o.value(spec.OnError))
	}
	out, err = v.ended(ctx, values, taint, all, done, spec.OnError)
	if spec.OnError == flows.OnErrorContinue {
		out.More, out.Clean = map[string]any{"failed": failed}, []string{"failed"}
	}
	return out, v.node.Next, err
}

// stops reports whether a member that fails ends the node.
func stops(onError string) bool { return onError == "" || onError == flows.OnErrorStop }

func (o outcome) bad() bool { return o.err != nil || !o.ended }

// value is what the node puts out of a member.
func (o outcome) value(onError string) any {
	if onError != flows.OnErrorCollect {
		return o.out.Output
	}
	all := map[string]any{"ok": !o.bad(), "output": o.out.Output, "error": ""}
	if o.bad() {
		all["output"], all["error"] = nil, "stopped"
	}
	if failed := (*runs.Error)(nil); errors.As(o.err, &failed) {
		all["error"] = failed.Text
	}
	return all
}

// ended is what the node puts out of members, as a value.
func (v *visit) ended(ctx context.Context, value any, m mark, all []outcome, done []*claybot.Result, onError string) (out Result, err error) {
	usage, said := claybot.Usage{}, []claybot.Result(nil)
	for i, d := range done {
		if d != nil {
			usage = usage.Add(d.TokenUsage)
		}
		if all[i].ended {
			said = append(said, *d)
		}
	}
	for _, o := range all {
		m.add(mark{o.out.Tainted || o.err != nil && onError == flows.OnErrorCollect, o.out.Private})
	}
	out = v.put(value, m)
	out.Usage = &usage
	out.Messages, err = v.messages(ctx, said)
	return out, err
}

// parallel lets the branches work, and joins them.
func (v *visit) parallel(ctx context.Context, spec *flows.Parallel) (out Result, next string, err error) {
	c := crowd{need: spec.Need(), stop: stops(spec.OnError)}
	if c.members, c.given, err = v.branches(spec); err != nil {
		return out, "", err
	}
	all, done, err := v.gather(ctx, c)
	if err != nil {
		return out, "", err
	}
	values, failed, clean := make(map[string]any), []string{}, []string(nil)
	var first any
	for i, o := range all {
		name := spec.Branches[i].Name
		switch {
		case o.ended && o.err == nil:
			if first == nil {
				first = o.out.Output
			}
			if !o.out.Tainted {
				clean = append(clean, name)
			}
		case o.err != nil || !c.stop && o.bad(): // without stop, all have to end, and no member is stopped by the node
			failed = append(failed, name)
		}
		if !o.bad() || spec.OnError == flows.OnErrorCollect {
			values[name] = o.value(spec.OnError)
		}
	}
	out, err = v.ended(ctx, values, c.given, all, done, spec.OnError)
	out.More, out.Clean = map[string]any{"first": first, "failed": failed}, append(clean, "failed")
	return out, v.node.Next, err
}

// branches are the members of a node with branches, and what was given to them.
func (v *visit) branches(spec *flows.Parallel) (all []member, m mark, err error) {
	for _, b := range spec.Branches {
		b.Name = v.node.Name + "." + b.Name
		own := *v
		own.node = &b
		x := member{visit: &own, agent: b.Agent(), call: own.id("")}
		var also mark
		if child, ok := b.Spec.(*flows.Child); ok {
			x.task, also, err = own.childTask(child, nil)
		} else {
			x.task, also, err = own.task(x.agent, nil)
		}
		if err != nil {
			return nil, m, err
		}
		m.add(also)
		all = append(all, x)
	}
	return all, m, nil
}

// tasksOf says what members do.
func tasksOf(all []member) string {
	var b strings.Builder
	for _, x := range all {
		fmt.Fprintf(&b, "%s: %s\n", x.node.Name, strings.TrimSpace(x.task.Flow+" "+x.task.Task+" "+string(x.task.Payload)))
	}
	return strings.TrimSpace(b.String())
}

package flow

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
)

// Repeats reports whether a live replay can name a node that is to act once more.
func Repeats(n *flows.Node) bool {
	switch n.Spec.(type) {
	case *flows.Tool, *flows.HTTP:
		return true
	}
	return starts(n)
}

// starts reports whether the node has others work: agents, or flows.
func starts(n *flows.Node) bool {
	switch n.Spec.(type) {
	case *flows.Template, *flows.Switch, *flows.Wait, *flows.Ask, *flows.Reply, *flows.Tool, *flows.HTTP:
		return false
	}
	return true
}

// again reports whether the node acts again once that is approved.
func (v *visit) again() bool {
	replay := start(v.state.Turn).Replay
	return replay != nil && slices.Contains(replay.Again, v.node.Name)
}

// entered reports whether the run came to a visit of a node, from 1, and did not end it. first is the node
// with which it began.
func (p Past) entered(first, node string, number int) bool {
	at, seen := first, 1
	for _, r := range p.records {
		if r.Run != p.run || r.Type != claybot.RecordNode {
			continue
		}
		if at = r.Next; r.Name == node && r.Next != node {
			seen++
		}
	}
	return at == node && seen == number
}

// came is when the run came to the node in which it ended, or went on there after a wait: what it sent there, it
// sent later. What is recorded behind, such as that it was canceled, may be much younger.
func (p Past) came() (at claybot.Time) {
	for _, r := range p.records {
		if r.Run == p.run && (at == 0 || r.Type == claybot.RecordNode) {
			at = r.At
		}
	}
	return at
}

// doubtful is the error of a live replay of a node that has others work where the run that is replayed was
// in it when it ended: they may have acted.
func (v *visit) doubtful() error {
	if !starts(v.node) || !v.past.entered(v.flow.Start, v.node.Name, v.number) {
		return nil
	}
	return v.failed(CodeUnknown, "the run %s ended in this node, and what it started may have acted; it is not started again", v.past.run)
}

// maxSubject is how much of what a node would do the question shows that asks for it.
const maxSubject = 1200 // bytes

// restart has people approve that the node acts again. Where they do not, what it came to before stays.
func (v *visit) restart(ctx context.Context) (out Result, next string, done bool, err error) {
	if !starts(v.node) {
		return out, "", false, nil // its call asks
	}
	subject, err := v.subject()
	if err == nil {
		err = v.approved(ctx, subject)
	}
	if codeOf(err) == CodeDenied {
		if e := v.past.visit(v.node.Name, v.number); e != nil {
			out, next, err = v.reuse(*e)
			return out, next, true, err
		}
	}
	return out, "", err != nil, err
}

// approved asks the approvers of the agent, one after another until they are enough.
func (v *visit) approved(ctx context.Context, subject string) error {
	t := v.state.Turn
	rules := v.cfg.Rules(t.Agent)
	who := tools.Approvers{Need: max(rules.Quorum, 1), Named: rules.Approvers, Owner: t.Owner(), People: v.cfg.People}
	sum := sha256.Sum256([]byte(v.node.Name + "\x00" + subject))
	var by []string
	for round := 1; !who.Enough(by); round++ {
		left, err := who.Left(by)
		if err != nil || round > who.Need {
			return v.failed(CodeDenied, "too few people can approve that it acts again")
		}
		q := claybot.Question{
			Key: v.node.Name, Type: claybot.QuestionConfirm, Text: texts.Of(ctx).Say(texts.FlowAgain, v.flow.Name, v.node.Name) + "\n\n" + texts.Shorten(subject, maxSubject),
			Required: true, Once: true, Approvers: left, Digest: hex.EncodeToString(sum[:]), Expires: claybot.At(v.cfg.Now().Add(flows.DefaultExpires)),
		}
		who.Tell(&q, by)
		answers, wait, err := t.Ask(ctx, fmt.Sprintf("flow/%s%d", v.id("again"), round), []claybot.Question{q})
		switch {
		case err != nil && ctx.Err() != nil:
			return runs.Ended(ctx)
		case errors.Is(err, runs.ErrNobody):
			return v.failed(CodeDenied, "no person can be asked whether it acts again")
		case err != nil:
			return err
		case wait != nil:
			return &runs.WaitError{Awaiting: *wait}
		case len(answers) != 1 || !tools.Approved(answers[0]) || len(who.Named) > 0 && !who.May(answers[0].By):
			return v.failed(CodeDenied, "it was not approved that it acts again")
		case len(who.Named) == 0: // the door has let them in
			return nil
		}
		by = append(by, answers[0].By)
	}
	return nil
}

// subject says what the node has others do.
func (v *visit) subject() (text string, err error) {
	var task tools.Subagent
	switch spec := v.node.Spec.(type) {
	case *flows.Agent, *flows.Deep:
		task, _, err = v.task(v.node.Agent(), nil)
		return task.Task, err
	case *flows.Each:
		over, _, err := v.one(spec.Over, nil)
		if err != nil {
			return "", err
		}
		b, _ := json.Marshal(over) // values come from JSON
		return string(b), nil
	case *flows.Parallel:
		all, _, err := v.branches(spec)
		return tasksOf(all), err
	case *flows.Child:
		task, _, err = v.childTask(spec, nil)
		return strings.TrimSpace(spec.Flow + " " + task.Task + " " + string(task.Payload)), err
	}
	return v.node.Name, nil
}

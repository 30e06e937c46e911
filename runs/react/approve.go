package react

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/tools"
)

// Rules say which calls a person approves before they are made. The globs are
// matched with names of tools.
type Rules struct {
	// Ask are tools that ask first, besides those whose Spec says so.
	Ask []string
	// Always are tools that are approved once and for all; they win.
	Always []string
}

// maxReason is how much of what the model says about a call its approval
// repeats, in bytes.
const maxReason = 500

// notApproved begins the result of a call that nobody approved.
const notApproved = "not approved"

// approved is the part of a group that may run now. When its first call needs an
// approval, that is what it is about: refused says why the call must not run,
// and wait what it waits for. A call is asked for before it counts as started,
// so one that may act only once is never in doubt for its approval.
func (p *pass) approved(ctx context.Context, group []pending) (part []pending, refused string, wait *claybot.Awaiting, err error) {
	for i, call := range group {
		why, q := p.asks(call), p.question(call)
		switch {
		case why == "" && q == nil:
		case i > 0:
			return group[:i], "", nil, nil
		case why != "":
			refused, wait, err = p.approve(ctx, call.ToolCall, why)
			return group[:1], refused, wait, err
		default:
			if refused, err = p.denied(ctx, call.ToolCall, *q); refused != "" || err != nil {
				return group[:1], refused, nil, err
			}
		}
	}
	return group, "", nil, nil
}

// question is the one that was asked about a call before; nil for none, or when
// the call will not run anyway.
func (p *pass) question(call pending) *claybot.Question {
	for _, r := range slices.Backward(p.history) {
		if q := r.Question; r.Type == claybot.RecordQuestion && r.Run == p.turn.Run.ID && q != nil &&
			q.Type == claybot.QuestionConfirm && q.Tool == call.Name && q.ToolCallID == call.ID {
			if p.verdict(call) != "" {
				return nil
			}
			return q
		}
	}
	return nil
}

// denied says why a call must not run that was asked about and needs no approval
// any more: a no that was said stands. It is empty when the call was approved, or
// nothing was said yet.
func (p *pass) denied(ctx context.Context, call claybot.ToolCall, q claybot.Question) (refused string, err error) {
	if p.turn.Ask == nil {
		return "", nil
	}
	answers, _, err := p.turn.Ask(ctx, approvalRound(call), []claybot.Question{q})
	switch {
	case errors.Is(err, runs.ErrNobody):
		return "", nil
	case err != nil:
		return "", p.unasked(ctx, call, err)
	case len(answers) == 1 && !tools.Approved(answers[0]):
		return p.judge(answers[0], call), nil
	}
	return "", nil
}

// approvalRound is the round of questions about a call.
func approvalRound(call claybot.ToolCall) string { return "approve/" + call.ID }

// unasked is how a pass ends whose question could not be put.
func (p *pass) unasked(ctx context.Context, call claybot.ToolCall, err error) error {
	if ctx.Err() != nil {
		return runs.Ended(ctx)
	}
	return fmt.Errorf("ask for the approval of %s: %w", call.Name, err)
}

// asks says why a call needs an approval; empty when it needs none, or will not
// run anyway.
func (p *pass) asks(call pending) string {
	spec, _ := p.tools.Spec(call.Name)
	rule := slices.IndexFunc(p.rules.Ask, func(glob string) bool {
		ok, err := path.Match(glob, call.Name)
		return ok || err != nil // a rule that cannot be read asks too often rather than never
	})
	always := slices.ContainsFunc(p.rules.Always, func(glob string) bool {
		ok, err := path.Match(glob, call.Name)
		return ok && err == nil
	})
	switch {
	case !spec.Confirm && rule < 0, always:
		return ""
	case p.verdict(call) != "", p.tools.Check(call.ToolCall) != nil, tools.Granted(p.history, call.Name):
		return ""
	case spec.Confirm:
		return "this tool asks before each call"
	}
	return fmt.Sprintf("a rule asks for tools like %q", p.rules.Ask[rule])
}

// approve is what a person says to a call. Only the action that was shown may
// run: the digest of the question is compared with that of the call.
func (p *pass) approve(ctx context.Context, call claybot.ToolCall, why string) (refused string, wait *claybot.Awaiting, err error) {
	spec, _ := p.tools.Spec(call.Name)
	q, err := tools.Approval(p.turn.Agent, spec, call, p.reason(why))
	if err != nil {
		return fmt.Sprintf("%s: %v", notApproved, err), nil, nil
	}
	if p.turn.Ask == nil {
		return notApproved + ": nobody can be asked", nil, nil
	}
	answers, wait, err := p.turn.Ask(ctx, approvalRound(call), []claybot.Question{q})
	switch {
	case errors.Is(err, runs.ErrNobody):
		return notApproved + ": nobody can be asked", nil, nil
	case err != nil:
		return "", nil, p.unasked(ctx, call, err)
	case wait != nil:
		return "", wait, nil
	case len(answers) != 1:
		return notApproved, nil, nil
	}
	return p.judge(answers[0], call), nil, nil
}

// judge says why an answer does not let a call run; empty when it does.
func (p *pass) judge(a claybot.Answered, call claybot.ToolCall) string {
	switch reason := strings.TrimSpace(a.Reason); {
	case !tools.Approved(a) && reason != "":
		return notApproved + ": " + reason
	case !tools.Approved(a) && a.Via == claybot.ViaDefault:
		return notApproved + ": nobody answered in time"
	case !tools.Approved(a):
		return notApproved
	}
	asked := slices.IndexFunc(p.history, func(r claybot.Record) bool {
		return r.Type == claybot.RecordQuestion && r.Question != nil && r.Question.ID == a.Question
	})
	if asked < 0 || p.history[asked].Question.Digest != tools.Digest(p.turn.Agent.ID, "", call) {
		p.log.Warn("a call is not the one that was approved", "tool", call.Name, "question", a.Question)
		return notApproved + ": the approval was for another action; make the call again to be asked anew"
	}
	return ""
}

// reason is why the action is asked for, with what the model says about it.
func (p *pass) reason(why string) string {
	for _, r := range slices.Backward(p.history) {
		if r.Type != claybot.RecordAssistant {
			continue
		}
		if said := strings.TrimSpace(r.Text); said != "" {
			why += "; the agent says: " + llm.Cut(said, maxReason, maxReason/2, func(left int) string { return llm.LeftOut(left, len(said)) })
		}
		break
	}
	return why
}

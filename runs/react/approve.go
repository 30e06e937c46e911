package react

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
)

// Rules say which calls a person approves before they are made.
type Rules = tools.Rules

// maxReason is how much of what the model says about a call its approval
// repeats, in bytes.
const maxReason = 500

// maxEdits is how often the arguments of one call may be edited before it is
// given up: each edit of one approver is shown to the next.
const maxEdits = 3

// notApproved begins the result of a call that was not approved.
const notApproved = "not approved"

// unreachable is the result of a call for which no approver can be reached.
const unreachable = notApproved + ": no person can be asked"

// An action is a call as it would run: with the arguments of the model, or with
// those that a person put in their place.
type action struct {
	claybot.ToolCall
	edits int      // how often a person did
	by    []string // who approved exactly this
}

// Approvals ask the people who decide about calls before they run.
type approvals struct {
	turn   *runs.Turn
	talk   *conversation
	tools  *tools.Set
	gate   *gate
	rules  Rules
	place  string
	people func(string) []string
	log    *slog.Logger
}

// approved is the part of a group that may run now, and with what arguments.
// When its first call needs an approval, that is what it is about: refused says
// why the call must not run, and wait what it waits for. A call is asked for
// before it counts as started, so one that may act only once is never in doubt
// for its approval.
func (p *approvals) approved(ctx context.Context, group []pending) (part []pending, refused string, wait *claybot.Awaiting, err error) {
	for i, call := range group {
		d := p.decide(ctx, call)
		asked := d.Verdict == tools.Allow && p.asked(call)
		switch {
		case d.Verdict == tools.Allow && !asked:
		case i > 0:
			return group[:i], "", nil, nil
		case d.Verdict == tools.Refuse:
			return group[:1], notApproved + ": " + d.Why, nil, nil
		default:
			a, refused, wait, err := p.consent(ctx, call, d)
			group[0].edited, group[0].ToolCall = a.edits > 0, a.ToolCall
			return group[:1], refused, wait, err
		}
	}
	return group, "", nil, nil
}

// decide says what happens with a call. One that will not run anyway needs no
// approval, and neither does tools.Finish, which does nothing but end the run.
func (p *approvals) decide(ctx context.Context, call pending) tools.Decision {
	if p.gate.dry || call.Name == tools.Finish || p.gate.verdict(call) != "" || p.tools.Check(call.ToolCall) != nil {
		return tools.Decision{Verdict: tools.Allow}
	}
	return p.rule(ctx, call)
}

// rule says what the rules of the moment say about a call.
func (p *approvals) rule(ctx context.Context, call pending) tools.Decision {
	spec, _ := p.tools.Spec(call.Name)
	env := p.gate.env(call.ToolCall)
	env.Say = texts.Of(ctx).Say
	return p.rules.Decide(ctx, env, spec, call.ToolCall, p.talk.all())
}

// asked reports whether a person was asked about a call before, and it may run:
// a no, and other arguments, stand, although no person would be asked now.
func (p *approvals) asked(call pending) bool {
	return p.turn.Reader != nil && p.gate.verdict(call) == "" && p.wasAsked(call)
}

// wasAsked reports whether a person was asked about a call in this run.
func (p *approvals) wasAsked(call pending) bool {
	return p.talk.asked(func(q claybot.Question) bool {
		return q.Type == claybot.QuestionConfirm && q.Tool == call.Name && q.ToolCallID == call.ID
	})
}

// again says why a call must not run that an earlier pass started and that took no effect,
// where the rules have changed since; empty: it may. An answer could not be told from one
// that was given before the start, so no person is asked about it.
func (p *approvals) again(ctx context.Context, call pending) (refused string) {
	switch d := p.rule(ctx, call); d.Verdict {
	case tools.Allow:
		return ""
	case tools.Refuse:
		return notApproved + ": " + d.Why
	default:
		return notApproved + ": it was interrupted before it took effect, and needs an approval now; make the call again to have a person asked"
	}
}

// consent is what people say to a call, asked one after another until they are
// enough. Where it is decided already that the call is made, an answer that is
// missing is not waited for.
func (p *approvals) consent(ctx context.Context, call pending, d tools.Decision) (a action, refused string, wait *claybot.Awaiting, err error) {
	a.ToolCall = call.ToolCall
	needed := d.Verdict == tools.Ask
	if p.turn.Reader == nil {
		return a, unreachable, nil, nil
	}
	who := p.approvers(p.turn.Speakers(d.Owners))
	for round := 1; needed || round == 1; round++ {
		if round > who.Need+a.edits+1 || a.edits > maxEdits {
			return a, notApproved + ": too few people agreed on the same action", nil, nil
		}
		q, err := p.ballot(ctx, a, who, d.Why)
		if err != nil {
			if !needed {
				break
			}
			return a, fmt.Sprintf("%s: %v", notApproved, err), nil, nil
		}
		answers, wait, err := p.turn.Ask(ctx, approvalRound(call.ToolCall, round), []claybot.Question{q})
		switch {
		case !needed && (errors.Is(err, runs.ErrNobody) || err == nil && len(answers) != 1):
			return a, "", nil, nil
		case errors.Is(err, runs.ErrNobody):
			return a, unreachable, nil, nil
		case err != nil:
			return a, "", nil, p.unasked(ctx, call.ToolCall, err)
		case wait != nil:
			return a, "", wait, nil
		case len(answers) != 1:
			return a, notApproved, nil, nil
		}
		if refused := p.hear(&a, answers[0], who); refused != "" || who.Enough(a.by) {
			return a, refused, nil, nil
		}
	}
	return a, "", nil, nil
}

// approvers are who approves a call of this agent: of one that discloses something, the
// owners of that.
func (p *approvals) approvers(owners []string) tools.Approvers {
	who := tools.Approvers{
		Need: max(p.rules.Quorum, 1), Named: p.rules.Approvers, Owner: p.turn.Owner(), People: p.people,
	}
	if slices.ContainsFunc(owners, func(owner string) bool { return !who.May(owner) }) {
		who.Named, who.InTurn = who.Distinct(owners), true
		who.Need = len(who.Named)
	}
	return who
}

// ballot is the question whether an action may run, for those who have not
// approved it yet.
func (p *approvals) ballot(ctx context.Context, a action, who tools.Approvers, why string) (claybot.Question, error) {
	left, err := who.Left(a.by)
	if err != nil {
		return claybot.Question{}, err
	}
	spec, _ := p.tools.Spec(a.Name)
	voice := texts.Of(ctx)
	grounds := tools.Grounds{Why: why, Person: p.person(), Say: voice.Say, Called: voice.Called, Doing: voice.Doing(spec), Own: len(left) == 0}
	if !who.InTurn || who.Same(left[0], who.Owner) { // others do not read this conversation
		grounds.Says = p.says()
	}
	if a.edits > 0 {
		grounds.Why += grounds.Say(texts.ArgumentsOf, strings.Join(a.by, ", "))
	}
	q, err := tools.Approval(p.turn.Agent, p.place, spec.In(p.gate.env(a.ToolCall)), a.ToolCall, grounds)
	q.Approvers, q.Once = left, q.Once || p.rules.Once(spec) || len(who.Named) > 0 || p.turn.Agent.Descriptor.Shared()
	who.Tell(&q, a.by)
	return q, err
}

// approvalRound is a round of questions about a call.
func approvalRound(call claybot.ToolCall, n int) string {
	if n == 1 {
		return "approve/" + call.ID
	}
	return fmt.Sprintf("approve/%s/%d", call.ID, n)
}

// unasked is how a pass ends whose question could not be put.
func (p *approvals) unasked(ctx context.Context, call claybot.ToolCall, err error) error {
	if ctx.Err() != nil {
		return runs.Ended(ctx)
	}
	return fmt.Errorf("ask for the approval of %s: %w", call.Name, err)
}

// hear takes an answer to an action, and says why it does not let it run. Only
// what was shown may run: the digest of the question is compared with that of
// the action, in the place where it would run now.
func (p *approvals) hear(a *action, said claybot.Answer, who tools.Approvers) (refused string) {
	switch reason := strings.TrimSpace(said.Reason); {
	case !tools.Approved(said) && reason != "":
		return notApproved + ": " + reason
	case !tools.Approved(said) && said.Via == claybot.ViaDefault:
		return notApproved + ": no answer in time"
	case !tools.Approved(said):
		return notApproved
	}
	asked := p.talk.question(said.Question)
	if asked == nil || asked.Digest != tools.Digest(p.turn.Agent.ID, p.place, a.ToolCall) {
		p.log.Warn("call differs from the approved one", "tool", a.Name, "question", said.Question)
		return notApproved + ": the approval was for another action; make the call again to be asked anew"
	}
	if len(who.Named) > 0 && !who.May(said.By) {
		return notApproved + ": who approved it may not do so any more"
	}
	if said.Args != "" {
		edited := a.ToolCall
		edited.Args = said.Args
		if err := p.tools.Editable(p.turn.Agent, edited); err != nil {
			return fmt.Sprintf("%s: a person edited the arguments, and they do not fit any more: %v", notApproved, err)
		}
		*a = action{ToolCall: edited, edits: a.edits + 1}
	}
	switch {
	case who.Need == 1 && len(who.Named) == 0: // the door has let him in
		a.by = []string{who.Owner}
	case said.By != "" && !who.Among(a.by, said.By):
		a.by = append(a.by, said.By)
	}
	return ""
}

// says is what the model says about the action that is asked for.
func (p *approvals) says() string {
	for _, r := range slices.Backward(p.talk.all()) {
		if r.Type == claybot.RecordAssistant {
			said := strings.TrimSpace(r.Text)
			return llm.Cut(said, maxReason, maxReason/2, func(left int) string { return llm.LeftOut(left, len(said)) })
		}
	}
	return ""
}

// person is the name of the agent's person, as their newest message has it.
func (p *approvals) person() string {
	for _, m := range slices.Backward(p.turn.Messages) {
		if m.Type == claybot.MessageUser && m.From.Name != "" && p.turn.Agent.Descriptor.Type == claybot.AgentUser {
			return m.From.Name
		}
	}
	return ""
}

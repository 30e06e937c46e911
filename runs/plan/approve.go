package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
)

// Approvals are the rounds of questions about the steps that run only with an approval.
type approvals struct {
	cfg    *Config
	may    permitter
	undoes bool
}

// A permitter knows what needs an approval, and from which people.
type permitter interface {
	// needs reports whether a step runs only with an approval of its own.
	needs(s *state, p Policy, spec tools.Spec, st Step) bool
	// approvers are the people who approve the steps of a plan.
	approvers(s *state, p Policy) tools.Approvers
	// decide says what the rules say of a step, whatever its risk, and why in the language of
	// the readers of ctx.
	decide(ctx context.Context, s *state, p Policy, spec tools.Spec, st Step) tools.Decision
	// bound is what an approval of a call is bound to.
	bound(s *state, call claybot.ToolCall) string
}

// settle asks about the steps that run only with an approval. Where several
// people approve, each is a round of its own. What is denied is left to the
// executor, which skips it with what depends on it.
func (ap *approvals) settle(ctx context.Context, s *state, p Policy) (string, error) {
	for {
		qs := ap.questions(ctx, s, p)
		if len(qs) == 0 {
			return "", nil
		}
		if next, err := question(ctx, s, p, askApprove, qs, ap.hear); err != nil || next != "" {
			return next, err
		}
	}
}

// questions are the questions about the steps that need one more approval.
func (ap *approvals) questions(ctx context.Context, s *state, p Policy) (qs []claybot.Question) {
	set := ap.cfg.tools(s)
	denied := make(map[string]bool)
	for _, st := range inOrder(s.Scratch.Steps) {
		if slices.ContainsFunc(st.DependsOn, func(on string) bool { return denied[on] }) {
			denied[st.ID] = true
			continue
		}
		spec, ok := set.Spec(st.Tool)
		if !ok || p.forbids(spec, ap.undoes) != "" || !ap.may.needs(s, p, spec, st) {
			continue
		}
		v := vote(s, st.ID)
		if q, ok := ap.question(ctx, s, p, spec, st, v); ok {
			qs = append(qs, q)
		}
		denied[st.ID] = v.Denied != ""
	}
	return qs
}

// question is the question about one step; ok is false when there is nothing to ask
// any more.
func (ap *approvals) question(ctx context.Context, s *state, p Policy, spec tools.Spec, st Step, v *Vote) (q claybot.Question, ok bool) {
	if v.Denied != "" || ap.may.approvers(s, p).Enough(v.By) {
		return q, false
	}
	who, few := ap.may.approvers(s, p).Left(v.By)
	call := st.call(s)
	voice := texts.Of(ctx)
	why := reason(voice.Lasting(), st)
	if d := ap.may.decide(context.WithoutCancel(ctx), s, p, spec, st); len(d.Owners) > 0 {
		why = voice.Say(texts.PlanDiscloses, d.Why, why)
	}
	if v.Edits > 0 && len(v.By) > 0 {
		why += " " + voice.Say(texts.PlanArguments, v.By[0])
	}
	q, err := tools.Approval(s.Turn.Agent, ap.cfg.place(s), spec.In(env(s)), call, tools.Grounds{Why: strings.TrimSuffix(why, "."), Say: voice.Say, Doing: voice.Doing(spec), Own: len(who) == 0})
	switch {
	case few != nil:
		v.Denied = fmt.Sprintf(texts.PlanDenied, few)
	case s.Scratch.Rounds[askApprove] > p.Approvals+1+edits(s):
		v.Denied = fmt.Sprintf(texts.PlanTooFew, strconv.Itoa(p.Approvals))
	case err != nil:
		v.Denied = fmt.Sprintf(texts.PlanDenied, err)
	default:
		q.Key, q.ToolCallID, q.Approvers, q.Once = st.shown(), call.ID, who, q.Once || p.once() || ap.cfg.rules(s, p).Once(spec) || s.Turn.Agent.Descriptor.Shared()
		ap.may.approvers(s, p).Tell(&q, v.By)
		if ap.undoes {
			q.Args = "" // what is undone is what was done
		}
		return q, true
	}
	return q, false
}

// maxEdits is how often the arguments of a step may be edited.
const maxEdits = 3

// reason says why a step is to be run.
func reason(v texts.Voice, st Step) string {
	if len(st.Effects) > 0 {
		return v.Say(texts.PlanUndoes, effectNames(v, st.Effects))
	}
	if st.What != "" {
		return v.Say(texts.PlanStepOf, st.ID, st.What)
	}
	return v.Say(texts.PlanStep, st.ID)
}

// vote is what people said to a step so far.
func vote(s *state, step string) *Vote {
	if s.Scratch.Votes == nil {
		s.Scratch.Votes = make(map[string]*Vote)
	}
	v := s.Scratch.Votes[step]
	if v == nil {
		v = &Vote{}
		s.Scratch.Votes[step] = v
	}
	return v
}

// hear counts the answers of a round, and shows the plan when one of them changed it.
func (ap *approvals) hear(ctx context.Context, s *state, p Policy, r heard) (string, error) {
	if r.unreachable {
		for _, q := range r.questions {
			vote(s, stepOf(q.ToolCallID)).Denied = texts.PlanNobody
		}
		return "", nil
	}
	if !ap.count(s, p, r.questions, r.answers) {
		return "", nil
	}
	return "", show(ctx, s)
}

// count counts the answers of a round. An approval counts for the action that
// was shown, which is the one of the question in the history, and only when the
// policy still names who gave it. One with other arguments puts these into the
// step, and is the first for the new action. It reports whether there was one.
func (ap *approvals) count(s *state, p Policy, qs []claybot.Question, answers []claybot.Answer) (edited bool) {
	for i, q := range qs {
		a := answers[i]
		v := vote(s, stepOf(q.ToolCallID))
		yes, shown := tools.Approved(a), shownDigest(s, a.Question)
		switch {
		case a.Via == claybot.ViaDefault || absent(a.Value):
			v.Denied = texts.PlanExpired
		case !yes && a.Reason != "":
			v.Denied = fmt.Sprintf(texts.PlanDenied, clip(a.Reason, maxWhat))
		case !yes:
			v.Denied = texts.PlanNotApproved
		case shown == "" || v.Digest != "" && v.Digest != shown:
			v.Denied = texts.PlanVoid
		case !ap.may.approvers(s, p).May(a.By):
			v.Denied = texts.PlanNoApprover
		case a.Args != "":
			if !ap.edit(s, stepOf(q.ToolCallID), a, v) {
				v.Denied = texts.PlanVoid
			}
			edited = true
		case p.Approvals > 1 && (a.By == "" || ap.may.approvers(s, p).Among(v.By, a.By)):
			// The same person counts once; another approver is asked.
		default:
			v.Digest = shown
			v.By = append(v.By, a.By)
		}
	}
	return edited
}

// edit puts the arguments of a person into a step. It reports whether they fit.
func (ap *approvals) edit(s *state, step string, a claybot.Answer, v *Vote) bool {
	steps := slices.Clone(s.Scratch.Steps)
	i := slices.IndexFunc(steps, func(st Step) bool { return st.ID == step })
	if i < 0 {
		return false
	}
	steps[i].Args = json.RawMessage(a.Args)
	call := steps[i].call(s)
	if err := ap.cfg.tools(s).Editable(s.Turn.Agent, call); err != nil {
		ap.cfg.log(s).Warn("edited arguments no longer valid", "step", step, "tool", call.Name)
		return false
	}
	s.Scratch.Steps = steps
	*v = Vote{Digest: ap.may.bound(s, call), By: []string{a.By}, Edits: v.Edits + 1}
	return v.Edits <= maxEdits
}

// edits is how many rounds of questions are due to other arguments.
func edits(s *state) (n int) {
	for _, v := range s.Scratch.Votes {
		n += v.Edits
	}
	return n
}

// shownDigest is the digest of the action that a question was about; empty when
// it is not in the history.
func shownDigest(s *state, question string) string {
	for _, r := range slices.Backward(s.Turn.History) {
		if r.Type == claybot.RecordQuestion && r.Question != nil && r.Question.ID == question {
			return r.Question.Digest
		}
	}
	return ""
}

package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/tools"
)

// approvals asks about the steps that run only with an approval. Where several
// people approve, each is a round of its own. What is denied is left to the
// executor, which skips it with what depends on it.
func (e *engine) approvals(ctx context.Context, s *state, p Policy) (string, error) {
	for {
		qs := e.ballot(s, p)
		if len(qs) == 0 {
			return "", nil
		}
		if next, err := e.question(ctx, s, p, askApprove, qs); err != nil || next != "" {
			return next, err
		}
	}
}

// ballot are the questions about the steps that need one more approval.
func (e *engine) ballot(s *state, p Policy) (qs []claybot.Question) {
	set := e.tools(s)
	denied := make(map[string]bool)
	for _, st := range inOrder(s.Scratch.Steps) {
		if slices.ContainsFunc(st.DependsOn, func(on string) bool { return denied[on] }) {
			denied[st.ID] = true
			continue
		}
		spec, ok := set.Spec(st.Tool)
		if !ok || p.forbids(spec, e.undo) != "" || !e.needs(s, p, spec, st) {
			continue
		}
		v := e.vote(s, st.ID)
		if q, ok := e.paper(s, p, spec, st, v); ok {
			qs = append(qs, q)
		}
		denied[st.ID] = v.Denied != ""
	}
	return qs
}

// paper is the question about one step; ok is false when there is nothing to ask
// any more.
func (e *engine) paper(s *state, p Policy, spec tools.Spec, st Step, v *Vote) (q claybot.Question, ok bool) {
	if v.Denied != "" || e.electorate(s.Turn.Agent, p).Enough(v.By) {
		return q, false
	}
	who, few := e.electorate(s.Turn.Agent, p).Left(v.By)
	call := st.call(s)
	why := reason(st)
	if v.Edits > 0 && len(v.By) > 0 {
		why += " The arguments are those of " + v.By[0] + "."
	}
	q, err := tools.Approval(s.Turn.Agent, e.place(s), spec.In(e.env(s)), call, why)
	switch {
	case few != nil:
		v.Denied = notApproved + ": " + few.Error()
	case s.Scratch.Rounds[askApprove] > p.Approvals+1+edits(s):
		v.Denied = fmt.Sprintf(whyTooFew, p.Approvals)
	case err != nil:
		v.Denied = notApproved + ": " + err.Error()
	default:
		q.Key, q.ToolCallID, q.Approvers, q.Once = st.shown(), call.ID, who, q.Once || p.once() || e.rules(s, p).Once(spec)
		e.electorate(s.Turn.Agent, p).Tell(&q, v.By)
		if e.undo {
			q.Args = "" // what is taken back is what was done
		}
		return q, true
	}
	return q, false
}

// maxEdits is how often the arguments of a step may be edited.
const maxEdits = 3

// reason says why a step is to be run.
func reason(st Step) string {
	if len(st.Effects) > 0 {
		return "It takes back: " + effectNames(st.Effects)
	}
	if st.What != "" {
		return fmt.Sprintf("It is %s of the plan: %s", st.ID, st.What)
	}
	return fmt.Sprintf("It is %s of the plan.", st.ID)
}

// vote is what people said to a step so far.
func (e *engine) vote(s *state, step string) *Vote {
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

// hearVotes counts the answers of a round. An approval counts for the action that
// was shown, which is the one of the question in the history, and only when the
// policy still names who gave it. One with other arguments puts these into the
// step, and is the first for the new action. It reports whether there was one.
func (e *engine) hearVotes(s *state, p Policy, qs []claybot.Question, answers []claybot.Answer) (edited bool) {
	for i, q := range qs {
		a := answers[i]
		v := e.vote(s, stepOf(q.ToolCallID))
		yes, shown := tools.Approved(a), shownDigest(s, a.Question)
		switch {
		case a.Via == claybot.ViaDefault || absent(a.Value):
			v.Denied = whyExpired
		case !yes && a.Reason != "":
			v.Denied = notApproved + ": " + clip(a.Reason, maxWhat)
		case !yes:
			v.Denied = notApproved
		case shown == "" || v.Digest != "" && v.Digest != shown:
			v.Denied = whyVoid
		case !e.electorate(s.Turn.Agent, p).May(a.By):
			v.Denied = whyNoApprover
		case a.Args != "":
			if !e.edit(s, stepOf(q.ToolCallID), a, v) {
				v.Denied = whyVoid
			}
			edited = true
		case p.Approvals > 1 && (a.By == "" || e.electorate(s.Turn.Agent, p).Among(v.By, a.By)):
			// The same person counts once; somebody else is asked.
		default:
			v.Digest = shown
			v.By = append(v.By, a.By)
		}
	}
	return edited
}

// edit puts the arguments of a person into a step. It reports whether they fit.
func (e *engine) edit(s *state, step string, a claybot.Answer, v *Vote) bool {
	steps := slices.Clone(s.Scratch.Steps)
	i := slices.IndexFunc(steps, func(st Step) bool { return st.ID == step })
	if i < 0 {
		return false
	}
	steps[i].Args = json.RawMessage(a.Args)
	call := steps[i].call(s)
	if err := e.tools(s).Editable(s.Turn.Agent, call); err != nil {
		e.log(s).Warn("edited arguments do not fit any more", "step", step, "tool", call.Name)
		return false
	}
	s.Scratch.Steps = steps
	*v = Vote{Digest: e.bound(s, call), By: []string{a.By}, Edits: v.Edits + 1}
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

// refuses says why a step must not run now; empty when it may. It is asked
// directly before the step runs.
func (e *engine) refuses(s *state, set *tools.Set, p Policy, st Step) string {
	spec, ok := set.Spec(st.Tool)
	switch {
	case p.Mode == ModePreview:
		return whyPreview
	case !ok && e.undo:
		return "" // its call says so
	case !ok:
		return fmt.Sprintf("there is no tool %s any more", quoted(st.Tool))
	}
	if why := p.forbids(spec, e.undo); why != "" {
		return why
	}
	if d := e.decide(s, p, spec, st); d.Verdict == tools.Refuse {
		return d.Why
	}
	v := s.Scratch.Votes[st.ID]
	switch {
	case v != nil && v.Denied != "": // of this step alone, whatever is granted to its tool
		return v.Denied
	case !e.needs(s, p, spec, st):
		return ""
	case v == nil, !e.electorate(s.Turn.Agent, p).Enough(v.By):
		return notApproved
	case v.Digest != e.bound(s, claybot.ToolCall{Name: st.Tool, Args: string(st.Args)}):
		return whyVoid
	}
	return ""
}

// inOrder are steps so that each comes behind those that it depends on.
func inOrder(steps []Step) []Step {
	placed := make(map[string]bool)
	ordered := make([]Step, 0, len(steps))
	for len(ordered) < len(steps) {
		before := len(ordered)
		for _, st := range steps {
			ready := !slices.ContainsFunc(st.DependsOn, func(on string) bool { return !placed[on] })
			if ready && !placed[st.ID] {
				placed[st.ID] = true
				ordered = append(ordered, st)
			}
		}
		if len(ordered) == before {
			break // a circle, which no checked plan has
		}
	}
	return ordered
}

// undone is the message of a run that takes back what another one did.
func undone(t *runs.Turn) claybot.Undoing {
	for _, m := range t.Messages {
		if m.Undo != nil {
			return *m.Undo
		}
	}
	return claybot.Undoing{}
}

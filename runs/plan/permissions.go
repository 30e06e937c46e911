package plan

import (
	"context"
	"slices"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
)

// Permissions say which steps may run, and which of them only with an approval: by the
// policy, the rules of the agent and what people said.
type permissions struct {
	cfg    *Config
	undoes bool // the run takes back what another one did
}

// refuses says why a step must not run now; empty when it may. It is asked
// directly before the step runs.
func (may *permissions) refuses(s *state, set *tools.Set, p Policy, st Step) string {
	spec, ok := set.Spec(st.Tool)
	switch {
	case p.Mode == ModePreview:
		return texts.PlanPreview
	case !ok && may.undoes:
		return "" // its call says so
	case !ok:
		return texts.PlanGone
	}
	if p.forbids(spec, may.undoes) != "" {
		return texts.PlanForbidden
	}
	if d := may.decide(context.Background(), s, p, spec, st); d.Verdict == tools.Refuse {
		return d.Why
	}
	v := s.Scratch.Votes[st.ID]
	switch {
	case v != nil && v.Denied != "": // of this step alone, whatever is granted to its tool
		return v.Denied
	case !may.needs(s, p, spec, st):
		return ""
	case v == nil, !may.approvers(s, p).Enough(v.By):
		return texts.PlanNotApproved
	case v.Digest != may.bound(s, claybot.ToolCall{Name: st.Tool, Args: string(st.Args)}):
		return texts.PlanVoid
	}
	return ""
}

// needs reports whether a step runs only with an approval of its own.
func (may *permissions) needs(s *state, p Policy, spec tools.Spec, st Step) bool {
	if may.cfg.dry(s) {
		return false
	}
	rules := may.cfg.rules(s, p)
	switch d := may.decide(context.Background(), s, p, spec, st); {
	case d.Verdict != tools.Allow:
		return d.Verdict == tools.Ask
	case may.undoes && p.asks(spec):
	case p.Mode == ModeAuto, st.Risk != riskHigh && !p.risky(spec):
		return false
	}
	switch {
	case rules.Allowed(spec.In(env(s)), st.Args):
		return false
	case p.once():
		return true
	}
	return !tools.Granted(s.Turn.History, st.Tool)
}

// decide says what the rules say of a step, whatever its risk. A plan is made
// before any of its steps runs, so what counts is what had been read then. An undo
// does what a person asked for; no text has a part in it. Why is said to the readers of ctx.
func (may *permissions) decide(ctx context.Context, s *state, p Policy, spec tools.Spec, st Step) tools.Decision {
	if may.undoes {
		return tools.Decision{Verdict: tools.Allow}
	}
	history := s.Turn.History
	acts := slices.IndexFunc(history, func(r claybot.Record) bool {
		return r.Run == s.Turn.Run.ID && r.Type == claybot.RecordAssistant && len(r.ToolCalls) > 0
	})
	if acts >= 0 {
		history = history[:acts]
	}
	env := env(s).Aware(history)
	env.Say = texts.Of(ctx).Say
	call := claybot.ToolCall{Name: st.Tool, Args: string(st.Args)}
	ctx, cancel := context.WithTimeout(ctx, disclosureTime)
	defer cancel()
	d := may.cfg.rules(s, p).Decide(ctx, env, spec, call, s.Turn.History)
	if slices.ContainsFunc(s.Turn.Speakers(d.Owners), func(owner string) bool { return !may.approvers(s, p).May(owner) }) {
		return tools.Decision{Verdict: tools.Refuse, Why: d.Why + ", and the person whose that is does not approve the steps of this plan"}
	}
	return d
}

// disclosureTime bounds how long it may take to find out whom a step lets read what.
const disclosureTime = 10 * time.Second

// env is where the steps of the plan act, before one of them does.
func env(s *state) tools.Env {
	return tools.Env{Agent: s.Turn.Agent, Run: s.Turn.Run.ID, Route: s.Turn.Route(), Place: s.Turn.Place()}
}

// approvers are the people who approve the steps of a plan.
func (may *permissions) approvers(s *state, p Policy) tools.Approvers {
	return tools.Approvers{Need: p.Approvals, Named: p.Approvers, Owner: s.Turn.Owner(), People: may.cfg.People}
}

// bound is what an approval of a call is bound to: the call, and where it runs.
func (may *permissions) bound(s *state, call claybot.ToolCall) string {
	return tools.Digest(s.Turn.Agent.ID, may.cfg.place(s), call)
}

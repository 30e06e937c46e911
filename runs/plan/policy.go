package plan

import (
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/tools"
)

// A Mode says what a plan needs before it runs.
type Mode string

// The modes.
const (
	ModePreview Mode = "preview" // nothing runs; the plan is shown
	ModeApprove Mode = "approve" // steps of high risk are asked about
	ModeAuto    Mode = "auto"    // only what a tool or a rule says is asked about
)

// Defaults of a Policy.
const (
	defaultRetries   = 3
	defaultRetryBase = 500 * time.Millisecond
)

// A Policy is the rules for plans. The zero Policy asks about steps of high risk
// and limits nothing else.
type Policy struct {
	Mode Mode // empty: approve
	// Allow and Deny are globs of tools; Deny wins, an empty Allow is all. An undo
	// may use what Allow leaves out: the effect was allowed.
	Allow []string
	Deny  []string
	// Scopes are those of tools that may be used; empty: all.
	Scopes []string
	// Approve are globs of tools that ask each time, whatever the mode.
	Approve []string
	Quiet   *Quiet // nil: no quiet hours
	// Budget is what a plan may cost by its own guesses, in millionths of a US
	// dollar; 0: no limit.
	Budget int64
	// Approvals is how many different people approve a step; 0: 1. Operators, who
	// approve on the page or over HTTP, count as one of them altogether.
	Approvals int
	// Approvers are who may approve, as "connector/userId"; none: the agent's own
	// person. Who is named no more when the answers are counted does not count.
	//
	// With several approvals, or with approvers, nothing is approved for a session
	// or always.
	Approvers []string
	// ContinueOnError goes on after a step that failed, except with what depends
	// on it.
	ContinueOnError bool
	// Retries is how often a step is tried again; 0: 3, below 0: never.
	Retries int
	// RetryBase is the first pause before that, each next one is twice as long;
	// 0: 500 ms.
	RetryBase time.Duration
}

// What happens to a plan in quiet hours.
const (
	QuietPlanOnly = "plan_only" // it is shown alone
	QuietDefer    = "defer"     // it waits for their end, or for a yes
	QuietBlock    = "block"     // it is refused
)

// Quiet are hours in which nothing runs, in the zone of the person. From and To
// are minutes of the day; where To is before From, it is on the next day. Equal
// ones are no time at all.
type Quiet struct {
	From, To int
	What     string // QuietPlanOnly and the like; anything else blocks
}

func (p Policy) withDefaults() Policy {
	switch p.Mode {
	case ModePreview, ModeApprove, ModeAuto:
	case "":
		p.Mode = ModeApprove
	default: // a mistake runs nothing
		p.Mode = ModePreview
	}
	p.Approvals = max(p.Approvals, 1)
	switch {
	case p.Retries == 0:
		p.Retries = defaultRetries
	case p.Retries < 0:
		p.Retries = 0
	}
	if p.RetryBase <= 0 {
		p.RetryBase = defaultRetryBase
	}
	return p
}

// forbids says why a plan must not use a tool; empty when it may.
func (p Policy) forbids(spec tools.Spec, undo bool) string {
	switch {
	case matches(p.Deny, spec.Name):
		return fmt.Sprintf("the policy denies the tool %q", spec.Name)
	case !undo && len(p.Allow) > 0 && !matches(p.Allow, spec.Name):
		return fmt.Sprintf("the policy does not allow the tool %q", spec.Name)
	}
	if len(p.Scopes) == 0 {
		return ""
	}
	for _, scope := range spec.Scopes {
		if !slices.Contains(p.Scopes, scope) {
			return fmt.Sprintf("the policy does not allow what the tool %q reaches: %s", spec.Name, scope)
		}
	}
	return ""
}

// asks reports whether each call of a tool is to be approved, whatever the mode.
func (p Policy) asks(spec tools.Spec) bool {
	return spec.Confirm || matches(p.Approve, spec.Name)
}

// once reports whether an approval is for one action alone.
func (p Policy) once() bool { return p.Approvals > 1 || len(p.Approvers) > 0 }

// risky reports whether a step is of high risk for other reasons than the
// model's.
func (p Policy) risky(spec tools.Spec) bool {
	return spec.Effect == tools.Once || p.asks(spec)
}

// matches reports whether one of the globs fits a name. A broken glob is only
// the name that it is.
func matches(globs []string, name string) bool {
	return slices.ContainsFunc(globs, func(g string) bool {
		ok, err := path.Match(g, name)
		return err == nil && ok || g == name
	})
}

// until is when the quiet hours end that hold at a time; ok is false when none
// do.
func (q *Quiet) until(now time.Time) (end time.Time, ok bool) {
	if q == nil || q.From == q.To {
		return end, false
	}
	minute := now.Hour()*60 + now.Minute()
	over := q.From > q.To // midnight lies within
	switch {
	case !over && (minute < q.From || minute >= q.To), over && minute < q.From && minute >= q.To:
		return end, false
	}
	day := now.Day()
	if over && minute >= q.From {
		day++
	}
	end = time.Date(now.Year(), now.Month(), day, q.To/60, q.To%60, 0, 0, now.Location())
	if !end.After(now) { // the clocks are put back in between
		end = now.Add(time.Minute)
	}
	return end, true
}

// needs reports whether a step runs only with an approval of its own.
func (e *engine) needs(s *state, p Policy, spec tools.Spec, st Step) bool {
	if e.dry(s) {
		return false
	}
	rules := e.rules(s, p)
	switch d := e.decide(s, p, spec, st); {
	case d.Verdict != tools.Allow:
		return d.Verdict == tools.Ask
	case e.undo && p.asks(spec):
	case p.Mode == ModeAuto, st.Risk != riskHigh && !p.risky(spec):
		return false
	}
	switch {
	case rules.Allowed(spec.In(e.env(s)), st.Args):
		return false
	case p.once():
		return true
	}
	return !tools.Granted(s.Turn.History, st.Tool)
}

// rules are when the calls of the agent ask.
func (e *engine) rules(s *state, p Policy) tools.Rules {
	var r tools.Rules
	if e.Rules != nil {
		r = e.Rules(s.Turn.Agent)
	}
	r.Ask = append(slices.Clone(r.Ask), p.Approve...)
	if e.Approved != nil {
		r.Always = append(slices.Clone(r.Always), e.Approved(s.Turn.Agent)...)
	}
	r.Quorum, r.Approvers = p.Approvals, p.Approvers
	return r
}

// decide says what the rules say of a step, whatever its risk. A plan is made
// before any of its steps runs, so what counts is what had been read then. An undo
// does what somebody asked for, which no text has any part in.
func (e *engine) decide(s *state, p Policy, spec tools.Spec, st Step) tools.Decision {
	if e.undo {
		return tools.Decision{Verdict: tools.Allow}
	}
	history := s.Turn.History
	acts := slices.IndexFunc(history, func(r claybot.Record) bool {
		return r.Run == s.Turn.Run.ID && r.Type == claybot.RecordAssistant && len(r.ToolCalls) > 0
	})
	if acts >= 0 {
		history = history[:acts]
	}
	env := e.env(s).Aware(history)
	call := claybot.ToolCall{Name: st.Tool, Args: string(st.Args)}
	return e.rules(s, p).Decide(env, spec, call, s.Turn.History)
}

// env is where the steps of the plan act, before one of them does.
func (e *engine) env(s *state) tools.Env {
	return tools.Env{Agent: s.Turn.Agent, Run: s.Turn.Run.ID, Thread: s.Turn.Thread()}
}

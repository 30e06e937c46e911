package plan

import (
	"fmt"
	"path"
	"slices"
	"time"

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

// forbids says why a plan must not use a tool, in words for the model; empty when it may.
func (p Policy) forbids(spec tools.Spec, undo bool) string {
	switch {
	case matches(p.Deny, spec.Name):
		return "the policy denies the tool " + quoted(spec.Name)
	case !undo && len(p.Allow) > 0 && !matches(p.Allow, spec.Name):
		return "the policy does not allow the tool " + quoted(spec.Name)
	}
	if len(p.Scopes) == 0 {
		return ""
	}
	for _, scope := range spec.Scopes {
		if !slices.Contains(p.Scopes, scope) {
			return fmt.Sprintf("the policy does not allow what the tool %s reaches: %s", quoted(spec.Name), scope)
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

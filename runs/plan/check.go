package plan

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/lazyregexp"
	"github.com/claybot/claybot/tools"
)

// idForm is what the id of a step looks like. With the mark and the digest of its
// call it fits the id of a call.
var idForm = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,22}$`)

// maxFaults is how many faults a person is told.
const maxFaults = 12

// A checker finds what keeps the steps of a plan from running.
type checker struct {
	cfg *Config
	may decider
}

// A decider says what the rules say of a step, whatever its risk.
type decider interface {
	decide(ctx context.Context, s *state, p Policy, spec tools.Spec, st Step) tools.Decision
}

// faults are all that keep the steps from running as they are, by the names of
// the steps. Arguments that name inputs without a value are checked later.
func (c *checker) faults(s *state, steps []Step) []string {
	intent, ok := c.cfg.intent(s)
	if !ok {
		return []string{fmt.Sprintf("there is no intent %s any more", quoted(s.Scratch.Intent))}
	}
	set, policy := c.cfg.tools(s), c.cfg.policy(s)
	faults := shape(steps)
	for i, st := range steps {
		for _, why := range c.stepFaults(s, set, policy, intent, st) {
			faults = append(faults, quoted(st.ID)+": "+why)
		}
		steps[i].Risk = raised(st, set, policy)
	}
	return faults
}

// raised is the risk of a step: never below what its tool and the policy say.
func raised(st Step, set *tools.Set, policy Policy) string {
	if spec, ok := set.Spec(st.Tool); !ok || policy.risky(spec) {
		return riskHigh
	}
	return st.Risk
}

// stepFaults are those of one step alone.
func (c *checker) stepFaults(s *state, set *tools.Set, policy Policy, intent Intent, st Step) []string {
	if st.Tool == "" {
		return nil // the parser has said so
	}
	spec, ok := set.Spec(st.Tool)
	if !ok || spec.Hidden {
		return []string{fmt.Sprintf("there is no tool %s", quoted(st.Tool))}
	}
	if len(intent.Tools) > 0 && !matches(intent.Tools, st.Tool) {
		return []string{fmt.Sprintf("the tool %q is not for %s", st.Tool, quoted(intent.Name))}
	}
	if why := policy.forbids(spec, false); why != "" {
		return []string{why}
	}
	if d := c.may.decide(context.Background(), s, policy, spec, st); d.Verdict == tools.Refuse {
		return []string{d.Why}
	}
	args, open := st.Args, false
	if !s.Scratch.Filled {
		f := filling{values: s.Scratch.values(), known: keys(intent)}
		args = f.fill(args)
		if len(f.faults) > 0 {
			return f.faults
		}
		open = f.open
	}
	if open && len(missing(intent, s.Scratch)) > 0 {
		return nil
	}
	if err := set.Check(claybot.ToolCall{Name: st.Tool, Args: string(args)}); err != nil {
		return []string{err.Error()}
	}
	return nil
}

// shape are the faults of the ids of steps and of what they depend on.
func shape(steps []Step) (faults []string) {
	at := make(map[string]int, len(steps))
	for i, st := range steps {
		if !idForm.MatchString(st.ID) {
			faults = append(faults, fmt.Sprintf("invalid step id %s: use 1 to 23 of A-Z a-z 0-9 _ . -", quoted(st.ID)))
		}
		if _, twice := at[st.ID]; twice {
			faults = append(faults, fmt.Sprintf("%s: there are two steps with this id", quoted(st.ID)))
			continue
		}
		at[st.ID] = i
	}
	for _, st := range steps {
		for _, on := range st.DependsOn {
			if _, ok := at[on]; !ok {
				faults = append(faults, fmt.Sprintf("%s: it depends on %s, which is not a step", quoted(st.ID), quoted(on)))
			}
		}
	}
	if ring := circle(steps, at); len(ring) > 0 {
		for i := range ring {
			ring[i] = quoted(ring[i])
		}
		faults = append(faults, "steps depend on each other in a circle: "+strings.Join(ring, " → "))
	}
	return faults
}

// circle is one circle of dependencies, beginning and ending with the same step;
// empty when there is none.
func circle(steps []Step, at map[string]int) []string {
	const (
		open = 1
		done = 2
	)
	mark := make(map[string]int)
	var way, found []string
	var visit func(id string) bool
	visit = func(id string) bool {
		switch mark[id] {
		case done:
			return false
		case open:
			found = append(way[slices.Index(way, id):len(way):len(way)], id)
			return true
		}
		mark[id] = open
		way = append(way, id)
		for _, on := range steps[at[id]].DependsOn {
			if _, ok := at[on]; ok && visit(on) {
				return true
			}
		}
		way = way[:len(way)-1]
		mark[id] = done
		return false
	}
	for _, id := range slices.Sorted(maps.Keys(at)) {
		if visit(id) {
			return found
		}
	}
	return nil
}

// told is a list of faults as one sentence for a person.
func told(faults []string) string {
	rest := ""
	if n := len(faults) - maxFaults; n > 0 {
		faults, rest = faults[:maxFaults], fmt.Sprintf("; and %d more", n)
	}
	return strings.Join(faults, "; ") + rest
}

// quoted shows a word that a model or a person wrote.
func quoted(s string) string { return fmt.Sprintf("%q", clip(s, 60)) }

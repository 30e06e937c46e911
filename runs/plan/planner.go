package plan

import (
	"context"
	"fmt"

	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/runs"
)

// planner has the model make the plan. It asks no person.
func (e *engine) planner(ctx context.Context, s *state) (string, error) {
	s.Scratch.Mode = e.policy(s).Mode
	if s.Scratch.Intent == noIntent {
		s.Output.Diff = s.Scratch.Meta.Text
		return nodeConfirm, nil
	}
	intent, ok := e.intent(s)
	if !ok {
		return e.fail(s, "the intent is gone", fmt.Sprintf(sayIntentGone, quoted(s.Scratch.Intent)))
	}
	var made draft
	set := e.tools(s)
	j := job{
		id: llm.PlanRequest, system: plannerSystem,
		task: plannerTask(s, intent, e.offered(s, intent), set, e.zone(s)),
	}
	faults, err := e.repaired(ctx, s, j, func(text string) (faults []string) {
		if made, faults = parsePlan(text); len(made.steps) == 0 {
			return faults
		}
		return append(faults, e.faults(s, made.steps)...)
	})
	if err != nil {
		return "", err
	}
	if len(faults) > 0 {
		return e.fail(s, fmt.Sprintf("the plan has faults: %d", len(faults)), fmt.Sprintf(sayBadPlan, told(faults)))
	}
	s.Scratch.Steps, s.Output.Diff = made.steps, made.diff
	if len(missing(intent, s.Scratch)) == 0 {
		e.fill(s, intent)
	}
	s.Because(fmt.Sprintf("%d steps", len(made.steps)))
	if len(made.steps) == 0 {
		return nodeConfirm, nil
	}
	return nodeConfirm, tell(ctx, s, runs.Planned(s.Turn.Run.ID, planned(made.steps), made.diff, string(s.Scratch.Mode)))
}

// offered are the tools that the plan may use.
func (e *engine) offered(s *state, intent Intent) []llm.Tool {
	set, policy := e.tools(s), e.policy(s)
	var may []llm.Tool
	for _, t := range set.Tools() {
		spec, ok := set.Spec(t.Name)
		if !ok || policy.forbids(spec, false) != "" || len(intent.Tools) > 0 && !matches(intent.Tools, t.Name) {
			continue
		}
		may = append(may, t)
	}
	return may
}

// fill puts the inputs into the arguments of the steps, once: what was inserted
// is never read as the name of an input. It reports whether an argument changed.
func (e *engine) fill(s *state, intent Intent) (changed bool) {
	if s.Scratch.Filled {
		return false
	}
	f := filling{values: s.Scratch.values(), known: keys(intent)}
	for i, st := range s.Scratch.Steps {
		args := f.fill(st.Args)
		changed = changed || string(args) != string(st.Args)
		s.Scratch.Steps[i].Args = args
	}
	s.Scratch.Filled = true
	return changed
}

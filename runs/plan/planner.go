package plan

import (
	"context"
	"fmt"

	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/tools"
)

// A planner has the model find out what the person wants, and make the plan.
type planner struct {
	cfg   *Config
	model repairer
	check *checker
}

// A repairer asks the model for an answer that read accepts, and once more where it has
// faults. They are those of the last answer.
type repairer interface {
	repaired(ctx context.Context, s *state, j job, read func(text string) (faults []string)) ([]string, error)
}

// plan has the model make the plan. It asks no person.
func (p *planner) plan(ctx context.Context, s *state) (string, error) {
	s.Scratch.Mode = p.cfg.policy(s).Mode
	if s.Scratch.Intent == noIntent {
		s.Output.Diff = s.Scratch.Meta.Text
		return nodeConfirm, nil
	}
	intent, ok := p.cfg.intent(s)
	if !ok {
		return fail(s, "the intent is gone", fmt.Sprintf(sayIntentGone, quoted(s.Scratch.Intent)))
	}
	var made draft
	set := p.cfg.tools(s)
	j := job{
		id: llm.PlanRequest, system: plannerSystem,
		task: plannerTask(s, intent, p.offered(s, intent), set, p.cfg.zone(s)),
	}
	faults, err := p.model.repaired(ctx, s, j, func(text string) (faults []string) {
		if made, faults = parsePlan(text); len(made.steps) == 0 {
			return faults
		}
		return append(faults, p.check.faults(s, made.steps)...)
	})
	if err != nil {
		return "", err
	}
	if len(faults) > 0 {
		return fail(s, fmt.Sprintf("the plan has faults: %d", len(faults)), fmt.Sprintf(sayBadPlan, told(faults)))
	}
	s.Scratch.Steps, s.Output.Diff = made.steps, made.diff
	if len(missing(intent, s.Scratch)) == 0 {
		fill(s, intent)
	}
	s.Because(fmt.Sprintf("%d steps", len(made.steps)))
	if len(made.steps) == 0 {
		return nodeConfirm, nil
	}
	return nodeConfirm, show(ctx, s)
}

// offered are the tools that the plan may use.
func (p *planner) offered(s *state, intent Intent) []llm.Tool {
	set, policy := p.cfg.tools(s), p.cfg.policy(s)
	var may []llm.Tool
	for _, t := range set.Tools() {
		spec, ok := set.Spec(t.Name)
		if !ok || t.Name == tools.FindTools || policy.forbids(spec, false) != "" || len(intent.Tools) > 0 && !matches(intent.Tools, t.Name) {
			continue
		}
		may = append(may, t)
	}
	return may
}

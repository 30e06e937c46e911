package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/texts"
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
		return fail(s, "the intent is gone", texts.Of(ctx).Say(texts.PlanIntentGone, quoted(s.Scratch.Intent)))
	}
	made, faults, err := p.draft(ctx, s, intent)
	if err != nil {
		return "", err
	}
	if len(faults) > 0 {
		return fail(s, fmt.Sprintf("the plan has faults: %d", len(faults)), texts.Of(ctx).Say(texts.PlanUnusable, told(faults)))
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

// maxLooks is how often the model may ask to see groups of tools before it plans.
const maxLooks = 3

// draft asks the model for the plan. It sees the tools that a conversation does, and may ask
// for further groups instead of answering; a plan may also have permitted tools that it did
// not see.
func (p *planner) draft(ctx context.Context, s *state, intent Intent) (made draft, faults []string, err error) {
	set := p.cfg.tools(s)
	added := set.Added(s.Turn.History)
	for look := 0; ; look++ {
		o := p.offered(s, set, intent, added)
		var wanted []string
		j := job{
			id: llm.PlanRequest, system: plannerSystem, task: plannerTask(s, intent, o, set, p.cfg.zone(s)),
			hint: func() string { return o.unseen(made.steps) },
		}
		faults, err = p.model.repaired(ctx, s, j, func(text string) (faults []string) {
			if wanted = o.wanted(text); len(wanted) > 0 && look < maxLooks {
				return nil
			}
			if made, faults = parsePlan(text); len(made.steps) == 0 {
				return faults
			}
			return append(faults, p.check.faults(s, made.steps)...)
		})
		if err != nil || len(wanted) == 0 || look == maxLooks {
			return made, faults, err
		}
		p.cfg.log(s).Debug("groups of tools shown", "node", s.Node, "groups", wanted)
		added = append(added, wanted...)
	}
}

// An offer is what a plan may use.
type offer struct {
	shown  []llm.Tool
	hidden []llm.Tool // permitted as well, but the model does not see them
	groups []string   // of hidden tools, in order
}

// offered are the tools that the plan may use. If the intent names some, the model sees all
// of them, otherwise those that a conversation with these groups declares.
func (p *planner) offered(s *state, set *tools.Set, intent Intent, added []string) (o offer) {
	policy := p.cfg.policy(s)
	shown := set.Shown(added)
	for _, t := range set.Tools() {
		spec, ok := set.Spec(t.Name)
		if !ok || t.Name == tools.FindTools || policy.forbids(spec, false) != "" || len(intent.Tools) > 0 && !matches(intent.Tools, t.Name) {
			continue
		}
		i := slices.IndexFunc(shown, func(x llm.Tool) bool { return x.Name == t.Name })
		group := set.GroupOf(t.Name)
		if (i < 0 || len(shown[i].Parameters) != len(t.Parameters)) && !slices.Contains(o.groups, group) && len(intent.Tools) == 0 {
			o.groups = append(o.groups, group)
		}
		switch {
		case len(intent.Tools) > 0:
			o.shown = append(o.shown, t)
		case i < 0:
			o.hidden = append(o.hidden, t)
		default:
			o.shown = append(o.shown, shown[i])
		}
	}
	slices.Sort(o.groups)
	return o
}

// wanted are the groups that the model asks for instead of a plan.
func (o offer) wanted(text string) (groups []string) {
	m, err := object(text, "groups")
	if _, plan := m["steps"]; err != nil || plan {
		return nil
	}
	for _, name := range strs(m["groups"]) {
		if slices.Contains(o.groups, name) && !slices.Contains(groups, name) {
			groups = append(groups, name)
		}
	}
	return groups
}

// unseen describes the tools of steps that the model did not see, so that it can correct
// their arguments.
func (o offer) unseen(steps []Step) string {
	var b strings.Builder
	for _, t := range o.hidden {
		if slices.ContainsFunc(steps, func(st Step) bool { return st.Tool == t.Name }) {
			fmt.Fprintf(&b, "\nThe arguments of %s: %s", t.Name, schemaOf(t))
		}
	}
	return b.String()
}

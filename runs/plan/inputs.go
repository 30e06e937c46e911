package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/texts"
)

// Inputs ask for what a plan needs to know, and put it into the arguments of its steps.
type inputs struct {
	intent func(*state) (Intent, bool)
	check  *checker
}

// settle asks for what is required and unknown.
func (n *inputs) settle(ctx context.Context, s *state, p Policy) (string, error) {
	for {
		intent, ok := n.intent(s)
		if !ok {
			return fail(s, "the intent is gone", texts.Of(ctx).Say(texts.PlanIntentGone, quoted(s.Scratch.Intent)))
		}
		open := missing(intent, s.Scratch)
		if len(open) == 0 || s.Scratch.Filled {
			return "", nil
		}
		var qs []claybot.Question
		for _, q := range intent.Inputs {
			if slices.Contains(open, q.Key) {
				q.Required = true
				qs = append(qs, q)
			}
		}
		if next, err := question(ctx, s, p, askInputs, qs, n.hear); err != nil || next != "" {
			return next, err
		}
	}
}

func (n *inputs) hear(ctx context.Context, s *state, _ Policy, r heard) (string, error) {
	if r.unreachable {
		return fail(s, "no person can be asked", texts.Of(ctx).Say(texts.PlanUnreachable, keysOf(r.questions)))
	}
	said := maps.Clone(s.Scratch.Answers)
	if said == nil {
		said = make(map[string]json.RawMessage)
	}
	for i, q := range r.questions {
		v := r.answers[i].Value
		if absent(v) {
			return fail(s, "a question has no answer", texts.Of(ctx).Say(texts.PlanUnanswered, quoted(q.Text)))
		}
		setNested(said, q.Key, v)
	}
	s.Scratch.Answers = said
	return "", nil
}

func keysOf(qs []claybot.Question) string {
	var all []string
	for _, q := range qs {
		all = append(all, q.Key)
	}
	return strings.Join(all, ", ")
}

// fill puts the inputs into the arguments, and checks the steps once more: the
// inputs are new, and tools and policy may have changed since the plan was made.
func (n *inputs) fill(ctx context.Context, s *state, _ Policy) (string, error) {
	if intent, ok := n.intent(s); ok && fill(s, intent) { // the plan is another one to those who watch
		if err := show(ctx, s); err != nil {
			return "", err
		}
	}
	if faults := n.check.faults(s, s.Scratch.Steps); len(faults) > 0 {
		return fail(s, fmt.Sprintf("the plan has faults: %d", len(faults)), texts.Of(ctx).Say(texts.PlanUnusable, told(faults)))
	}
	return "", nil
}

// fill puts the inputs into the arguments of the steps, once: what was inserted
// is never read as the name of an input. It reports whether an argument changed.
func fill(s *state, intent Intent) (changed bool) {
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

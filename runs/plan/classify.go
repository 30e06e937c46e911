package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/texts"
)

// classify finds out what the person wants, and which inputs were said.
func (p *planner) classify(ctx context.Context, s *state) (string, error) {
	intents := p.cfg.intents(s.Turn.Agent)
	if len(intents) == 1 && intents[0].Name == genericIntent && len(intents[0].Inputs) == 0 {
		s.Scratch.Intent = genericIntent
		return nodePlanner, nil
	}
	var found sorted
	j := job{id: llm.ClassifyRequest, system: classifySystem, task: classifyTask(intents, p.cfg.zone(s))}
	faults, err := p.model.repaired(ctx, s, j, func(text string) []string {
		var err error
		if found, err = parseIntent(text); err != nil {
			return []string{err.Error()}
		}
		if !strings.EqualFold(found.intent, noIntent) && find(intents, found.intent) < 0 {
			return []string{fmt.Sprintf("%s is none of the intents: %s, or %s", quoted(found.intent), names(intents), noIntent)}
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	if len(faults) > 0 {
		return fail(s, "no intent was found", texts.Of(ctx).Say(texts.PlanNoIntent, told(faults)))
	}
	i := find(intents, found.intent)
	if i < 0 {
		s.Scratch.Intent, s.Scratch.Meta.Text = noIntent, found.text
		if strings.TrimSpace(found.text) == "" {
			s.Scratch.Meta.Text = texts.Of(ctx).Say(texts.PlanCatalogue, names(intents))
		}
		s.Because("no intent")
		return nodePlanner, nil
	}
	s.Scratch.Intent = intents[i].Name
	s.Scratch.Meta = p.meta(s, intents[i], found)
	s.Because(intents[i].Name)
	return nodePlanner, nil
}

// find is the place of an intent by its name, in capitals or not; -1 for none.
func find(intents []Intent, name string) int {
	return slices.IndexFunc(intents, func(in Intent) bool { return strings.EqualFold(in.Name, name) })
}

func names(intents []Intent) string {
	all := make([]string, len(intents))
	for i, in := range intents {
		all[i] = in.Name
	}
	return strings.Join(all, ", ")
}

// meta keeps of what was found what fits the inputs. A value that does not fit
// was not said.
func (p *planner) meta(s *state, intent Intent, found sorted) Meta {
	m := Meta{Targets: found.targets, Inputs: keys(intent), InputValues: make(map[string]json.RawMessage)}
	for _, q := range intent.Inputs {
		raw, ok := lookup(found.values, q.Key)
		if !ok || blank(raw) {
			continue
		}
		v, err := q.Check(said(raw), p.cfg.zone(s))
		if err != nil || blank(v) {
			p.cfg.log(s).Info("an input that the model found does not fit", "key", q.Key, "type", q.Type)
			continue
		}
		m.InputValues[q.Key] = v
	}
	m.MissingInputs = missing(intent, Scratch{Meta: m})
	return m
}

// said is a JSON value as a person would write it.
func said(raw json.RawMessage) string {
	if s, ok := word(raw); ok {
		return s
	}
	return string(raw)
}

func keys(intent Intent) []string {
	var all []string
	for _, q := range intent.Inputs {
		all = append(all, q.Key)
	}
	return all
}

// missing are the keys of required inputs without a value. What was answered is
// not asked again, whatever the answer.
func missing(intent Intent, sc Scratch) []string {
	values := sc.values()
	var open []string
	for _, q := range intent.Inputs {
		if _, answered := sc.Answers[q.Key]; !q.Required || answered {
			continue
		}
		if v, ok := lookup(values, q.Key); !ok || blank(v) {
			open = append(open, q.Key)
		}
	}
	return open
}

package agentsystem

import (
	"context"
	"errors"
	"slices"

	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/storage"
)

// operates reports whether a person, "connector/userId", is an operator: on the page
// and the command line, or by the settings.
func (s *AgentSystem) operates(owner string) bool {
	return slices.ContainsFunc(s.operators(), func(o string) bool { return slices.Contains(s.people(o), owner) })
}

// operators are all persons of operates.
func (s *AgentSystem) operators() []string {
	all := slices.Clone(seatsOfOperators)
	if s.Operators != nil {
		all = append(all, s.Operators()...)
	}
	return all
}

// NotifyOperators says a sentence to each operator who has a conversation, once for each
// key.
func (s *AgentSystem) NotifyOperators(ctx context.Context, key, text string) error {
	var errs []error
	for _, owner := range s.operators() {
		if err := s.Notify(ctx, owner, key+"/"+owner, text); !errors.Is(err, storage.ErrNotFound) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// refusal is why nothing may be spent under a budget whose limit is not known. Only
// operators read what is wrong with it.
func (s *AgentSystem) refusal(who payer, fault string) error {
	text := "A budget is not configured correctly, so nothing may be spent; the operator can see why with `claybot status`."
	if s.operates(who.root.OwnerID()) {
		text += "\n\n" + fault
	}
	return &llm.LimitError{Name: "a budget", Text: text}
}

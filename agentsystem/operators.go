package agentsystem

import (
	"context"
	"errors"
	"slices"

	"github.com/claybot/claybot/storage"
)

// operatorConsoles are the chats that only an operator can open, as "connector/userId".
var operatorConsoles = []string{"web/" + operatorName, "terminal/" + operatorName}

// operates reports whether a person, "connector/userId", is an operator: on the page
// and the command line, or by the settings.
func (s *AgentSystem) operates(owner string) bool {
	return slices.ContainsFunc(s.operators(), func(o string) bool { return slices.Contains(s.people(o), owner) })
}

// operators are all persons of operates.
func (s *AgentSystem) operators() []string {
	all := slices.Clone(operatorConsoles)
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

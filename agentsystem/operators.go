package agentsystem

import (
	"slices"

	"github.com/claybot/claybot/llm"
)

// operates reports whether a person, "connector/userId", is an operator: on the page
// and the command line, or by the settings.
func (s *System) operates(owner string) bool {
	all := slices.Clone(seatsOfOperators)
	if s.Operators != nil {
		all = append(all, s.Operators()...)
	}
	return slices.ContainsFunc(all, func(o string) bool { return slices.Contains(s.people(o), owner) })
}

// refusal is why nothing may be spent under a budget whose limit is not known. Only
// operators read what is wrong with it.
func (s *System) refusal(who payer, fault string) error {
	text := "A budget is not configured correctly, so nothing may be spent; the operator can see why with `claybot status`."
	if s.operates(who.root.OwnerID()) {
		text += "\n\n" + fault
	}
	return &llm.LimitError{Name: "a budget", Text: text}
}

package agentsystem

import (
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/runs"
)

// operates reports whether a person, "connector/userId", is an operator: on the page
// and the command line, or by the settings.
func (s *System) operates(owner string) bool {
	if slices.Contains(seatsOfOperators, owner) {
		return true
	}
	return s.Operators != nil && slices.ContainsFunc(s.Operators(), func(o string) bool { return slices.Contains(s.people(o), owner) })
}

// cause is what follows the sentence about a failed run where a bad setting is to
// blame and an operator reads it alone: which one, and what to do.
func (p *pass) cause(e *runs.Error) string {
	group := slices.ContainsFunc(p.messages, func(m claybot.Message) bool { return m.Context.Group })
	if e.Code != runs.CodeOff || group || !p.operates(p.agent.Descriptor.OwnerID()) {
		return ""
	}
	return "\n\n" + e.Text
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

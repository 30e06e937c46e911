package texts

import (
	"fmt"

	"github.com/claybot/claybot"
)

// What can be disclosed.
const (
	OfConversation = "what an agent knows from a conversation"
	OfNotes        = "notes"
)

// DisclosesUnknown says that it cannot be found out what a call discloses.
const DisclosesUnknown = "it cannot be found out now who will be able to read what"

// Discloses says who will be able to read what only others can read now.
func Discloses(what string, source, sink claybot.Audience) string {
	return fmt.Sprintf("%s will be able to read %s that only %s can read now", Readers(sink), what, Readers(source))
}

// Readers names an audience.
func Readers(a claybot.Audience) string {
	switch {
	case a == claybot.Everybody:
		return "everybody who talks to this bot"
	case a.Place != "":
		return "everybody in " + a.Place
	case a.Owner != "":
		return a.Owner
	}
	return "the operators"
}

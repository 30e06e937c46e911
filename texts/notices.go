package texts

import (
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

const (
	// StoppedByDeletion is said where the deletion of a message has stopped its run.
	StoppedByDeletion = "Stopped, because the message was deleted."

	// NotShown says that a question was too long for the platform.
	NotShown = "I couldn't show a question here in full. Answer it on the page, or with: claybot questions"

	textUndelivered = "I couldn't deliver a reply here. /why shows what happened to your last message."
	textMaybeLost   = "One of my last replies may be missing: the connection broke while I was sending it."
)

// Edited tells an agent that a message which it has read was changed.
func Edited(text string) string {
	return "The user has edited an earlier message of theirs. It now reads:\n" + text
}

// NotDelivered is the notice about a message that was given up.
func NotDelivered(o claybot.Outgoing) string {
	if o.File == nil {
		return textUndelivered
	}
	return fmt.Sprintf("I couldn't deliver the file “%s” here. /why shows what happened to your last message.", connectors.OneLine(o.File.Name, 80))
}

// MaybeMissing is the notice about a message that may not have arrived.
func MaybeMissing(o claybot.Outgoing) string {
	if o.File == nil {
		return textMaybeLost
	}
	return fmt.Sprintf("The file “%s” may be missing: the connection broke while I was sending it.", connectors.OneLine(o.File.Name, 80))
}

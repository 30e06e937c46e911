package texts

import (
	"fmt"
	"strings"
	"time"

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
	textMaybeAgain  = "One of my last replies may be missing: the connection broke while I was sending it. /resend sends it again."
)

// NotDelivered is the notice about a message that was given up.
func (v Voice) NotDelivered(o claybot.Outgoing) string {
	if o.File == nil {
		return v.In(textUndelivered)
	}
	return v.Say("I couldn't deliver the file “%s” here. /why shows what happened to your last message.", connectors.Literal(o.File.Name, 80))
}

// Rerouted is a reply as it goes out on another route of its reader, because its own route
// refuses it: below a line that says where it belongs.
func (v Voice) Rerouted(o claybot.Outgoing) string {
	platform, part := connectors.Capital(o.Route.Connector), ""
	if o.Parts > 1 {
		part = fmt.Sprintf("(%d/%d) ", o.Part, o.Parts)
	}
	switch {
	case o.Question != nil && o.Route.Group:
		return v.Say("I asked you something in a group on %s, where I can't write at present. Answer it on the page, or with: claybot questions", platform)
	case o.Question != nil:
		return v.Say("I asked you something in our conversation on %s, where I can't write at present. Answer it on the page, or with: claybot questions", platform)
	case o.File != nil && o.Route.Group:
		return v.Say("The file “%s” belongs to a group on %s, where I can't write at present.", connectors.Literal(o.File.Name, 80), platform) + below(o.Text)
	case o.File != nil:
		return v.Say("The file “%s” belongs to our conversation on %s, where I can't write at present.", connectors.Literal(o.File.Name, 80), platform) + below(o.Text)
	case o.Route.Group:
		return part + v.Say("This belongs to a group on %s, where I can't write at present:", platform) + below(o.Text)
	}
	return part + v.Say("This belongs to our conversation on %s, where I can't write at present:", platform) + below(o.Text)
}

// below is a text as a paragraph of its own.
func below(text string) string {
	if text = strings.TrimSpace(text); text == "" {
		return ""
	}
	return "\n\n" + text
}

// MaybeMissing is the notice about a message that may not have arrived; again says that
// /resend sends it once more.
func (v Voice) MaybeMissing(o claybot.Outgoing, again bool) string {
	switch {
	case o.File == nil && again:
		return v.In(textMaybeAgain)
	case o.File == nil:
		return v.In(textMaybeLost)
	case again:
		return v.Say("The file “%s” may be missing: the connection broke while I was sending it. /resend sends it again.", connectors.Literal(o.File.Name, 80))
	}
	return v.Say("The file “%s” may be missing: the connection broke while I was sending it.", connectors.Literal(o.File.Name, 80))
}

// DatabaseState says what a restored database is; made is when the copy was made, zero if that is
// unknown.
func (v Voice) DatabaseState(made time.Time) string {
	if made.IsZero() {
		return v.Say("lost")
	}
	return v.Say("damaged or replaced and is back at its state of %s", v.Moment(claybot.At(made)))
}

// Restored tells a person that the database was lost or is an older one.
func (v Voice) Restored(made time.Time) string {
	return v.Say("My database was %s. I remember our conversation, but messages that had no reply, and reminders that were due, may be lost. Please send them again.", v.DatabaseState(made))
}

// RestoredOperators is Restored for operators.
func (v Voice) RestoredOperators(made time.Time) string {
	return v.Say("The database of claybot was %s. Unfinished work has ended with the reason `restored`, as have reminders and scheduled runs that were due by then. The log says why; `claybot outbox` lists messages that you can retry.", v.DatabaseState(made))
}

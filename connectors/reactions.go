package connectors

import (
	"context"

	"github.com/claybot/claybot"
)

// A ReactionHandler takes emoji reactions of people as input. Handlers implement it; a
// connector whose platform reports reactions asks for it by type assertion.
type ReactionHandler interface {
	// Reacted returns nil once what follows from a reaction is durable, or nothing does: it
	// means nothing, the person has no access, the message is not known. A reaction may be
	// reported twice, late and in any order. An error is as of Handler.Post. took reports
	// whether it is stored as feedback, or stops what had not ended.
	Reacted(ctx context.Context, r Reaction) (took bool, err error)
}

// A Reaction says that a person added an emoji reaction to a message, or removed it. A
// connector reports those of persons alone, and never its own.
type Reaction struct {
	Connector string
	ChannelID string
	UserID    string // of the person
	Outsider  bool   // as in claybot.Sender
	Group     bool   // others read the channel, too
	Message   string // the platform id of the message
	// Of is the id of the message, or one of its keys, if it was received; empty if the
	// connector knows that the person did not write it.
	Of claybot.MessageID
	// Emoji are the names of the emoji: the emoji itself where the connector knows it, and
	// that of the platform, without colons. All tones of skin are one emoji.
	Emoji   []string
	Removed bool
	// Stop says that the person stopped the message by a control that the platform has for that.
	// It has no emoji, and means a stop whatever the emoji of the profile mean.
	Stop bool
	// Thread is the thread whose run a Stop is for, where the control belongs to a thread and no message:
	// Message is its first one then.
	Thread string
	At     claybot.Time // by the platform's clock
}

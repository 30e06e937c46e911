package storage

import (
	"context"
	"time"

	"github.com/claybot/claybot"
)

// A Chatter stores what was said in groups of platforms that show bots no earlier messages.
// Only messages of groups for which an operator asked for it get here.
type Chatter interface {
	// KeepSaid stores messages, in one transaction, and removes the oldest of each thread
	// beyond the newest most. A message that is known stays as it is, unless the new one is an
	// edit; an edit of an unknown message does nothing. So a repeat changes nothing.
	KeepSaid(ctx context.Context, most int, said ...SaidIn) error
	// SaidIn returns what is kept of a thread of a chat, by time and by number.
	SaidIn(ctx context.Context, chat Chat, thread string) ([]claybot.Said, error)
	// SaidChats lists the chats of which something is kept.
	SaidChats(ctx context.Context) ([]Chat, error)
	// ForgetSaid removes what was said in a chat up to a time; 0: all of it.
	ForgetSaid(ctx context.Context, chat Chat, upto claybot.Time) error
	// MoveSaid moves what is kept of a chat to its new id.
	MoveSaid(ctx context.Context, connector, from, to string) error
}

// KeepSaid is how long what was said in a group is kept; Prune removes what is older.
const KeepSaid = 7 * 24 * time.Hour

// A Chat is a group of a connector.
type Chat struct{ Connector, Channel string }

// A SaidIn is a message of a thread of a chat; an empty thread is the chat itself.
type SaidIn struct {
	Chat
	Thread string
	claybot.Said
	Edit bool // it replaces an earlier text of the message
}

// CheckpointSaid is the prefix of the keys under which a Chatter stores messages, as
// checkpoints: said/connector/channel/thread/time/id. Their values start with the time, as unix
// milliseconds in 13 digits.
const CheckpointSaid = "said/"

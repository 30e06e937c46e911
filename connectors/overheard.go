package connectors

import (
	"context"

	"github.com/claybot/claybot"
)

// A Listener keeps what is said in groups, for platforms that show bots no earlier messages.
// Handlers implement it; a connector that is no Historian asks for it by type assertion, and
// reports every message of a group, those that it posts as well.
type Listener interface {
	// Overheard returns nil once messages are durable, or not to be kept: the group has no
	// access, or no profile asks for its context. Messages may be reported twice. After an
	// error, report them again. What is reported before a message is posted comes with it.
	Overheard(ctx context.Context, all []Overheard) error
}

// An Overheard is a message of a group.
type Overheard struct {
	In     claybot.Descriptor // of its sender in the group
	Thread string
	Said   claybot.Said
	Edit   bool // the text replaces that of a message which was reported before
}

package connectors

import (
	"context"

	"github.com/claybot/claybot"
)

// A RouteHandler learns what a platform says of the bot's membership. Handlers implement it;
// a connector whose platform reports such changes asks for it by type assertion.
type RouteHandler interface {
	// RouteChanged returns nil once a change is stored, or has no effect. Changes of a channel
	// may come twice and in any order: the newest counts, and a message that a person wrote
	// there later counts more than any. No change takes effect in a channel in which no
	// person with access ever wrote, except that claybot forgets what it overheard before the bot
	// was removed. After an error nothing was stored: report it again.
	RouteChanged(ctx context.Context, c RouteChange) error
}

// A RouteChange says that a channel cannot be reached any more, or can be again: the bot was
// blocked, removed or added, or the channel was archived or deleted. A connector reports only
// what its platform says of the bot itself and of the channel, never what a person says.
type RouteChange struct {
	Connector, ChannelID string
	// Dead says why the channel cannot be reached; empty: it can.
	Dead string
	// Removed says that the bot is no longer in the channel.
	Removed bool
	At      claybot.Time // by the platform's clock
}

// A MoveFollower is a Sender that itself sends to the new id of a chat, because more than the
// id changes: the chat numbers its messages anew. Its messages keep the id that they were stored
// with.
type MoveFollower interface {
	FollowsMoves()
}

package delivery

import (
	"context"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// A chat with a new id keeps the messages that were stored for its former ids. Each stays in
// the lane of the id that it was stored with, so that its claim stays the same, and goes to the
// id that the chat has when it is sent. The lane of the new id waits for those before it.

// formerPause is how often a lane looks whether the messages before its own, which were stored
// with a former id of the chat, are sent.
const formerPause = 200 * time.Millisecond

// Addresses know the connectors, and which ids their chats have and had.
type addresses struct {
	connector func(name string) connectors.Connector // nil where none is configured
	moves     Moves                                  // nil: each chat has the id of its route
}

// follow returns a route as its connector is to send on it: with the id that the chat has now.
// A connectors.MoveFollower gets the id that the message was stored with.
func (a addresses) follow(r claybot.Route) claybot.Route {
	if a.moves == nil {
		return r
	}
	if _, itself := a.connector(r.Connector).(connectors.MoveFollower); !itself {
		r.ChannelID = a.moves.Current(r.Connector, r.ChannelID)
	}
	return r
}

// ids returns a route with each id that its chat has or had, the present one first.
func (a addresses) ids(r claybot.Route) []claybot.Route {
	if a.moves == nil {
		return []claybot.Route{r}
	}
	r.ChannelID = a.moves.Current(r.Connector, r.ChannelID)
	all := []claybot.Route{r}
	for _, r.ChannelID = range a.moves.Former(r.Connector, r.ChannelID) {
		all = append(all, r)
	}
	return all
}

// isAfterFormer reports whether messages that were stored before x, with a former id of its
// chat, are still to be sent. If that cannot be read, x goes: only the order is at stake.
func (x *delivery) isAfterFormer(ctx context.Context) bool {
	for _, id := range x.addresses.ids(x.o.Route) {
		dest := id.Dest()
		if dest == x.lane.dest {
			continue
		}
		first, err := x.cfg.Reader.Unsent(ctx, dest, 0, 1)
		if err == nil && len(first) > 0 && first[0].N < x.o.N {
			return true
		}
	}
	return false
}

// isMoved reports whether the chat of x got a new id since the attempt began, as this member or
// another one stored.
func (x *delivery) isMoved(ctx context.Context) bool {
	if x.cfg.Moves == nil {
		return false
	}
	if err := x.cfg.Moves.Load(ctx); err != nil {
		about(x.cfg.Log, x.o).Warn("failed to read whether a chat has a new id", "err", err)
	}
	return x.addresses.follow(x.o.Route) != x.o.Route
}

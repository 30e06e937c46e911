package people

import (
	"context"
	"fmt"
	"iter"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// Elsewhere returns another route of the reader of an outgoing message: where that person
// wrote last in a conversation which they alone read, may still write in, and which is
// likely to be reached. The reader is the person of the message's route, or the owner of
// the agent that wrote it. A workflow sends to the chats that its file names: only where such a chat is one
// which the owner alone reads is the owner its reader. ok is false if there is no such route, or it cannot be found.
func (dir *Directory) Elsewhere(ctx context.Context, o claybot.Outgoing) (to claybot.Route, ok bool) {
	owner := ""
	if o.Route.UserID != "" {
		owner = claybot.User(o.Route.Connector, o.Route.ChannelID, o.Route.UserID).OwnerID()
	} else if o.Agent != "" {
		a, err := dir.cfg.Agents.Agent(ctx, o.Agent)
		if err != nil {
			dir.cfg.Log.Warn("failed to find the reader of a message", "outgoing", o.ID, "agent", o.Agent, "err", err)
			return to, false
		}
		owner = a.Descriptor.OwnerID()
		if a.Descriptor.Type == claybot.AgentFlow {
			alone, err := dir.readsAlone(ctx, owner, o.Route.Dest())
			if err != nil {
				dir.cfg.Log.Warn("failed to find the reader of a message", "outgoing", o.ID, "agent", o.Agent, "err", err)
			}
			if !alone {
				return to, false
			}
		}
	}
	if owner == "" {
		return to, false
	}
	_, to, err := dir.private(ctx, owner, o.Route.Dest())
	if err != nil {
		dir.cfg.Log.Warn("failed to find another route of a reader", "outgoing", o.ID, "err", err)
	}
	return to, err == nil && to.Connector != ""
}

// readsAlone reports whether a destination is a conversation of a person which they alone read.
func (dir *Directory) readsAlone(ctx context.Context, owner, dest string) (bool, error) {
	for e, err := range dir.cfg.Index.Foreground(ctx, dir.Identities(owner)) {
		if err != nil {
			return false, fmt.Errorf("find the conversations of %s: %w", owner, err)
		}
		if e.Descriptor.Route().Dest() == dest && dir.AudienceOf(e.Descriptor, claybot.Route{}).Place == "" {
			return true, nil
		}
	}
	return false, nil
}

// private returns the conversation to which a person wrote last, among those that they
// alone read and that can be reached, and the route there. Both are empty if there is
// none. except is a destination that is left out.
func (dir *Directory) private(ctx context.Context, owner, except string) (e storage.IndexEntry, to claybot.Route, err error) {
	return dir.firstPrivate(ctx, dir.cfg.Index.Foreground(ctx, dir.Identities(owner)), owner, except)
}

// firstPrivate is private among some conversations of a person.
func (dir *Directory) firstPrivate(ctx context.Context, of iter.Seq2[storage.IndexEntry, error], owner, except string) (e storage.IndexEntry, to claybot.Route, err error) {
	for e, err := range of {
		if err != nil {
			return e, to, fmt.Errorf("find the conversations of %s: %w", owner, err)
		}
		d := e.Descriptor
		if dir.Program(d) || dir.AudienceOf(d, claybot.Route{}).Place != "" || d.Route().Dest() == except || !dir.Allowed(d, false) || !dir.cfg.Reachable(d.Route()) {
			continue
		}
		c, err := dir.LastContext(ctx, e.ID)
		if err != nil {
			return e, to, err
		}
		if c.Group {
			continue
		}
		return e, claybot.AgentMessage{Context: c}.ReplyRoute(d), nil
	}
	return storage.IndexEntry{}, to, nil
}

package people

import (
	"context"
	"errors"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// NotifyAt sends a notice to where the person of a foreground agent wrote last.
func (dir *Directory) NotifyAt(ctx context.Context, e storage.IndexEntry, key string, say func(texts.Voice) string) error {
	c, err := dir.LastContext(ctx, e.ID)
	if err != nil {
		return err
	}
	return dir.notifyOn(ctx, e, claybot.AgentMessage{Context: c}.ReplyRoute(e.Descriptor), key, say)
}

// notifyOn sends a notice on a route, once for each key.
func (dir *Directory) notifyOn(ctx context.Context, e storage.IndexEntry, route claybot.Route, key string, say func(texts.Voice) string) error {
	if err := dir.cfg.Sender.SendOnce(ctx, claybot.Outgoing{Kind: claybot.OutgoingNotice, Agent: e.ID, Route: route}, key, say(dir.VoiceAt(ctx, e.Descriptor, route))); err != nil {
		return fmt.Errorf("tell: %w", err)
	}
	return nil
}

// Notify sends a notice to the most recent foreground agent of an owner, or of all owners
// when owner is empty, once for each key. It prefers a conversation that the owner alone
// reads and that can be reached. It returns storage.ErrNotFound when there is no
// such agent. It serves connectors without a route of their own.
func (dir *Directory) Notify(ctx context.Context, owner, key string, say func(texts.Voice) string) error {
	if owner != "" {
		e, to, err := dir.private(ctx, owner, "")
		if err != nil {
			return err
		}
		if to.Connector != "" {
			return dir.notifyOn(ctx, e, to, key, say)
		}
	}
	e, err := dir.Recent(ctx, claybot.Descriptor{Owner: owner}, "")
	if err != nil {
		return err
	}
	return dir.NotifyAt(ctx, e, key, say)
}

// TellOwner sends a notice to the most recent foreground agent of an agent's owner, once
// for each key.
func (dir *Directory) TellOwner(ctx context.Context, a claybot.Agent, key string, say func(texts.Voice) string) {
	err := dir.Notify(ctx, a.Descriptor.OwnerID(), key, say)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		dir.cfg.Log.Warn("no recipient for a notice", "agent", a.ID, "what", say(texts.Voice{}))
	case err != nil:
		dir.cfg.Log.Error("failed to notify the owner of an agent", "agent", a.ID, "err", err)
	}
}

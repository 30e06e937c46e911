package people

import (
	"context"
	"errors"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// NotifyAt says a sentence where the person of a foreground agent wrote last.
func (dir *Directory) NotifyAt(ctx context.Context, e storage.IndexEntry, key, text string) error {
	c, err := dir.LastContext(ctx, e.ID)
	if err != nil {
		return err
	}
	route := claybot.AgentMessage{Context: c}.ReplyRoute(e.Descriptor)
	if err := dir.cfg.Sender.SendOnce(ctx, claybot.Outgoing{Kind: claybot.OutgoingNotice, Agent: e.ID, Route: route}, key, text); err != nil {
		return fmt.Errorf("tell: %w", err)
	}
	return nil
}

// Notify says a sentence at the place of the most recent foreground agent of an
// owner, or of everybody when owner is empty, once for each key;
// storage.ErrNotFound when there is none. It is for connectors without a place
// of their own.
func (dir *Directory) Notify(ctx context.Context, owner, key, text string) error {
	e, err := dir.Recent(ctx, claybot.Descriptor{Owner: owner}, "")
	if err != nil {
		return err
	}
	return dir.NotifyAt(ctx, e, key, text)
}

// TellOwner says a sentence at the place of the most recent foreground agent of
// an agent's owner, once for each key.
func (dir *Directory) TellOwner(ctx context.Context, a claybot.Agent, key, text string) {
	err := dir.Notify(ctx, a.Descriptor.OwnerID(), key, text)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		dir.cfg.Log.Warn("nobody is there to be told", "agent", a.ID, "what", text)
	case err != nil:
		dir.cfg.Log.Error("cannot tell the owner of an agent", "agent", a.ID, "err", err)
	}
}

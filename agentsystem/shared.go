package agentsystem

import (
	"context"
	"errors"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/storage"
)

// revokeShared drops the messages that wait for the shared agents of a connector, and cancels
// the runs, whose senders have no access any more. The messages of other members stay.
func (a *Admin) revokeShared(ctx context.Context, connector string) error {
	for e, err := range a.index.Foreground(ctx, nil) {
		if err == nil && e.Descriptor.Connector == connector && e.Descriptor.Shared() {
			err = a.dropBarred(ctx, e)
		}
		if err != nil {
			return fmt.Errorf("revoke access to shared agents: %w", err)
		}
	}
	return nil
}

func (a *Admin) dropBarred(ctx context.Context, e storage.IndexEntry) error {
	barred := func(m claybot.AgentMessage) bool {
		return m.Type != claybot.MessageSystem && m.From.UserID != "" && !a.people.Admits(e.Descriptor, m)
	}
	waiting, err := a.parking.receipts.Waiting(ctx, e.ID, inbox.MaxWaiting)
	if err != nil {
		return err
	}
	var ids []claybot.MessageID
	for _, m := range waiting {
		if barred(m) {
			ids = append(ids, m.ID)
		}
	}
	if len(ids) > 0 {
		if _, err := a.dropWaiting(ctx, e.ID, inbox.ErrDropped, inbox.SkippedRevoked, ids...); err != nil {
			return err
		}
	}
	if e, err = a.index.IndexedAgentByID(ctx, e.ID); err != nil || e.Run == "" { // what waited may run by now
		return storage.Ignore(err, storage.ErrNotFound)
	}
	run, err := a.runs.Run(ctx, e.Run)
	if err != nil {
		return err
	}
	for _, id := range run.Messages {
		r, err := a.parking.receipts.Receipt(ctx, id)
		if errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrDamaged) {
			continue
		}
		if err == nil && barred(r.Message) {
			_, err = a.CancelRun(ctx, run.ID, people.Operator)
			return err
		}
		if err != nil {
			return err
		}
	}
	return nil
}

package agentsystem

import (
	"context"
	"errors"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/subagents"
)

// revokeShared drops the messages that wait for the shared agents of a connector, and cancels
// the runs, whose senders have no access any more. The messages of other members stay.
func (a *Admin) revokeShared(ctx context.Context, connector string) error {
	for e, err := range a.index.Foreground(ctx, nil) {
		if err == nil && e.Descriptor.Connector == connector && e.Descriptor.Shared() {
			err = a.dropBarredBelow(ctx, e)
		}
		if err != nil {
			return fmt.Errorf("revoke access to shared agents: %w", err)
		}
	}
	return nil
}

// dropBarredBelow does so for a shared agent and its subagents: what belongs to a chain that
// began with a run of such a sender.
func (a *Admin) dropBarredBelow(ctx context.Context, shared storage.IndexEntry) error {
	sent := func(m claybot.AgentMessage) (bool, error) {
		return (m.Type != claybot.MessageSystem || m.Undo != nil) && m.From.UserID != "" && !a.people.Admits(shared.Descriptor, m), nil
	}
	roots := make(map[claybot.RunID]bool)
	barred := func(m claybot.AgentMessage) (bool, error) {
		if m.Root == "" {
			return sent(m)
		}
		is, known := roots[m.Root]
		if known {
			return is, nil
		}
		run, err := a.runs.Run(ctx, m.Root)
		if err == nil {
			is, err = a.began(ctx, run, sent)
		}
		roots[m.Root] = is
		return is, storage.Ignore(err, storage.ErrNotFound)
	}
	var below func(e storage.IndexEntry, by string) error
	below = func(e storage.IndexEntry, by string) error {
		if e.ID == shared.ID || e.Busy {
			if err := a.dropBarred(ctx, e, by, barred); err != nil {
				return err
			}
		}
		children, err := a.index.Children(ctx, e.ID)
		for _, c := range children {
			if err == nil {
				err = below(c, subagents.ByParent)
			}
		}
		return err
	}
	return below(shared, people.Operator)
}

// began reports whether one of the messages of a run is as asked for.
func (a *Admin) began(ctx context.Context, run claybot.Run, is func(claybot.AgentMessage) (bool, error)) (bool, error) {
	for _, id := range run.Messages {
		r, err := a.parking.receipts.Receipt(ctx, id)
		if errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrDamaged) {
			continue
		}
		if err != nil {
			return false, err
		}
		if yes, err := is(r.Message); yes || err != nil {
			return yes, err
		}
	}
	return false, nil
}

func (a *Admin) dropBarred(ctx context.Context, e storage.IndexEntry, by string, barred func(claybot.AgentMessage) (bool, error)) error {
	waiting, err := a.parking.receipts.Waiting(ctx, e.ID, inbox.MaxWaiting)
	if err != nil {
		return err
	}
	var ids []claybot.MessageID
	for _, m := range waiting {
		yes, err := barred(m)
		if err != nil {
			return err
		}
		if yes {
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
	yes, err := a.began(ctx, run, barred)
	if yes {
		_, err = a.CancelRun(ctx, run.ID, by)
	}
	return err
}

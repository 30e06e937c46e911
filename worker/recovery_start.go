package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/storage"
)

// Queue gives agents that were just acquired their tickets.
func (s *Worker) Queue(ctx context.Context, boxes []*inbox.AgentInbox) {
	for _, b := range boxes {
		if b.From != "" && interrupted(b) {
			s.Recovery.alarm(b.From)
		}
	}
	if !s.Recovery.isActive() {
		return
	}
	ts := make([]*ticket, len(boxes))
	for i, b := range boxes {
		charges, err := s.charges.interrupted(ctx, b)
		if err == nil && s.Recovery.crash.late && interrupted(b) {
			charges = charges.ended(s.stores.Boots.Last().Started)
			err = s.charges.keep(ctx, b.Lease.Agent, charges)
		}
		if err != nil { // its pass will meet the same
			s.log.Warn("failed to update the crash charges of a run", "agent", b.Lease.Agent, "err", err)
		}
		ts[i] = &ticket{box: b, charges: charges}
	}
	s.Recovery.queue(ts...)
}

// enter waits until the work on an agent may begin, or until it is canceled.
func (s *Worker) enter(b *inbox.AgentInbox) error {
	err := s.Recovery.wait(b, s.draining)
	var canceled *inbox.CanceledError
	if errors.As(err, &canceled) {
		return nil
	}
	return err
}

// BeginRecovery learns how the process before ended, charges the run that killed it if
// that is known, and begins the recovery.
func (s *Worker) BeginRecovery(ctx context.Context) error {
	if s.stores.Boots == nil {
		return nil
	}
	last := s.stores.Boots.Last()
	unclean := last.UncleanNext()
	if unclean == 0 {
		return nil
	}
	var suspects []claybot.AgentID
	for i, id := range last.Testing {
		e, err := s.stores.Index.IndexedAgentByID(ctx, id)
		if err := storage.Ignore(err, storage.ErrNotFound); err != nil {
			return fmt.Errorf("read the suspects of the last crash: %w", err)
		}
		if e.Run == "" {
			continue // it had ended
		}
		run, err := s.stores.Reader.Run(ctx, e.Run)
		if err := storage.Ignore(err, storage.ErrNotFound); err != nil {
			return fmt.Errorf("read the suspects of the last crash: %w", err)
		}
		if run.State != claybot.RunRunning {
			continue // it had paused
		}
		suspects = append(suspects, id)
		if last.Alone && i == 0 && !last.Forced {
			if err := s.charges.crashed(ctx, e, last); err != nil {
				return err
			}
		}
	}
	for _, id := range last.Parked {
		e, err := s.stores.Index.IndexedAgentByID(ctx, id)
		if err == nil && e.Run != "" && !last.Forced {
			err = s.charges.missed(ctx, e)
		}
		if err := storage.Ignore(err, storage.ErrNotFound); err != nil {
			return err
		}
	}
	counts, err := s.stores.Counts.Stats(ctx)
	if err != nil {
		return fmt.Errorf("count interrupted runs: %w", err)
	}
	s.Recovery.start(unclean, counts.Runs[claybot.RunRunning], last, suspects)
	return nil
}

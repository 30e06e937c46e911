package files

import (
	"context"
	"errors"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// Delete moves the directory of an agent to quarantine/<id>-<time> and then
// takes it out of the index. What a crash in between leaves undone, the next
// Open or Delete does. An open history of it fails with storage.ErrLeaseLost
// from then on.
func (s *Store) Delete(ctx context.Context, id claybot.AgentID) error {
	if err := id.Validate(); err != nil {
		return fmt.Errorf("delete agent: %w: %w", storage.ErrNotFound, err)
	}
	d, err := s.index.IndexedDescriptor(ctx, id)
	indexed := err == nil
	if err != nil && !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, storage.ErrDamaged) {
		return failed(fmt.Sprintf("delete agent %s", id), err)
	}
	if indexed {
		leave, err := s.keys.enter(ctx, d)
		if err != nil {
			return fmt.Errorf("delete agent %s: %w", id, err)
		}
		defer leave()
	}
	moved, err := s.setAside(ctx, id)
	if err != nil {
		return failed(fmt.Sprintf("delete agent %s", id), err)
	}
	s.own.set(id, claybot.Settings{})
	if err := errors.Join(s.index.UnindexAgent(ctx, id), s.endings.forget(ctx, id)); err != nil {
		return failed(fmt.Sprintf("delete agent %s", id), err)
	}
	if !moved && !indexed {
		return fmt.Errorf("delete agent %s: %w", id, storage.ErrNotFound)
	}
	return nil
}

// setAside moves the directory of an agent to the quarantine and forgets the
// agent; false when there is no directory.
func (s *Store) setAside(ctx context.Context, id claybot.AgentID) (moved bool, err error) {
	r, err := s.residents.pin(id)
	if err != nil {
		return false, err
	}
	defer s.residents.unpin(r)
	if err := r.gate.enter(ctx); err != nil {
		return false, err
	}
	defer r.gate.leave()
	moved, err = exists(s.fs, s.dir(id))
	if err != nil {
		return false, err
	}
	if moved {
		to := fmt.Sprintf("%s/%s-%d", s.quarantine.dir, id, claybot.Now())
		if err := s.fs.Rename(s.dir(id), to); err != nil {
			return false, err
		}
	}
	r.writer = nil
	s.settled(r) // a debt of its history is nobody's any more
	s.residents.retract(r)
	s.tails.forget(id)
	// The new name first: a crash may leave both names, and never none.
	return moved, errors.Join(s.fs.SyncDir(s.quarantine.dir), s.fs.SyncDir(s.root))
}

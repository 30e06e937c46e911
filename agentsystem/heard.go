package agentsystem

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/claybot/claybot/storage"
)

const (
	// lookVersions is how old what is kept in memory of settings and grants is at
	// most, where other nodes change them, too: with the query itself, less than
	// two seconds.
	lookVersions = 1500 * time.Millisecond
	// lookEnds is how often a waiter looks for an end that happened elsewhere and
	// that nobody told it of, and lookSoon how often when it is told of something.
	lookEnds = 2 * time.Second
	lookSoon = 200 * time.Millisecond
	// stirEvery is how often pages that show everything look without a hint.
	stirEvery = 2 * time.Second
)

// Heard is told what other nodes hint at: give it to the store, which is shared, as
// its hook. A hint without content says that some may have been lost. Nothing of it
// is believed but that a look is worth while, and to cancel what was to be canceled
// anyway. It neither blocks nor uses the store.
func (s *AgentSystem) Heard(h storage.Notification) {
	s.Members.Heard(h.Member)
	s.Hub.Heard(h)
	lost := h.IsEmpty()
	if h.Due || lost {
		s.boxes.Wake()
	}
	for _, c := range h.Cancel {
		if c.Run != "" { // by now the agent may be at work on the next one
			s.boxes.Cancel(c.Agent, c.Run, c.By)
		}
	}
	s.deliverer.Heard(h)
	if lost || slices.ContainsFunc(h.Freed, isNoDest) {
		s.freed.Raise()
	}
	if len(h.Runs) > 0 || h.Due || lost {
		s.elsewhere.Raise()
	}
}

// isNoDest reports whether a claim is not that of a destination.
func isNoDest(claim string) bool {
	_, dest := storage.ClaimedDest(claim)
	return !dest
}

// A memory says which version of what the store has is kept in memory. The zero
// value is ready.
type memory struct {
	turn sync.Mutex // held while it is brought up to date
	seen storage.Version
}

// heed keeps what is in memory up to date, until ctx is done.
func (s *AgentSystem) heed(ctx context.Context) {
	look, stir := time.NewTicker(lookVersions), time.NewTicker(stirEvery)
	defer look.Stop()
	defer stir.Stop()
	failing := false
	for {
		err := s.refresh(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			s.Log.Warn("cannot look for what other nodes have changed; trying again", "err", err)
		}
		failing = err != nil
		for waits := true; waits; {
			select {
			case <-ctx.Done():
				return
			case <-stir.C:
				s.Hub.Stir()
			case <-look.C:
				waits = false
			}
		}
	}
}

// refresh brings what is kept in memory up to date: it reads again what other
// nodes have changed. A process that has the store for itself knows already.
func (s *AgentSystem) refresh(ctx context.Context) error {
	if s.Shared == nil {
		return nil
	}
	s.memory.turn.Lock()
	defer s.memory.turn.Unlock()
	now, err := s.Shared.Versions(ctx)
	if err != nil {
		return err
	}
	if now.Access != s.memory.seen.Access {
		if err = s.People.Load(ctx); err == nil {
			s.memory.seen.Access = now.Access
		}
	}
	if now.Settings != s.memory.seen.Settings {
		fault := s.Profiles.Load(ctx)
		if fault == nil {
			s.memory.seen.Settings = now.Settings
		}
		err = errors.Join(err, fault)
	}
	return err
}

// Turn claims what one node may do at a time, for runs.Relay: the context is done
// when the right ends, and the function lets it go, but not the claim, which stays
// with this node until it leaves.
func (s *AgentSystem) Turn(ctx context.Context, claim string) (context.Context, func(), error) {
	hold, err := s.Members.Claim(ctx, claim)
	if err != nil {
		return nil, nil, err
	}
	mine, free := hold.Context(ctx)
	return mine, free, nil
}

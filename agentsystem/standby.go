package agentsystem

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/claybot/claybot/cluster"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/storage"
)

// claimEvery is how often a member that stands by asks for the claim of a connector.
const claimEvery = 2 * time.Second

// A standby knows for which connectors this member stands by, because another one runs them.
type standby struct {
	members *cluster.Membership
	freed   *inbox.Signal // another member has released a claim, or may have

	mu      sync.Mutex
	holders map[string]string // ids of the members that run the connectors, by their names
}

// Vacant implements overview.Standby.
func (s *standby) Vacant(name string) bool {
	s.mu.Lock()
	holder, standby := s.holders[name]
	s.mu.Unlock()
	return standby && s.members.Gone(holder)
}

// Elsewhere implements overview.Standby.
func (s *standby) Elsewhere(name string) bool {
	s.mu.Lock()
	holder := s.holders[name]
	s.mu.Unlock()
	return holder != "" && !s.members.Gone(holder)
}

// begin records that this member stands by for a connector. An empty holder means that
// the present one is unknown.
func (s *standby) begin(name, holder string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if holder != "" || s.holders[name] == "" {
		s.holders[name] = holder
	}
}

// over records that it does so no more.
func (s *standby) over(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.holders, name)
}

// watch follows which live member runs a connector that has stopped on this one, until ctx is done.
func (s *standby) watch(ctx context.Context, name, claim string) {
	holder, since := "", time.Time{}
	for connectors.Sleep(ctx, claimEvery) {
		id, err := "", error(nil)
		if s.members.Others() > 0 {
			id, err = s.members.Holder(ctx, claim)
		}
		switch {
		case err != nil || id == "" || s.members.Gone(id):
			holder = ""
			s.over(name)
		case id != holder:
			holder, since = id, time.Now()
			s.over(name)
		case time.Since(since) >= workedWell: // as long as only a connector that works does
			s.begin(name, id)
		}
	}
}

// claim waits for the claim of a connector; it returns nil when ctx is done.
func (s *standby) claim(ctx context.Context, name string, x connectors.Exclusive, log *slog.Logger) *cluster.Hold {
	last := ""
	for level := slog.LevelDebug; ctx.Err() == nil; level = slog.LevelInfo {
		freed, changed := s.freed.Next(), s.members.Changed()
		hold, err := s.members.Claim(ctx, x.Exclusive())
		if err == nil {
			log.Log(ctx, level, "connection claimed by this member")
			return hold
		}
		id, holder := "", ""
		if errors.Is(err, storage.ErrHeld) {
			if id, _ = s.members.Holder(ctx, x.Exclusive()); id != "" { // otherwise it is unknown
				holder = s.members.NameOf(id)
				s.members.Heard(id) // it may have joined since the last renewal
			}
			if holder != last {
				log.Info("connection held by another member; standing by", "holder", holder)
				last = holder
			}
		} else if ctx.Err() == nil {
			log.Warn("failed to claim a connection, retrying", "err", err)
		}
		x.Standby(holder)
		s.begin(name, id)
		timer := time.NewTimer(claimEvery)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-freed:
		case <-changed:
		}
		timer.Stop()
	}
	return nil
}

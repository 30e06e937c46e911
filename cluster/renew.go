package cluster

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// Run joins the cluster, renews the term, and joins again under a new id when a term is
// over, until ctx is done. Then it leaves, and returns nil. Run must end after everything
// that stands on claims.
func (m *Membership) Run(ctx context.Context) error {
	if m.alone != nil {
		<-ctx.Done()
		return nil
	}
	for ctx.Err() == nil {
		t := m.join(ctx)
		if t == nil {
			break
		}
		m.keep(ctx, t)
		cause := context.Cause(t.ctx)
		m.retire(t)
		if ctx.Err() == nil {
			m.mu.Lock()
			m.lost++
			m.mu.Unlock()
			m.cfg.Log.Warn("membership lost; joining again as a new member", "member", t.id, "err", cause)
		}
	}
	return nil
}

// join renews under new ids until one succeeds; nil when ctx is done before.
func (m *Membership) join(ctx context.Context) *Term {
	for {
		id := m.cfg.NewID()
		began := time.Now()
		alive, err := m.renew(ctx, id, began.Add(m.attempt()))
		if err == nil {
			t := newTerm(id, m.trust(began))
			m.mu.Lock()
			m.term = t
			m.mu.Unlock()
			m.learn(id, began, alive, true)
			m.cfg.Log.Info("joined the cluster", "member", id, "name", m.Name(), "members", len(alive))
			m.doubt(id, alive, true)
			m.Notify(storage.Notification{Due: true}) // so that the others know of this member before their next renewals
			return t
		}
		if ctx.Err() != nil {
			return nil
		}
		// The store may have taken the renewal although the answer was lost.
		m.leave(ctx, id)
		m.cfg.Log.Error("failed to join the cluster, retrying", "err", err)
		if !claybot.Sleep(ctx, m.patience()) {
			return nil
		}
	}
}

// keep renews a term until it is over or ctx is done.
func (m *Membership) keep(ctx context.Context, t *Term) {
	wait := m.interval()
	for {
		if timer := time.NewTimer(wait); !m.await(ctx, t, timer) {
			timer.Stop()
			return
		}
		began := time.Now()
		limit := began.Add(m.attempt())
		if end := t.deadline(); end.Before(limit) {
			limit = end
		}
		alive, err := m.renew(ctx, t.id, limit)
		switch {
		case err == nil:
			if t.prolong(m.trust(began)) != nil {
				return
			}
			m.learn(t.id, began, alive, false)
			m.doubt(t.id, alive, false)
			wait = m.interval()
		case errors.Is(err, storage.ErrLeaseLost):
			t.close(ErrExpired)
			return
		default:
			if ctx.Err() == nil {
				m.cfg.Log.Warn("failed to renew the membership, retrying", "member", t.id, "err", err)
			}
			wait = m.patience()
		}
	}
}

// await waits for the next renewal. It returns false when there is none.
func (m *Membership) await(ctx context.Context, t *Term, timer *time.Timer) bool {
	select {
	case <-ctx.Done():
		return false
	case <-t.ctx.Done():
		return false
	case <-timer.C:
	case <-m.kick:
		timer.Stop()
	}
	return t.Trusted() == nil
}

// renew renews a term once and notes how the store answers.
func (m *Membership) renew(ctx context.Context, id string, limit time.Time) ([]storage.Member, error) {
	m.mu.Lock()
	n := m.self
	n.ID = id
	n.State = storage.MemberLive
	if m.draining {
		n.State = storage.MemberDraining
	}
	m.tried = time.Now()
	m.mu.Unlock()
	if m.cfg.Working != nil {
		n.Working = m.cfg.Working()
	}
	ctx, cancel := context.WithDeadline(ctx, limit)
	defer cancel()
	alive, err := m.cfg.Store.RenewMember(ctx, n, m.cfg.TTL)
	err = storage.InTime(err)
	if away := m.answered(err); away > 0 {
		m.cfg.Log.Warn(answersAgain, "after", away)
	}
	return alive, err
}

// answered notes how the store answered a renewal. After some that it did not answer it
// returns for how long that was.
func (m *Membership) answered(err error) (away time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	silent := err != nil && !errors.Is(err, storage.ErrLeaseLost) // which is an answer
	switch {
	case silent && m.silent.IsZero():
		m.silent = m.tried
	case !silent && !m.silent.IsZero():
		away, m.silent = time.Since(m.silent), time.Time{}
	}
	m.tried, m.failed = time.Time{}, err
	return away
}

// learn keeps what a renewal returned: the members, until when they count by our clock,
// and how far our clock is from the store's.
func (m *Membership) learn(id string, began time.Time, alive []storage.Member, joined bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	ends := make(map[string]time.Time, len(alive))
	if i := slices.IndexFunc(alive, func(n storage.Member) bool { return n.ID == id }); i >= 0 {
		seen := alive[i].Seen
		m.self.Skew = began.Add(now.Sub(began)/2).UnixMilli() - int64(seen)
		for _, n := range alive {
			if n.ID != id && n.Until != 0 {
				ends[n.ID] = now.Add(time.Duration(n.Until-seen) * time.Millisecond)
			}
		}
	}
	same := !joined && len(alive) == len(m.alive)
	for _, n := range alive {
		same = same && slices.ContainsFunc(m.alive, func(o storage.Member) bool { return o.ID == n.ID && o.State == n.State })
	}
	before := m.alive
	m.alive, m.ends = alive, ends
	if !same {
		m.change()
		m.logChanges(id, before, alive)
	}
}

// logChanges logs which members have joined and left.
func (m *Membership) logChanges(id string, before, alive []storage.Member) {
	among := func(all []storage.Member, n storage.Member) bool {
		return slices.ContainsFunc(all, func(o storage.Member) bool { return o.ID == n.ID })
	}
	for _, n := range before {
		if n.ID != id && !among(alive, n) {
			m.cfg.Log.Info("member left; the others take over its work", "name", n.Name, "member", n.ID)
		}
	}
	for _, n := range alive {
		if n.ID != id && !among(before, n) {
			m.cfg.Log.Info("member joined", "name", n.Name, "member", n.ID)
		}
	}
}

// retire ends a term here and, when the store answers, there.
func (m *Membership) retire(t *Term) {
	t.close(ErrLeft)
	m.mu.Lock()
	m.term, m.alive, m.ends = nil, nil, nil
	m.change()
	m.mu.Unlock()
	m.leave(context.Background(), t.id)
}

// leave ends a term in the store. One that it cannot end there expires.
func (m *Membership) leave(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(leaveTime, m.cfg.TTL))
	defer cancel()
	if err := m.cfg.Store.Leave(ctx, id); err != nil {
		m.cfg.Log.Debug("failed to leave in order", "member", id, "err", err)
	}
}

// trust returns when a term may not be trusted any more whose renewal began at a time.
func (m *Membership) trust(began time.Time) time.Time { return began.Add(m.cfg.TTL - m.cfg.TTL/5) }

// interval is the time between two renewals.
func (m *Membership) interval() time.Duration { return storage.RenewalInterval(m.cfg.TTL) }

// attempt is how long a renewal may take before it is retried: longer than the interval, so
// that a slow store gets an answer through.
func (m *Membership) attempt() time.Duration { return min(m.cfg.TTL, DefaultTTL) / 3 }

// patience is the pause after a renewal that failed.
func (m *Membership) patience() time.Duration { return min(time.Second, m.cfg.TTL/10) }

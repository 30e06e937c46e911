package cluster

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// DefaultTTL is how long a renewal counts.
const DefaultTTL = 10 * time.Second

// leaveTime bounds the end of a term in the store, which expires otherwise.
const leaveTime = 3 * time.Second

// Config is what New needs. Zero fields mean the defaults named.
type Config struct {
	Store  storage.Members
	Claims storage.Claims        // of the same store
	Hints  storage.Notifications // optional: notifies the others of released claims at once
	// Versions counts the changes of what members keep in memory; nil: nothing changes.
	Versions storage.Versions
	// Self describes the process: Name, Addr, Version, Started and MaxRuns. The rest is
	// filled in with each renewal.
	Self storage.Member
	// NewID makes the id of a term; claybot.NewID.
	NewID func() string
	TTL   time.Duration // of a renewal; DefaultTTL
	// Working returns how many agents the member works on; optional.
	Working func() int
	Log     *slog.Logger
}

// A Membership is the membership of this process in its cluster. Its methods are safe for
// concurrent use.
type Membership struct {
	cfg   Config
	alone *Term // of a cluster of one
	kick  chan struct{}

	mu       sync.Mutex
	self     storage.Member
	term     *Term                // nil while there is none
	alive    []storage.Member     // as of the last good renewal
	ends     map[string]time.Time // of the terms of others, by our clock
	tried    time.Time            // when the renewal in progress began; zero for none
	failed   error                // error of the newest renewal; nil when it succeeded
	silent   time.Time            // when the first renewal without an answer began; zero when the newest has one
	doubted  map[string]bool      // what was logged of other members
	met      time.Time            // when a hint of an unknown member last caused a renewal
	draining bool
	lost     int64 // terms that ended while this process ran
	changed  chan struct{}
}

// New returns the membership of a process that joins when Run begins.
func New(cfg Config) *Membership {
	if cfg.NewID == nil {
		cfg.NewID = func() string { return string(claybot.NewID()) }
	}
	if cfg.TTL <= 0 {
		cfg.TTL = DefaultTTL
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Self.Started == 0 {
		cfg.Self.Started = claybot.Now()
	}
	return &Membership{cfg: cfg, self: cfg.Self, kick: make(chan struct{}, 1), changed: make(chan struct{})}
}

// Alone returns the membership in a cluster of one, of a process that has its store for
// itself, under the id of self. It needs no Run.
func Alone(self storage.Member) *Membership {
	if self.Started == 0 {
		self.Started = claybot.Now()
	}
	self.State = storage.MemberLive
	t := endless(self.ID)
	return &Membership{self: self, alone: t, term: t, alive: []storage.Member{self}, changed: make(chan struct{})}
}

// Name returns what operators call the member.
func (m *Membership) Name() string { return cmp.Or(m.cfg.Self.Name, m.self.Name) }

// Node returns the id of the present term; empty while there is none.
func (m *Membership) Node() string {
	if t := m.Term(); t != nil {
		return t.id
	}
	return ""
}

// Term returns the present term; nil while there is none. It may end at any time.
func (m *Membership) Term() *Term {
	m.mu.Lock()
	t := m.term
	m.mu.Unlock()
	if t == nil || t.Trusted() != nil {
		return nil
	}
	return t
}

// Joined blocks until there is a term. The error is the cause of ctx.
func (m *Membership) Joined(ctx context.Context) (*Term, error) {
	for {
		changed := m.Changed()
		if t := m.Term(); t != nil {
			return t, nil
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-changed:
		}
	}
}

// Trusted returns nil while there is a term that is trusted at this moment.
func (m *Membership) Trusted() error {
	m.mu.Lock()
	t := m.term
	m.mu.Unlock()
	if t == nil {
		return ErrLapsed
	}
	return t.Trusted()
}

// Lost returns how often this process has lost its membership.
func (m *Membership) Lost() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lost
}

// Alive returns the members at the last good renewal whose terms have not expired since,
// this one among them.
func (m *Membership) Alive() []storage.Member {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(m.alive), func(n storage.Member) bool { return m.runOut(n.ID) })
}

// Others returns how many other members are present and stay: those that drain do not
// count.
func (m *Membership) Others() int {
	own, n := m.Node(), 0
	for _, x := range m.Alive() {
		if x.ID != own && x.State != storage.MemberDraining {
			n++
		}
	}
	return n
}

// Mixed reports whether members of another version are present, as in a rolling upgrade.
func (m *Membership) Mixed() bool {
	all := m.Alive()
	return slices.ContainsFunc(all, func(n storage.Member) bool { return n.Version != all[0].Version })
}

// Gone reports whether a member is known to have left.
func (m *Membership) Gone(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := slices.ContainsFunc(m.alive, func(n storage.Member) bool { return n.ID == id })
	return !known || m.runOut(id)
}

// NameOf returns the name of a member; its id when the name is not known.
func (m *Membership) NameOf(id string) string {
	for _, n := range m.Alive() {
		if n.ID == id {
			return cmp.Or(n.Name, id)
		}
	}
	return id
}

// Members lists all members of the last day, those that have left included, the newest first.
func (m *Membership) Members(ctx context.Context) ([]storage.Member, error) {
	if m.alone != nil {
		return m.Alive(), nil
	}
	return m.cfg.Store.Members(ctx)
}

// HeldBy returns the name of the member that works on an agent; here says that this process
// believes to be. It is empty for none, and in a cluster of one, which has no other to tell
// it from.
func (m *Membership) HeldBy(ctx context.Context, id claybot.AgentID, here bool) (string, error) {
	if m.alone != nil {
		return "", nil
	}
	if here && m.Trusted() == nil {
		return m.Name(), nil
	}
	node, err := m.cfg.Store.HeldBy(ctx, id)
	if err != nil || node == "" {
		return "", err
	}
	return m.NameOf(node), nil
}

// runOut reports whether the term of another member has expired by our clock. The caller
// holds the lock.
func (m *Membership) runOut(id string) bool {
	end, ok := m.ends[id]
	return ok && !time.Now().Before(end)
}

// Changed returns a channel that is closed when a term begins or ends, or a member joins or
// leaves.
func (m *Membership) Changed() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed
}

// Answering returns nil while the store answers renewals. An error comes within half a ttl
// after it has stopped doing so, and within five seconds however long that is.
func (m *Membership) Answering() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failed != nil {
		return m.failed
	}
	if !m.tried.IsZero() && time.Since(m.tried) > min(m.cfg.TTL, DefaultTTL)/8 {
		return errSilent
	}
	return nil
}

// errSilent: a renewal takes longer than it should.
var errSilent = errors.New("the store does not answer")

// Elsewhere returns a channel that fires after d, when another member may have changed
// the store. In a cluster of one it never fires: the process that changes the store knows
// what to wake.
func (m *Membership) Elsewhere(d time.Duration) <-chan time.Time {
	if m.alone != nil {
		return nil
	}
	if d <= 0 {
		now := make(chan time.Time, 1)
		now <- time.Now()
		return now
	}
	return time.After(d)
}

// Retries reports whether to retry a call to the store that failed with err: the store
// is unavailable, for which other members may be the cause. In a cluster of one it is false
// for every error: no other process keeps the store busy.
func (m *Membership) Retries(err error) bool {
	return m.alone == nil && storage.Unavailable(err)
}

// Final reports whether a store that keeps failing with err fails for good. In a cluster it
// never does: the way to the store may be broken, and other members go on.
func (m *Membership) Final(err error) bool { return m.alone != nil && !storage.Unavailable(err) }

// Versions returns how often what members keep in memory was changed; see
// storage.Versions. In a cluster of one it stays zero: the process makes all changes itself.
func (m *Membership) Versions(ctx context.Context) (storage.Version, error) {
	if m.cfg.Versions == nil {
		return storage.Version{}, nil
	}
	return m.cfg.Versions.Versions(ctx)
}

// Known returns the position up to which this process may rely on what it has read of a
// queue in the store: n where no other process adds to the queue, else 0, and the queue is
// to be read from its beginning.
func (m *Membership) Known(n int64) int64 {
	if m.alone != nil {
		return n
	}
	return 0
}

// Drain says that the member takes no more work and leaves soon. It notifies the others at
// once, and is idempotent.
func (m *Membership) Drain() {
	m.mu.Lock()
	m.draining = true
	m.mu.Unlock()
	if m.alone == nil {
		m.renewNow()
	}
}

// Draining reports whether the member takes no more work and others do.
func (m *Membership) Draining() bool {
	m.mu.Lock()
	d := m.draining
	m.mu.Unlock()
	return d && m.Others() > 0
}

// Heard handles the id of a member that sent a hint. An unknown one has joined since the
// last renewal, so the next renewal comes at once: a member that believes to be the only one
// sends no hints. For members that stay unknown, as they have left meanwhile, that happens
// once a second. Heard does not block.
func (m *Membership) Heard(id string) {
	if m.alone != nil || id == "" {
		return
	}
	m.mu.Lock()
	known := m.term == nil || slices.ContainsFunc(m.alive, func(n storage.Member) bool { return n.ID == id })
	soon := !m.met.IsZero() && time.Since(m.met) < m.patience()
	if !known && !soon {
		m.met = time.Now()
	}
	m.mu.Unlock()
	if !known && !soon {
		m.renewNow()
	}
}

// Ended handles the ids of members whose memberships were ended in the store. If the last
// renewal still found them, the next one comes at once. Ended does not block.
func (m *Membership) Ended(ids []string) {
	if m.alone != nil || len(ids) == 0 {
		return
	}
	m.mu.Lock()
	known := slices.ContainsFunc(m.alive, func(n storage.Member) bool { return slices.Contains(ids, n.ID) })
	m.mu.Unlock()
	if known {
		m.renewNow()
	}
}

// renewNow makes the next renewal come at once.
func (m *Membership) renewNow() {
	select {
	case m.kick <- struct{}{}:
	default:
	}
}

// change wakes all who wait for a change. The caller holds the lock.
func (m *Membership) change() {
	close(m.changed)
	m.changed = make(chan struct{})
}

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

// DefaultTTL is how long a beat counts.
const DefaultTTL = 10 * time.Second

// leaveTime bounds the farewell: a store that does not answer finds out by itself.
const leaveTime = 3 * time.Second

// Config is what New needs. Zero fields mean the defaults named.
type Config struct {
	Store  storage.Members
	Claims storage.Claims // of the same store
	Hints  storage.Notifications  // optional: others are told at once what is free
	// Versions counts the changes of what members keep in memory; nil: nothing changes.
	Versions storage.Versions
	// Self is what is known of the process: Name, Addr, Version, Started and
	// MaxRuns. The rest is filled in with each beat.
	Self storage.Member
	// NewID makes the id of a term; claybot.NewID.
	NewID func() string
	TTL   time.Duration // of a beat; DefaultTTL
	// Working tells how many agents the node works on; optional.
	Working func() int
	Log     *slog.Logger
}

// A Membership is the place of this process among those that share a store. Its
// methods are safe for concurrent use.
type Membership struct {
	cfg   Config
	alone *Term // of a process that has the store for itself
	kick  chan struct{}

	mu       sync.Mutex
	self     storage.Member
	term     *Term                // nil while there is none
	alive    []storage.Member       // as of the last good beat
	ends     map[string]time.Time // of the beats of others, by our clock
	tried    time.Time            // when the beat that is under way began; zero for none
	failed   error                // of the newest beat; nil when it was good
	silent   time.Time            // when the first of the beats began that were not answered; zero when the newest was
	doubted  map[string]bool      // what the log was told of other nodes
	met      time.Time            // when a hint of an unknown node last made a beat come at once
	draining bool
	changed  chan struct{}
}

// New makes the membership of a process that joins when Run begins.
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

// Alone is the membership of a process that has its store for itself, under the
// id of self. It needs no Run.
func Alone(self storage.Member) *Membership {
	if self.Started == 0 {
		self.Started = claybot.Now()
	}
	self.State = storage.MemberLive
	t := endless(self.ID)
	return &Membership{self: self, alone: t, term: t, alive: []storage.Member{self}, changed: make(chan struct{})}
}

// Name is what an operator calls the node.
func (m *Membership) Name() string { return cmp.Or(m.cfg.Self.Name, m.self.Name) }

// Node is the id of the present term; empty while there is none.
func (m *Membership) Node() string {
	if t := m.Term(); t != nil {
		return t.id
	}
	return ""
}

// Term is the present term; nil while there is none. It may end at any time.
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

// Trusted is nil while there is a term that is trusted at this moment.
func (m *Membership) Trusted() error {
	m.mu.Lock()
	t := m.term
	m.mu.Unlock()
	if t == nil {
		return ErrLapsed
	}
	return t.Trusted()
}

// Alive are the nodes that were there at the last good beat and whose beats have
// not run out since, this one among them.
func (m *Membership) Alive() []storage.Member {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(m.alive), func(n storage.Member) bool { return m.runOut(n.ID) })
}

// Others is how many other nodes are there and stay: those that drain are not
// counted.
func (m *Membership) Others() int {
	own, n := m.Node(), 0
	for _, x := range m.Alive() {
		if x.ID != own && x.State != storage.MemberDraining {
			n++
		}
	}
	return n
}

// Gone reports whether a node is known not to be there any more.
func (m *Membership) Gone(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := slices.ContainsFunc(m.alive, func(n storage.Member) bool { return n.ID == id })
	return !known || m.runOut(id)
}

// NameOf is the name of a node that is there; its id when it is not known.
func (m *Membership) NameOf(id string) string {
	for _, n := range m.Alive() {
		if n.ID == id {
			return cmp.Or(n.Name, id)
		}
	}
	return id
}

// Members lists all members of the last day, those that are gone included, the newest
// first. A process that has the store for itself is the only one.
func (m *Membership) Members(ctx context.Context) ([]storage.Member, error) {
	if m.alone != nil {
		return m.Alive(), nil
	}
	return m.cfg.Store.Members(ctx)
}

// HeldBy is the name of the member that works on an agent; here says that this process
// believes to be. It is empty for none, and in a process that has the store for itself:
// there is no other to tell it from.
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

// runOut reports whether the beat of another node has ended by our clock.
// Called under the lock.
func (m *Membership) runOut(id string) bool {
	end, ok := m.ends[id]
	return ok && !time.Now().Before(end)
}

// Changed is closed at the next change: a term begins or ends, a node comes or
// goes.
func (m *Membership) Changed() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed
}

// Answering is nil while the store answers beats. An error comes within half a
// ttl after it has stopped doing so, and within five seconds however long that is.
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

// errSilent: a beat is under way for longer than one should take.
var errSilent = errors.New("the store does not answer")

// Elsewhere returns a channel that fires after d, when another member may have changed
// the store. In a process that has the store for itself it never fires: the process that changes
// the store there knows what to wake.
func (m *Membership) Elsewhere(d time.Duration) <-chan time.Time {
	if m.alone != nil {
		return nil
	}
	return time.After(d)
}

// Retries reports whether to retry a call to the store that failed with err: the store
// is unavailable, for which other members may be the cause. In a process that has the
// store for itself it is false for every error: no other process keeps the store busy.
func (m *Membership) Retries(err error) bool {
	return m.alone == nil && storage.Unavailable(err)
}

// Final reports whether a store that keeps failing with err fails for good. In a cluster it
// never does: the way to the store may be broken, and other members go on.
func (m *Membership) Final(err error) bool { return m.alone != nil && !storage.Unavailable(err) }

// Versions returns how often what members keep in memory was changed; see
// storage.Versions. A process that has the store for itself changes all of it itself, so
// that it stays zero.
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

// Drain says that the node takes no more work and leaves soon. The others are
// told at once. Twice is once.
func (m *Membership) Drain() {
	m.mu.Lock()
	m.draining = true
	m.mu.Unlock()
	if m.alone == nil {
		m.beatNow()
	}
}

// Draining reports whether the node takes no more work and others are there
// that do.
func (m *Membership) Draining() bool {
	m.mu.Lock()
	d := m.draining
	m.mu.Unlock()
	return d && m.Others() > 0
}

// Heard is told which node has given a hint. One that is not known has come since
// the last beat, so the next one comes at once: who believes to be the only node
// tells nobody of what it does. Of nodes that stay unknown, as they have left
// meanwhile, it does so once a second. It does not block.
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
		m.beatNow()
	}
}

// beatNow makes the next beat come at once.
func (m *Membership) beatNow() {
	select {
	case m.kick <- struct{}{}:
	default:
	}
}

// change lets whoever waits for a change look. Called under the lock.
func (m *Membership) change() {
	close(m.changed)
	m.changed = make(chan struct{})
}

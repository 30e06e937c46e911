package delivery

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/cluster"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

// How members share destinations.
const (
	// lookUnsent is how often Watch reads the outbox for messages that no hint named.
	lookUnsent = 2 * time.Second
	// leaveAlone bounds how long a destination is left to the member that holds its
	// claim.
	leaveAlone = 10 * time.Second
	maxMissed  = 10_000
)

// A refusal is why a destination is left to other members.
type refusal struct {
	holder string    // member with the claim; empty: the connector fails here
	until  time.Time // the latest time of the next try
	told   bool      // other members know that this one does not send
}

// Claims decide which destinations this member sends to. Their lock is the innermost one.
type claims struct {
	members *cluster.Membership
	active  func(name string) connectors.Connector // see Config
	log     *slog.Logger

	mu        sync.Mutex
	elsewhere map[string]refusal // destinations that other members send to for now
	began     time.Time          // of Begin
	ours      map[string]bool    // destinations that had a lane, for as long as pauses last from before
}

func newClaims(cfg Config) *claims {
	return &claims{members: cfg.Members, active: cfg.Active, log: cfg.Log, elsewhere: make(map[string]refusal), ours: make(map[string]bool)}
}

func (c *claims) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.began = time.Now()
}

// isForeign reports whether another process may have sent last to the destination of a new
// lane.
func (c *claims) isForeign(dest string) (foreign bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.began) >= mostPause {
		clear(c.ours)
		return false
	}
	foreign = !c.ours[dest]
	c.ours[dest] = true
	return foreign
}

// left reports whether a destination is left to other members for now.
func (c *claims) left(dest string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, left := c.elsewhere[dest]
	return left
}

// freed notes that no other member sends to a destination any more.
func (c *claims) freed(dest string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.elsewhere, dest)
}

// connected notes that a connector came: its destinations are left to others no more because it
// was missing or failed here.
func (c *claims) connected(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.elsewhere, func(dest string, r refusal) bool { return strings.HasPrefix(dest, name+"\x00") && r.holder == "" })
}

// due returns those of the destinations with unsent messages that this member may try: all but
// those whose claim a live member holds. It forgets what it knew of other destinations.
func (c *claims) due(dests []string) (due []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := make(map[string]refusal, len(c.elsewhere))
	for _, dest := range dests {
		r, known := c.elsewhere[dest]
		if known {
			left[dest] = r
		}
		if !known || r.holder == "" || !time.Now().Before(r.until) || c.members.Gone(r.holder) {
			due = append(due, dest)
		}
	}
	c.elsewhere = left
	return due
}

// claim acquires the destination of a lane. It returns nil when another member is to
// send, which learns of the messages by a hint or by its own Watch.
func (c *claims) claim(ctx context.Context, l *lane) *cluster.Hold {
	if !c.able(l.dest) {
		return nil
	}
	name := storage.DestClaim(l.dest)
	hold, err := c.members.Claim(ctx, name)
	switch {
	case errors.Is(err, storage.ErrHeld):
		holder, err := c.members.Holder(ctx, name)
		if err != nil {
			holder = "" // only the time decides about the next try
		}
		c.mu.Lock()
		c.elsewhere[l.dest] = refusal{holder: holder, until: time.Now().Add(leaveAlone)}
		c.mu.Unlock()
		return nil
	case err != nil && ctx.Err() == nil && c.members.Trusted() == nil:
		c.log.Error("failed to claim a destination, retrying", "err", err)
		return nil
	case err != nil:
		return nil // no membership term; Watch retries in the next one
	}
	c.mu.Lock()
	_, elsewhere := c.elsewhere[l.dest]
	l.foreign = l.foreign || elsewhere
	delete(c.elsewhere, l.dest)
	c.mu.Unlock()
	return hold
}

// able reports whether this member should send to a destination: its connector is
// configured and, where there are others to send, healthy, and this member is not
// draining. A connector that fails on every member is tried all the same, after the
// destination was left to the others for a while.
func (c *claims) able(dest string) bool {
	name, _, _ := strings.Cut(dest, "\x00")
	by := c.active(name)
	_, sends := by.(connectors.Sender)
	state := connectors.StateLive
	if sends {
		state = by.Health().State
	}
	broken := state == connectors.StateFailing || state == connectors.StateStopped
	draining := c.members.Draining()
	others := c.members.Others() > 0
	if sends && (!broken && !draining || !others) {
		return true
	}
	c.mu.Lock()
	r, known := c.elsewhere[dest]
	if !known || r.holder != "" {
		r = refusal{until: time.Now().Add(leaveAlone)}
	}
	late := known && sends && broken && !draining && !time.Now().Before(r.until)
	tell := !r.told && !late
	r.told = true
	c.elsewhere[dest] = r
	c.mu.Unlock()
	if tell { // another member has to send what was stored here
		c.members.Notify(storage.Notification{Freed: []string{storage.DestClaim(dest)}})
	}
	if tell && !others { // sent after a start with the connector
		c.log.Warn("connector not configured or stopped, messages wait", "dest", strings.ReplaceAll(dest, "\x00", "/"))
	}
	return late
}

// yield releases the claim of a lane that has nothing to send.
func (d *Deliverer) yield(ctx context.Context, l *lane) {
	d.mu.Lock()
	wanted := l.wanted || len(l.queue) > 0 || l.more
	l.wanted = false
	d.mu.Unlock()
	if err := l.hold.Yield(ctx, wanted); err != nil {
		d.cfg.Log.Warn("failed to release a delivery claim; it expires with the lease", "err", err)
	}
}

// Heard handles a hint of another member. An empty hint means that hints may have been
// lost.
func (d *Deliverer) Heard(h storage.Notification) {
	if h.IsEmpty() {
		wake(d.kick)
		return
	}
	for _, dest := range h.Dests {
		name, channel, _ := strings.Cut(dest, "\x00")
		show(d.cfg.Active(name), channel)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx == nil || d.ctx.Err() != nil {
		return
	}
	for _, dest := range h.Dests {
		if l := d.lanes[dest]; l != nil {
			l.more, l.wanted = true, true
		}
	}
	for _, name := range h.Freed {
		dest, ok := storage.ClaimedDest(name)
		if !ok {
			wake(d.kick)
			continue
		}
		d.claims.freed(dest)
		if d.lanes[dest] == nil {
			d.openFor(dest)
		}
	}
}

// show lets a connector look for what other members have sent to a channel, where it
// displays it.
func show(c connectors.Connector, channel string) {
	if c, ok := c.(connectors.Looker); ok {
		c.Look(channel)
	}
}

// Connected is called after a connector of that name came, or another one of that name: what
// waits for it is sent now.
func (d *Deliverer) Connected(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.claims.connected(name)
	for dest, l := range d.lanes {
		if strings.HasPrefix(dest, name+"\x00") {
			l.again = true
			wake(l.changed)
		}
	}
	wake(d.kick)
}

// Watch reads the outbox until ctx is done, for messages stored by a member that has
// left and for messages that no hint named.
func (d *Deliverer) Watch(ctx context.Context) {
	for look := d.cfg.Members.Elsewhere(0); ; look = d.cfg.Members.Elsewhere(lookUnsent) {
		changed := d.cfg.Members.Changed()
		select {
		case <-ctx.Done():
			return
		case <-look:
		case <-changed:
		case <-d.kick:
		}
		if d.cfg.Members.Term() == nil {
			continue
		}
		dests, err := d.cfg.Reader.UnsentDests(ctx)
		if err != nil && ctx.Err() == nil {
			d.cfg.Log.Warn("failed to read the outbox, retrying", "err", err)
			claybot.Sleep(ctx, time.Second)
			wake(d.kick)
		}
		if err == nil {
			d.take(dests)
		}
	}
}

// take opens lanes for destinations with unsent messages, except those whose claim a
// live member holds.
func (d *Deliverer) take(dests []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx == nil || d.ctx.Err() != nil {
		return
	}
	for _, dest := range d.claims.due(dests) {
		if d.lanes[dest] == nil {
			d.openFor(dest)
		}
	}
}

// A missed keeps the outcomes of attempts that could not be recorded because the claim
// had ended meanwhile. The next holder of the claim finds these attempts ambiguous; when
// that is this process again, it knows their outcome. The zero value is ready to use.
type missed struct {
	mu   sync.Mutex
	ends map[string]ending
}

type ending struct {
	attempts int
	how      storage.Resolution
}

// keep stores the outcome of the newest attempt of a message.
func (m *missed) keep(id string, attempts int, r storage.Resolution) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ends == nil || len(m.ends) >= maxMissed {
		m.ends = make(map[string]ending)
	}
	m.ends[id] = ending{attempts, r}
}

// take returns and removes the outcome of the newest attempt of a message, if this
// process made it.
func (m *missed) take(o claybot.Outgoing) (storage.Resolution, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.ends[o.ID]
	delete(m.ends, o.ID)
	return e.how, ok && o.State == claybot.SendAmbiguous && o.Attempts == e.attempts
}

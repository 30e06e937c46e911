package agentsystem

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/storage"
)

// How destinations are divided among nodes.
const (
	// lookUnsent is how often the outbox is looked at for what nobody here has been
	// told of.
	lookUnsent = 2 * time.Second
	// leaveAlone bounds how long a destination is left to a node that is there and
	// should send to it.
	leaveAlone = 10 * time.Second
	maxMissed  = 10_000
)

// A refusal is why a destination is left to others.
type refusal struct {
	holder string    // the node that has the claim; empty: the connector fails here
	until  time.Time // it is tried again then at the latest
	told   bool      // others know that this node does not send
}

// claim asks for the destination of a lane; nil when it is left to others, who
// come by it as this node does: by a hint, or by their look at the outbox.
func (d *deliverer) claim(ctx context.Context, l *lane) *nodes.Hold {
	switch {
	case l.shared && !d.able(l.dest):
		return nil
	case !d.sends(l.dest):
		// What waits there stays in the store, unread, and is sent after a start with
		// the connector.
		d.log.Warn("messages wait for a connector that is not configured", "dest", strings.ReplaceAll(l.dest, "\x00", "/"))
		return nil
	}
	name := storage.DestClaim(l.dest)
	hold, err := d.members.Claim(ctx, name)
	switch {
	case errors.Is(err, storage.ErrHeld):
		holder, err := d.members.Holder(ctx, name)
		if err != nil {
			holder = "" // the time alone says when it is tried again
		}
		d.mu.Lock()
		d.elsewhere[l.dest] = refusal{holder: holder, until: time.Now().Add(leaveAlone)}
		d.mu.Unlock()
		return nil
	case err != nil && ctx.Err() == nil && d.members.Trusted() == nil:
		d.log.Error("cannot claim a destination; trying again", "err", err)
		return nil
	case err != nil:
		return nil // there is no term; the next one looks at the outbox
	}
	if l.shared {
		d.mu.Lock()
		delete(d.elsewhere, l.dest)
		d.mu.Unlock()
	}
	return hold
}

// sends reports whether the connector of a destination is configured, and sends.
func (d *deliverer) sends(dest string) bool {
	name, _, _ := strings.Cut(dest, "\x00")
	_, ok := d.connector(name).(connectors.Sender)
	return ok
}

// able reports whether this node is to send to a destination: it stays, and its
// connector is there and does not fail. A connector that fails everywhere is tried
// all the same, after it had been left to others for a while.
func (d *deliverer) able(dest string) bool {
	name, _, _ := strings.Cut(dest, "\x00")
	c := d.connector(name)
	_, sends := c.(connectors.Sender)
	state := connectors.StateLive
	if sends {
		state = c.Health().State
	}
	broken := state == connectors.StateFailing || state == connectors.StateStopped
	draining := d.members.Draining()
	if sends && !broken && !draining {
		return true
	}
	d.mu.Lock()
	r, known := d.elsewhere[dest]
	if !known || r.holder != "" {
		r = refusal{until: time.Now().Add(leaveAlone)}
	}
	late := known && sends && broken && !draining && !time.Now().Before(r.until)
	tell := !r.told && !late
	r.told = true
	d.elsewhere[dest] = r
	d.mu.Unlock()
	if tell { // somebody else is to send what was stored here
		d.members.Tell(storage.Hint{Freed: []string{storage.DestClaim(dest)}})
	}
	return late
}

// yield gives back the claim of a lane that has nothing to send.
func (d *deliverer) yield(ctx context.Context, l *lane) {
	d.mu.Lock()
	wanted := l.wanted || len(l.queue) > 0 || l.more
	l.wanted = false
	d.mu.Unlock()
	if err := l.hold.Yield(ctx, wanted); err != nil {
		d.log.Warn("cannot yield a destination; it is free when the beat of this node ends", "err", err)
	}
}

// heard does what follows from a hint of another node. One without content says
// that some may have been lost.
func (d *deliverer) heard(h storage.Hint) {
	if nothing(h) {
		d.freed.raise()
		return
	}
	for _, dest := range h.Dests {
		d.show(dest)
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
		dest, ok := strings.CutPrefix(name, storage.DestClaim(""))
		if !ok {
			d.freed.raise()
			continue
		}
		delete(d.elsewhere, dest)
		if d.lanes[dest] == nil {
			d.openFor(dest)
		}
	}
}

// show lets a connector look that shows what others have sent.
func (d *deliverer) show(dest string) {
	name, channel, _ := strings.Cut(dest, "\x00")
	if c, ok := d.connector(name).(connectors.Looker); ok {
		c.Look(channel)
	}
}

// watch looks at the outbox for what was stored by a node that is no more, and
// for what no hint has told of, until ctx is done.
func (d *deliverer) watch(ctx context.Context) {
	look := time.NewTicker(lookUnsent)
	defer look.Stop()
	for {
		changed, freed := d.members.Changed(), d.freed.next()
		if d.members.Term() != nil {
			dests, err := d.outbox.UnsentDests(ctx)
			if err != nil && ctx.Err() == nil {
				d.log.Warn("cannot look at the outbox; trying again", "err", err)
			}
			if err == nil {
				d.take(dests)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		case <-changed:
		case <-freed:
		}
	}
}

// take opens the lanes of destinations that have something to send and are not
// known to be in good hands.
func (d *deliverer) take(dests []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx == nil || d.ctx.Err() != nil {
		return
	}
	left := make(map[string]refusal, len(d.elsewhere))
	for _, dest := range dests {
		r, known := d.elsewhere[dest]
		if known {
			left[dest] = r
		}
		waits := known && r.holder != "" && time.Now().Before(r.until) && !d.members.Gone(r.holder)
		if d.lanes[dest] == nil && !waits {
			d.openFor(dest)
		}
	}
	d.elsewhere = left
}

// A missed keeps how attempts ended that could not be recorded, because the claim
// under which they were made had ended. Whoever claims the destination next finds
// their fate unknown; when that is this process again, it knows better. The zero
// value is ready.
type missed struct {
	mu   sync.Mutex
	ends map[string]ending
}

type ending struct {
	attempts int
	how      storage.Resolution
}

// keep remembers how the newest attempt of a message ended.
func (m *missed) keep(id string, attempts int, r storage.Resolution) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ends == nil || len(m.ends) >= maxMissed {
		m.ends = make(map[string]ending)
	}
	m.ends[id] = ending{attempts, r}
}

// take returns how the newest attempt of a message ended, if it was ours. It
// forgets it.
func (m *missed) take(o claybot.Outgoing) (storage.Resolution, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.ends[o.ID]
	delete(m.ends, o.ID)
	return e.how, ok && o.State == claybot.SendAmbiguous && o.Attempts == e.attempts
}

// A signal wakes all who wait for it. The zero value is ready.
type signal struct {
	mu sync.Mutex
	ch chan struct{}
}

// next is closed when the signal is raised next.
func (s *signal) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

func (s *signal) raise() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}

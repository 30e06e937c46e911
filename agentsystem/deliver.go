package agentsystem

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/storage"
)

// The bounds of delivery.
const (
	laneMemory  = 64  // messages of a lane kept in memory; the rest waits in the store
	sendsAtOnce = 128 // over all lanes

	shortestSilence = 100 * time.Millisecond // a refusal that names no time is not answered in a tight loop
)

// A deliverer sends what is in the outbox: one lane for each destination,
// oldest first. A lane lives as long as it has something to send.
//
// Where several nodes share the store, a lane works on a claim of its
// destination, and the store is the only queue: what stands first there may have
// been put there by another node.
type deliverer struct {
	outbox    storage.Outbox
	connector func(string) connectors.Connector
	files     storage.Agents // whose files are sent
	allowed   func(claybot.Outgoing) bool
	meter     Meter
	log       *slog.Logger
	members   *nodes.Membership
	slots     chan struct{}
	quiet     silences
	idle      chan struct{} // gets a word when the last lane closes
	missed    missed
	freed     signal // another node has yielded what is no destination, or may have

	mu        sync.Mutex
	ctx       context.Context // of the lanes; nil before begin
	cancel    context.CancelCauseFunc
	lanes     map[string]*lane
	elsewhere map[string]refusal // destinations that are left to others for now
	wg        sync.WaitGroup
}

// A lane is the queue of one destination.
type lane struct {
	dest    string
	shared  bool // with other nodes: the store is asked from the beginning, always
	queue   []claybot.Outgoing
	last    int64 // the store is asked for what stands behind this position; 0 when shared
	more    bool  // the store has, or may have, messages behind last
	reading bool  // the store is being asked right now
	wanted  bool  // another node has stored something since the lane opened
	// stir ends the wait of the message that is on its way: somebody changed
	// it.
	stir chan struct{}

	// Below is the lane's own goroutine's.
	hold *nodes.Hold
	lost bool // the claim has ended before its time
	// pause is when the chat may be written to again after an ambiguous send.
	pause time.Time
}

func (d *deliverer) newLane(dest string) *lane {
	return &lane{dest: dest, shared: !d.members.IsAlone(), stir: make(chan struct{}, 1)}
}

// rewind makes the lane ask the store again for what stands at n or later, once
// it has sent what stands before.
func (l *lane) rewind(n int64) {
	l.more = true
	if l.shared {
		l.queue = nil
		return
	}
	if n > l.last {
		return
	}
	if i := slices.IndexFunc(l.queue, func(o claybot.Outgoing) bool { return o.N >= n }); i >= 0 {
		l.queue = l.queue[:i]
	}
	l.last = n - 1
}

func newDeliverer(cfg Config, c func(string) connectors.Connector, allowed func(claybot.Outgoing) bool) *deliverer {
	return &deliverer{
		outbox: cfg.Outbox, files: cfg.Agents, connector: c, allowed: allowed, meter: cfg.Meter, log: cfg.Log, members: cfg.Members,
		slots:     make(chan struct{}, sendsAtOnce),
		idle:      make(chan struct{}, 1),
		lanes:     make(map[string]*lane),
		elsewhere: make(map[string]refusal),
	}
}

// begin starts the lanes of everything that was left unsent, by an earlier
// process or before begin was called. They end with end, not with ctx.
func (d *deliverer) begin(ctx context.Context) error {
	dests, err := d.outbox.UnsentDests(ctx)
	if err != nil {
		return fmt.Errorf("read the outbox: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, dest := range dests {
		d.lanes[dest] = d.newLane(dest)
		d.lanes[dest].more = true
	}
	d.ctx, d.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	for _, l := range d.lanes {
		d.open(l)
	}
	return nil
}

// open starts a lane. Called under the lock.
func (d *deliverer) open(l *lane) {
	d.lanes[l.dest] = l
	ctx := d.ctx
	d.wg.Go(func() { d.run(ctx, l) })
}

// openFor starts a lane that reads the store from its beginning. Called under the
// lock.
func (d *deliverer) openFor(dest string) {
	l := d.newLane(dest)
	l.more = true
	d.open(l)
}

// closeLane forgets a lane. Called under the lock.
func (d *deliverer) closeLane(l *lane) {
	delete(d.lanes, l.dest)
	if len(d.lanes) > 0 {
		return
	}
	select {
	case d.idle <- struct{}{}:
	default:
	}
}

// hand tells lanes of stored messages. Those who committed them hand them over side
// by side, so a message may come after a later one, or after its lane has read it
// from the store. So a lane asks the store, unless nothing can stand between the last
// message that it knows of and this one.
func (d *deliverer) hand(out []claybot.Outgoing) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, o := range out {
		dest := o.Route.Dest()
		l := d.lanes[dest]
		switch {
		case d.ctx == nil:
			d.lanes[dest] = d.newLane(dest)
			d.lanes[dest].more = true
		case d.ctx.Err() != nil:
			return // the next start finds them in the store
		case l == nil:
			d.openFor(dest)
		case l.shared:
			l.more = true
		case l.more || l.reading || o.N != l.last+1 || len(l.queue) >= laneMemory:
			l.rewind(o.N)
		default:
			l.queue, l.last = append(l.queue, o), o.N
		}
	}
}

// more makes a lane ask the store for what stands behind its end.
func (d *deliverer) more(l *lane) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l.more = true
}

// again makes the lane of a message look at the store anew: an operator changed
// what stands there.
func (d *deliverer) again(o claybot.Outgoing) {
	d.mu.Lock()
	defer d.mu.Unlock()
	dest := o.Route.Dest()
	l := d.lanes[dest]
	if l == nil {
		if d.ctx == nil || d.ctx.Err() != nil {
			return // the start finds it in the store
		}
		d.openFor(dest)
		return
	}
	l.rewind(o.N)
	l.stirUp()
}

// stirUp ends the wait of the message that is on its way.
func (l *lane) stirUp() {
	select {
	case l.stir <- struct{}{}:
	default:
	}
}

// look makes the lanes of messages that were just stored read the store.
func (d *deliverer) look(out []claybot.Outgoing) {
	seen := make(map[string]bool)
	for _, o := range out {
		if dest := o.Route.Dest(); !seen[dest] {
			seen[dest] = true
			o.N = 0 // from the beginning of what is unsent
			d.again(o)
		}
	}
}

// busy reports whether a destination has something to send.
func (d *deliverer) busy(dest string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lanes[dest] != nil
}

// end waits until all lanes are empty, at most for the time given, cuts the
// others, and returns when all have ended.
func (d *deliverer) end(limit time.Duration) {
	d.drain(limit)
	d.mu.Lock()
	d.cancel(ErrShutdown) // under the lock: from here on hand opens no lane
	d.mu.Unlock()
	d.wg.Wait()
}

func (d *deliverer) drain(limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		d.mu.Lock()
		n := len(d.lanes)
		d.mu.Unlock()
		if n == 0 {
			return
		}
		select {
		case <-d.idle:
		case <-timer.C:
			return
		}
	}
}

// run sends the messages of one lane until none is left. It stays known as the
// lane of its destination until its claim is yielded, so that the next one does
// not stand on what this one gives back.
func (d *deliverer) run(ctx context.Context, l *lane) {
	for {
		d.serve(ctx, l)
		d.mu.Lock()
		if l.hold == nil || l.lost || ctx.Err() != nil || len(l.queue) == 0 && !l.more {
			d.closeLane(l)
			d.mu.Unlock()
			return
		}
		d.mu.Unlock()
	}
}

// serve claims the destination of a lane, sends what it has, and yields.
func (d *deliverer) serve(life context.Context, l *lane) {
	l.hold, l.lost = d.claim(life, l), false
	if l.hold == nil {
		return
	}
	ctx, free := l.hold.Context(life)
	defer d.yield(life, l)
	defer free()
	for ctx.Err() == nil && !l.lost {
		o, ok := d.next(ctx, l)
		if !ok {
			return
		}
		if known := d.deliver(ctx, o, l); !known {
			d.mu.Lock()
			l.rewind(o.N)
			d.mu.Unlock()
		}
	}
	l.lost = l.lost || life.Err() == nil
}

// next takes the oldest message of a lane. False means that there is none.
func (d *deliverer) next(ctx context.Context, l *lane) (claybot.Outgoing, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(l.queue) == 0 {
		if !l.more || ctx.Err() != nil {
			return claybot.Outgoing{}, false
		}
		d.fill(ctx, l)
	}
	o := l.queue[0]
	l.queue = l.queue[1:]
	return o, true
}

// fill reads what is behind the end of a lane. Called under the lock, which it
// lets go meanwhile.
func (d *deliverer) fill(ctx context.Context, l *lane) {
	after := l.last
	l.more, l.reading = false, true
	d.mu.Unlock()
	found, err := d.outbox.Unsent(ctx, l.dest, after, laneMemory)
	if err != nil && ctx.Err() == nil {
		d.log.Error("cannot read the outbox; trying again", "err", err)
		pause(ctx, time.Second)
	}
	d.mu.Lock()
	l.reading = false
	switch {
	case err != nil:
		l.more = true
	case l.last == after && len(found) > 0: // otherwise rewound meanwhile, or at the end
		l.queue = found
		if !l.shared {
			l.last = found[len(found)-1].N
		}
		l.more = l.more || len(found) == laneMemory
	}
}

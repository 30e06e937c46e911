// Package delivery takes messages from the outbox to the platforms.
//
// It guarantees that every stored message ends as sent or failed; that a destination
// gets its messages in the order of the outbox; that a failing destination delays no
// other; and that people see at most two copies of a message under any sequence of
// faults, see copies.go. A message that fails is announced in the chat once, where the
// chat still works.
//
// Goroutines: one lane per destination that has something to send, which owns the
// state of that destination and ends when its queue is empty, and Watch, which looks for
// messages of other members. End waits for the lanes.
//
// The package must not import the AgentSystem or a connector's implementation.
package delivery

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/cluster"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

const (
	laneMemory  = 64  // messages of a lane kept in memory; the rest waits in the store
	sendsAtOnce = 128 // over all lanes

	// MinSilence is the shortest pause after a platform has asked for one, so that a
	// refusal that names no time does not cause a tight loop.
	MinSilence = 100 * time.Millisecond
)

// Outbox stores messages, and how the attempts to send them end; see storage.Outbox.
type Outbox interface {
	Enqueue(ctx context.Context, out ...claybot.Outgoing) ([]claybot.Outgoing, error)
	Attempt(ctx context.Context, c storage.Claim, id string) error
	Resolve(ctx context.Context, c storage.Claim, id string, r storage.Resolution) error
}

// OutboxReader finds messages that are sent or to be sent; see storage.Outbox and
// storage.OutboxReader.
type OutboxReader interface {
	Unsent(ctx context.Context, dest string, after int64, limit int) ([]claybot.Outgoing, error)
	UnsentDests(ctx context.Context) ([]string, error)
	OutgoingByID(ctx context.Context, id string) (claybot.Outgoing, error)
	OutgoingPage(ctx context.Context, q storage.OutgoingQuery) ([]claybot.Outgoing, error)
}

// Files opens the files that are sent; see storage.Files.
type Files interface {
	OpenFile(ctx context.Context, agent claybot.AgentID, id string) (claybot.FileReference, io.ReadCloser, error)
}

// A Meter observes deliveries. Its methods are called concurrently and must be quick,
// must not block and must not panic.
type Meter interface {
	// Sent observes the end of an attempt, one of the Attempt constants, and how long
	// the platform took: 0 where the outcome was decided without an attempt.
	Sent(o claybot.Outgoing, outcome string, took time.Duration)
	// Panicked observes a panic that was caught in the part with that name.
	Panicked(where string)
}

// The outcomes of an attempt.
const (
	AttemptSent      = "sent"
	AttemptRetry     = "retry"     // it will be tried again
	AttemptAmbiguous = "ambiguous" // bytes left, no response came
	AttemptFailed    = "failed"    // given up
)

// Moves know the ids of chats that got a new one; see people.Moves.
type Moves interface {
	Current(connector, channel string) string
	Former(connector, channel string) []string
	Load(ctx context.Context) error
}

// Config is what New needs; only Marks, Elsewhere, Repeats and Moves may be nil.
type Config struct {
	Outbox  Outbox
	Reader  OutboxReader
	Files   Files
	Members *cluster.Membership
	// Connector returns the connector of a name, also one that is stopped; nil where none is
	// configured.
	Connector func(name string) connectors.Connector
	// Active is Connector but for one that is stopped: for that it returns a connectors.StandIn.
	Active func(name string) connectors.Connector
	// Allowed reports whether the receiver of a message may still get it.
	Allowed func(claybot.Outgoing) bool
	// Voice returns how claybot speaks to the reader of a message.
	Voice func(context.Context, claybot.Outgoing) texts.Voice
	// Marks has the dead routes; nil: they are forgotten with the process.
	Marks Marks
	// Elsewhere returns another route of the reader of a message, on which they alone read;
	// nil: there is none.
	Elsewhere func(ctx context.Context, o claybot.Outgoing) (to claybot.Route, ok bool)
	// Repeats reports whether /resend, written where a message went, sends it again; nil: never.
	Repeats Covers
	// Moves says which id a chat has now; nil: that of the route.
	Moves Moves
	Meter Meter
	Log   *slog.Logger
}

// A Deliverer sends what is in the outbox: one lane for each destination, oldest
// message first. A lane lives as long as it has something to send. The methods are
// safe for concurrent use.
//
// A lane holds the claim of its destination. Where other members may store messages, the
// store is its only queue: one of them may have stored what comes first.
type Deliverer struct {
	Routes   *Routes
	Silences *Silences
	Replies  *Replies

	cfg       Config
	addresses addresses
	courier   *courier
	claims    *claims
	idle      chan struct{} // receives when the last lane closes
	kick      chan struct{} // wakes Watch

	mu     sync.Mutex
	ctx    context.Context // of the lanes; nil before Begin
	cancel context.CancelCauseFunc
	lanes  map[string]*lane
	wg     sync.WaitGroup
}

// New returns a Deliverer, which sends nothing before Begin.
func New(cfg Config) *Deliverer {
	a := addresses{connector: cfg.Connector, moves: cfg.Moves}
	d := &Deliverer{
		Routes:    newRoutes(cfg, a),
		Silences:  new(Silences),
		Replies:   &Replies{reader: cfg.Reader, addresses: a},
		cfg:       cfg,
		addresses: a,
		claims:    newClaims(cfg),
		idle:      make(chan struct{}, 1),
		kick:      make(chan struct{}, 1),
		lanes:     make(map[string]*lane),
	}
	d.courier = &courier{
		cfg: cfg, addresses: a, routes: d.Routes, silences: d.Silences, pauses: new(Silences),
		instead: substitutes{cfg: cfg, addresses: a}, slots: make(chan struct{}, sendsAtOnce), stored: d.stored,
	}
	return d
}

// A lane is the queue of one destination.
type lane struct {
	dest    string
	queue   []claybot.Outgoing
	last    int64 // position after which the store is read next
	more    bool  // the store has, or may have, messages behind last
	reading bool  // the store is being read now
	wanted  bool  // another member has stored something since the lane opened
	again   bool  // the connector came after the lane looked for it
	// changed ends the wait of the message in progress: an operator changed it.
	changed chan struct{}

	// The fields below belong to the lane's goroutine, or to the Reservation before it
	// starts.
	hold *cluster.Hold
	// begun is the message that was stored as attempted for this lane, until it is taken;
	// see Reserve.
	begun claybot.Outgoing
	lost  bool // the claim has ended early
	// foreign: another process may have sent to the destination last, so its pause is
	// to be read from the store.
	foreign bool
}

// newLane returns a lane. The caller holds the lock.
func (d *Deliverer) newLane(dest string) *lane {
	return &lane{dest: dest, changed: make(chan struct{}, 1), foreign: d.claims.isForeign(dest)}
}

// rewind makes the lane read the store again from position n, once it has sent what
// comes before.
func (l *lane) rewind(n int64) {
	l.more = true
	if i := slices.IndexFunc(l.queue, func(o claybot.Outgoing) bool { return o.N >= n }); i >= 0 {
		l.queue = l.queue[:i]
	}
	l.last = min(l.last, n-1)
}

// Begin starts the lanes of all messages that are unsent, from an earlier process or
// from before Begin. The lanes end with End, not with ctx.
func (d *Deliverer) Begin(ctx context.Context) error {
	if err := d.Routes.Load(ctx); err != nil {
		return err
	}
	dests, err := d.cfg.Reader.UnsentDests(ctx)
	if err != nil {
		return fmt.Errorf("read the outbox: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.claims.begin()
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

// open starts a lane. The caller holds the lock.
func (d *Deliverer) open(l *lane) {
	d.lanes[l.dest] = l
	ctx := d.ctx
	d.wg.Go(func() { d.run(ctx, l) })
}

// openFor starts a lane that reads the store from the beginning. The caller holds the
// lock.
func (d *Deliverer) openFor(dest string) {
	l := d.newLane(dest)
	l.more = true
	d.open(l)
}

// closeLane removes a lane. The caller holds the lock.
func (d *Deliverer) closeLane(l *lane) {
	delete(d.lanes, l.dest)
	if len(d.lanes) > 0 {
		return
	}
	wake(d.idle)
}

// Hand passes messages that were just stored to their lanes. Callers run concurrently,
// so a message may arrive after a later one, or after its lane has read it from the
// store. Therefore a lane reads the store unless nothing can come between the last
// message that it knows and this one.
func (d *Deliverer) Hand(out []claybot.Outgoing) {
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
			return // the next start reads them from the store
		case l == nil:
			d.openFor(dest)
		default:
			d.add(l, o)
		}
	}
}

// add passes a stored message to its lane. The caller holds the lock.
func (d *Deliverer) add(l *lane, o claybot.Outgoing) {
	if l.more || l.reading || o.N != l.last+1 || len(l.queue) >= laneMemory || d.cfg.Members.Known(o.N) == 0 {
		l.rewind(o.N)
		return
	}
	l.queue, l.last = append(l.queue, o), o.N
}

// Refresh makes the lane of a message read the store again, because an operator
// changed the message there.
func (d *Deliverer) Refresh(o claybot.Outgoing) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.courier.pauses.end(o.Route.Dest()) // who changes a message wants it sent now
	d.reread(o.Route.Dest(), o.N)
}

// reread makes the lane of a destination read the store again from position n. The
// caller holds the lock.
func (d *Deliverer) reread(dest string, n int64) {
	l := d.lanes[dest]
	if l == nil {
		if d.ctx == nil || d.ctx.Err() != nil {
			return // Begin reads it from the store
		}
		d.openFor(dest)
		return
	}
	l.rewind(n)
	wake(l.changed)
}

// stored makes lanes read the notices that committed with the end of an attempt of l.
func (d *Deliverer) stored(l *lane, notices []claybot.Outgoing) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, o := range notices {
		if dest := o.Route.Dest(); dest == l.dest {
			l.more = true
		} else {
			d.reread(dest, 0)
		}
	}
}

// wake makes the receiver of a channel of one element run once more.
func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Look makes the lanes of messages that were just stored read the store.
func (d *Deliverer) Look(out []claybot.Outgoing) {
	d.mu.Lock()
	defer d.mu.Unlock()
	seen := make(map[string]bool)
	for _, o := range out {
		if dest := o.Route.Dest(); !seen[dest] {
			seen[dest] = true
			d.reread(dest, 0) // from the first unsent message
		}
	}
}

// IsBusy reports whether a destination has something to send.
func (d *Deliverer) IsBusy(dest string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lanes[dest] != nil
}

// End waits up to limit for all lanes to empty, cancels the rest with cause, and
// returns when all have ended. Messages that are left are sent after the next Begin.
func (d *Deliverer) End(limit time.Duration, cause error) {
	d.drain(limit)
	d.mu.Lock()
	d.cancel(cause) // under the lock: from here on Hand opens no lane
	d.mu.Unlock()
	d.wg.Wait()
}

func (d *Deliverer) drain(limit time.Duration) {
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

// run sends the messages of one lane until none is left. The lane stays registered
// until it has released its claim, so that the next lane of the destination does not
// use a claim that this one is about to release.
func (d *Deliverer) run(ctx context.Context, l *lane) {
	for {
		held := d.serve(ctx, l)
		d.mu.Lock()
		again := l.again
		if l.again = false; !again && (!held || l.lost) || ctx.Err() != nil || len(l.queue) == 0 && !l.more {
			d.closeLane(l)
			d.mu.Unlock()
			return
		}
		d.mu.Unlock()
	}
}

// serve claims the destination of a lane, unless a Reservation has done so, sends its
// messages, and releases the claim. It returns false if another member is to send.
func (d *Deliverer) serve(life context.Context, l *lane) (held bool) {
	if l.hold == nil {
		l.hold = d.claims.claim(life, l)
	}
	l.lost = false
	if l.hold == nil {
		return false
	}
	ctx, free := l.hold.Context(life)
	defer func() {
		if l.begun.ID != "" {
			(&delivery{courier: d.courier, o: l.begun, lane: l, begun: true}).unmade(ctx)
			l.begun = claybot.Outgoing{}
		}
		free()
		d.yield(life, l)
		l.hold = nil
	}()
	for ctx.Err() == nil && !l.lost {
		o, ok := d.next(ctx, l)
		if !ok {
			return true
		}
		if known := d.courier.deliver(ctx, o, l); !known {
			d.mu.Lock()
			l.rewind(o.N)
			d.mu.Unlock()
		}
	}
	l.lost = l.lost || life.Err() == nil
	return true
}

// next takes the oldest message of a lane; false when there is none.
func (d *Deliverer) next(ctx context.Context, l *lane) (claybot.Outgoing, bool) {
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

// fill reads the messages behind the end of a lane. The caller holds the lock, which
// fill releases while it reads.
func (d *Deliverer) fill(ctx context.Context, l *lane) {
	after := l.last
	l.more, l.reading = false, true
	d.mu.Unlock()
	found, err := d.cfg.Reader.Unsent(ctx, l.dest, after, laneMemory)
	if err != nil && ctx.Err() == nil {
		d.cfg.Log.Error("failed to read the outbox, retrying", "err", err)
		claybot.Sleep(ctx, time.Second)
	}
	d.mu.Lock()
	l.reading = false
	switch {
	case err != nil:
		l.more = true
	case l.last == after && len(found) > 0: // otherwise rewound meanwhile, or at the end
		l.queue, l.last = found, d.cfg.Members.Known(found[len(found)-1].N)
		l.more = l.more || len(found) == laneMemory
	}
}

// Package inbox decides when an agent may start and how many waiting messages
// one run takes.
//
// It guarantees that an agent is held by at most one worker of this process,
// that a change of policy counts for the next decision, and that waiting costs
// neither goroutine nor timer: due times live in the store.
//
// It must not import a store, an engine or a connector.
package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// What a Config means where it says nothing.
const (
	DefaultTTL  = 10 * time.Second
	DefaultPoll = 5 * time.Second
)

// ErrLapsed is the cause with which the work on an agent ends when its lease
// could not be renewed in time: the store did not answer. Whether another member
// holds the agent is unknown; releasing the lease tells.
var ErrLapsed = errors.New("lease could not be renewed in time")

// A CanceledError is the cause with which the work on an agent ends when it is canceled on
// request.
type CanceledError struct{ By string } // user, reset, operator

func (e *CanceledError) Error() string { return "canceled by " + e.By }

// Store is what the inboxes need of the store; see storage.Inbox and storage.Leases.
type Store interface {
	Post(ctx context.Context, p storage.Posting) (storage.Posted, error)
	Acquire(ctx context.Context, node string, ttl time.Duration, limit, batch int) (acquired []storage.Acquired, next time.Time, err error)
	Renew(ctx context.Context, l storage.Lease, ttl time.Duration) (renewed storage.Lease, cancel string, err error)
}

// Config is what New needs. Zero durations mean the defaults.
type Config struct {
	Store Store
	// Node is the id under which agents are held from now on, new for every
	// process. Empty: none are taken at present.
	Node func() string
	// TTL is the length of a lease. It is renewed at a third of it, and trusted no
	// longer than its end less a fifth.
	TTL time.Duration
	// Poll bounds how long a message waits whose wake-up was missed.
	Poll time.Duration
	// Elsewhere fires after d when another member may have made an agent due; see
	// cluster.Membership. nil: there is no other member.
	Elsewhere func(d time.Duration) <-chan time.Time
}

// lookElsewhere is how often Next looks for agents that another member made due.
const lookElsewhere = 2 * time.Second

// Inboxes hands out the agents that are due. It is safe for concurrent use.
type Inboxes struct {
	Config
	wake chan struct{}

	mu   sync.Mutex
	held map[claybot.AgentID]*AgentInbox
}

// New returns the inboxes of one node.
func New(cfg Config) *Inboxes {
	cfg.TTL, cfg.Poll = cmp.Or(cfg.TTL, DefaultTTL), cmp.Or(cfg.Poll, DefaultPoll)
	if cfg.Elsewhere == nil {
		cfg.Elsewhere = func(time.Duration) <-chan time.Time { return nil }
	}
	return &Inboxes{
		Config: cfg,
		wake:   make(chan struct{}, 1),
		held:   make(map[claybot.AgentID]*AgentInbox),
	}
}

func (i *Inboxes) renewal() time.Duration { return i.TTL / 3 }

// Post stores a message, wakes the callers of Next, and ends the run in
// flight when the message asks for that. The message, and the run that it
// begins, belong to the trace of ctx.
func (i *Inboxes) Post(ctx context.Context, p storage.Posting) (storage.Posted, error) {
	if p.Message.Traceparent = cmp.Or(p.Message.Traceparent, claybot.TraceOf(ctx).String()); p.Start != nil {
		p.Start.With.Traceparent = p.Message.Traceparent
	}
	done, err := i.Store.Post(ctx, p)
	if err != nil {
		return done, fmt.Errorf("post %s: %w", p.Message.ID, err)
	}
	if done.Canceled != "" {
		by := cmp.Or(p.By, "user")
		if p.Message.Type == claybot.MessageReset {
			by = "reset"
		}
		i.Cancel(p.To, done.Canceled, by)
	}
	if done.Added && done.Skipped == "" && done.Started == nil || done.Canceled != "" {
		i.Wake()
	}
	return done, nil
}

// Wake makes Next read the store again.
func (i *Inboxes) Wake() {
	select {
	case i.wake <- struct{}{}:
	default:
	}
}

// Cancel ends the work on a run when this node has its agent; an empty run means
// whatever the agent works on. The run's state in the store is the caller's
// affair.
func (i *Inboxes) Cancel(id claybot.AgentID, run claybot.RunID, by string) {
	i.mu.Lock()
	b := i.held[id]
	i.mu.Unlock()
	if b != nil {
		b.cancelRun(run, by)
	}
}

// Busy reports whether this node works on the agent right now.
func (i *Inboxes) Busy(id claybot.AgentID) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.held[id] != nil
}

// Next blocks until agents are due and holds up to limit of them, longest due
// first, each with at most batch waiting messages. The caller closes every
// Box. An error is the store's or ctx's.
func (i *Inboxes) Next(ctx context.Context, limit, batch int) ([]*AgentInbox, error) {
	for {
		began := time.Now()
		var acquired []storage.Acquired
		var next time.Time
		var err error
		if node := i.Node(); node != "" {
			acquired, next, err = i.Store.Acquire(ctx, node, i.TTL, limit, batch)
		}
		if err != nil {
			return nil, fmt.Errorf("acquire agents: %w", err)
		}
		if len(acquired) > 0 {
			boxes := make([]*AgentInbox, len(acquired))
			for k, h := range acquired {
				boxes[k] = i.open(ctx, h, began)
			}
			return boxes, nil
		}
		pause := i.Poll
		if !next.IsZero() {
			pause = min(pause, max(0, time.Until(next)))
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, context.Cause(ctx)
		case <-i.wake:
		case <-timer.C:
		case <-i.Elsewhere(lookElsewhere):
		}
		timer.Stop()
	}
}

// Starting fills in what lets a message begin a run as it is posted, under the present
// id of this node; nil while no agents are taken.
func (i *Inboxes) Starting(run claybot.RunID, with storage.Beginning) *storage.Start {
	node := i.Node()
	if node == "" {
		return nil
	}
	return &storage.Start{Node: node, TTL: i.TTL, Run: run, With: with}
}

// Opened returns the box of an agent whose run began as its message was posted, at a time
// after began.
func (i *Inboxes) Opened(ctx context.Context, a storage.Acquired, began time.Time) *AgentInbox {
	return i.open(ctx, a, began)
}

func (i *Inboxes) open(ctx context.Context, h storage.Acquired, began time.Time) *AgentInbox {
	b := &AgentInbox{Acquired: h, boxes: i}
	b.trust(began)
	// The work outlives the intake: a shutdown stops Next at once and gives
	// runs in flight their grace.
	b.ctx, b.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	b.mu.Lock()
	b.keeper = time.AfterFunc(i.renewal(), b.renew)
	b.mu.Unlock()
	i.mu.Lock()
	old := i.held[h.Lease.Agent]
	i.held[h.Lease.Agent] = b
	i.mu.Unlock()
	if old != nil { // its lease has run out unnoticed
		old.cancel(storage.ErrLeaseLost)
	}
	if i.Node() != h.Lease.Node { // it ended while the store was asked
		b.cancel(ErrLapsed)
	}
	return b
}

// Lapse ends with ErrLapsed the work on agents that are held under another id
// than the present one: the member that they belonged to has left.
func (i *Inboxes) Lapse() {
	node := i.Node()
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, b := range i.held {
		if b.Lease.Node != node {
			b.cancel(ErrLapsed)
		}
	}
}

// End asks all workers to stop with a cause.
func (i *Inboxes) End(cause error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, b := range i.held {
		b.cancel(cause)
	}
}

// Working returns how many agents this member works on.
func (i *Inboxes) Working() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.held)
}

// A AgentInbox is one held agent: its lease, its unfinished run and what waits. Its
// Context ends with a cause when the work is canceled or the lease is lost.
type AgentInbox struct {
	storage.Acquired
	boxes   *Inboxes
	ctx     context.Context
	cancel  context.CancelCauseFunc
	keeper  *time.Timer
	trusted atomic.Pointer[time.Time] // written under mu only

	mu     sync.Mutex // held during a renewal; guards keeper and closed
	closed bool

	runMu  sync.Mutex
	run    claybot.RunID // that the work is on, once it has begun
	wanted claybot.RunID // that was canceled
	by     string        // who
}

// Context is done when the work must end; its cause is a *CanceledError,
// storage.ErrLeaseLost, ErrLapsed, or what End was given.
func (b *AgentInbox) Context() context.Context { return b.ctx }

// Trusted is nil while the lease is trusted, whatever else may have ended the
// work. It looks at the clock, so it is right also in a process that was stopped a
// moment ago. Ask before anything leaves that no token of the store guards.
func (b *AgentInbox) Trusted() error {
	if b.lapsed() {
		b.cancel(ErrLapsed)
		return ErrLapsed
	}
	if cause := context.Cause(b.ctx); errors.Is(cause, ErrLapsed) || errors.Is(cause, storage.ErrLeaseLost) {
		return cause
	}
	return nil
}

func (b *AgentInbox) lapsed() bool { return !time.Now().Before(*b.trusted.Load()) }

// trust prolongs the trust in a lease that was asked for at a time.
func (b *AgentInbox) trust(began time.Time) {
	end := began.Add(b.boxes.TTL - b.boxes.TTL/5)
	b.trusted.Store(&end)
}

// Begun tells which run the work is on. A cancellation names its run, because
// by the time it arrives the agent may be at work on the next one.
func (b *AgentInbox) Begun(run claybot.RunID) {
	b.runMu.Lock()
	defer b.runMu.Unlock()
	b.run = run
	if b.wanted == run {
		b.cancel(&CanceledError{By: b.by})
	}
}

// Working is the run that the work is on; empty before it has begun.
func (b *AgentInbox) Working() claybot.RunID {
	b.runMu.Lock()
	defer b.runMu.Unlock()
	return b.run
}

func (b *AgentInbox) cancelRun(run claybot.RunID, by string) {
	b.runMu.Lock()
	defer b.runMu.Unlock()
	if run == "" || run == b.run {
		b.cancel(&CanceledError{By: by})
		return
	}
	b.wanted, b.by = run, by
}

// renew prolongs the lease and comes back after a third of it. A store that
// does not answer is asked each second until the trust in the lease ends.
func (b *AgentInbox) renew() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	began := time.Now()
	// Work that was told to end still needs its lease until it has ended.
	ctx, cancel := context.WithDeadline(context.WithoutCancel(b.ctx), *b.trusted.Load())
	_, by, err := b.boxes.Store.Renew(ctx, b.Lease, b.boxes.TTL)
	cancel()
	again := b.boxes.renewal()
	switch {
	case err == nil:
		b.trust(began)
	case errors.Is(err, storage.ErrLeaseLost):
		b.cancel(storage.ErrLeaseLost)
		return
	case b.lapsed():
		b.cancel(ErrLapsed)
		return
	default:
		again = min(time.Second, b.boxes.TTL/10, time.Until(*b.trusted.Load()))
	}
	if by != "" {
		b.cancel(&CanceledError{By: by})
	}
	b.keeper.Reset(again)
}

// Close ends the renewals. The lease itself ends with Finish, Settle or
// Release of the store.
func (b *AgentInbox) Close() {
	b.boxes.mu.Lock()
	if b.boxes.held[b.Lease.Agent] == b {
		delete(b.boxes.held, b.Lease.Agent)
	}
	b.boxes.mu.Unlock()
	b.mu.Lock()
	b.closed = true
	b.keeper.Stop()
	b.mu.Unlock()
	b.cancel(context.Canceled)
	b.boxes.Wake()
}

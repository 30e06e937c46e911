package cluster

import (
	"context"
	"errors"
	"sync"
	"time"
)

// The causes with which a term ends.
var (
	// ErrLapsed: the store did not answer in time. Whether other members took over is not
	// known.
	ErrLapsed = errors.New("the membership could not be renewed in time")
	// ErrExpired: the term has expired in the store.
	ErrExpired = errors.New("the membership has expired")
	// ErrLeft: this process has left in order.
	ErrLeft = errors.New("the member has left")
)

// A Term is one stretch of membership. Its methods are safe for concurrent use.
type Term struct {
	id  string
	ctx context.Context
	end context.CancelCauseFunc

	mu      sync.Mutex
	forever bool
	until   time.Time // of trust; has a monotonic reading
	timer   *time.Timer
}

// newTerm is a term that is trusted until a time.
func newTerm(id string, until time.Time) *Term {
	t := &Term{id: id, until: until}
	t.ctx, t.end = context.WithCancelCause(context.Background())
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer = time.AfterFunc(time.Until(until), func() { _ = t.Trusted() })
	return t
}

// endless is the term of a process that is alone.
func endless(id string) *Term {
	t := &Term{id: id, forever: true}
	t.ctx, t.end = context.WithCancelCause(context.Background())
	return t
}

// ID returns the id of the term. It never comes back.
func (t *Term) ID() string { return t.id }

// Context returns a context that is done when the term is over; its cause is ErrLapsed, ErrExpired or
// ErrLeft. What stands on the term derives from it.
func (t *Term) Context() context.Context { return t.ctx }

// Trusted is nil while what the term was given is its own. It looks at the
// clock, so it is right also in a process that was stopped a moment ago. An error
// is the cause with which the term has ended.
func (t *Term) Trusted() error {
	if t.ctx.Err() != nil {
		return context.Cause(t.ctx)
	}
	t.mu.Lock()
	over := !t.forever && !time.Now().Before(t.until)
	t.mu.Unlock()
	if !over {
		return nil
	}
	t.close(ErrLapsed)
	return context.Cause(t.ctx)
}

// prolong moves the end of trust. It does not bring back a term that is over, or
// whose trust ended before it was asked.
func (t *Term) prolong(until time.Time) error {
	if err := t.Trusted(); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.until = until
	t.timer.Reset(time.Until(until))
	return nil
}

// deadline is when trust ends, as it stands.
func (t *Term) deadline() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.until
}

// close ends the term. The first cause counts.
func (t *Term) close(cause error) {
	t.end(cause)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
	}
}

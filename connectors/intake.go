package connectors

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

// A Hooked connector takes requests at a path of its own on claybot's HTTP server, /hooks/ and its
// name. It verifies them itself.
type Hooked interface {
	http.Handler
	Name() string
	// Limit is the largest body that it takes, in bytes; 0 while it takes no request at all.
	Limit() int64
}

// A Refusing connector takes requests of senders that prove who they are, and counts the others.
type Refusing interface {
	Refused() Refusals
}

// Refusals are the requests that a connector has refused since the start. What they said is kept
// nowhere.
type Refusals struct {
	Count int64     `json:"count"`
	Why   string    `json:"why"` // of the last one, a clause
	At    time.Time `json:"at"`  // of the last one
}

// ErrClosed reports that an Intake is closed.
var ErrClosed = errors.New("the connector is starting or stopping")

// An Intake passes requests to the handler of a connector while its Run works, those with the same
// key in the order of their arrival, as Handler requires. The zero value is closed.
type Intake struct {
	mu     sync.Mutex
	h      Handler
	opened bool // at least once
	busy   sync.WaitGroup
	lanes  map[string]*intakeLane // of requests inside, by their key
}

type intakeLane struct {
	turn  chan struct{} // has one element during a request
	users int           // guarded by Intake.mu
}

// Open lets requests through to h.
func (i *Intake) Open(h Handler) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.h, i.opened = h, true
}

// Begun reports whether the intake was ever open.
func (i *Intake) Begun() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.opened
}

// Close lets no further request through and waits for those inside.
func (i *Intake) Close() {
	i.mu.Lock()
	i.h = nil
	i.mu.Unlock()
	i.busy.Wait()
}

// Enter waits for the turn of the key and returns the handler. The error is ErrClosed, or the cause
// of ctx; without one, the caller must call leave after use.
func (i *Intake) Enter(ctx context.Context, key string) (h Handler, leave func(), err error) {
	i.mu.Lock()
	if i.h == nil {
		i.mu.Unlock()
		return nil, nil, ErrClosed
	}
	h = i.h
	i.busy.Add(1)
	lane := i.lanes[key]
	if lane == nil {
		if i.lanes == nil {
			i.lanes = make(map[string]*intakeLane)
		}
		lane = &intakeLane{turn: make(chan struct{}, 1)}
		i.lanes[key] = lane
	}
	lane.users++
	i.mu.Unlock()
	gone := func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		if lane.users--; lane.users == 0 {
			delete(i.lanes, key)
		}
		i.busy.Done()
	}
	select {
	case lane.turn <- struct{}{}:
		return h, func() { <-lane.turn; gone() }, nil
	case <-ctx.Done():
		gone()
		return nil, nil, context.Cause(ctx)
	}
}

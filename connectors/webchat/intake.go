package webchat

import (
	"context"
	"sync"

	"github.com/claybot/claybot/connectors"
)

// A gate passes requests to the handler while the connector runs. The zero
// value is closed.
type gate struct {
	mu     sync.Mutex
	h      connectors.Handler
	opened bool // at least once
	busy   sync.WaitGroup
}

// open lets requests through to h.
func (g *gate) open(h connectors.Handler) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.h, g.opened = h, true
}

// begun reports whether the gate was ever open: from then on readers are
// served.
func (g *gate) begun() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.opened
}

// close closes the gate and waits for requests inside.
func (g *gate) close() {
	g.mu.Lock()
	g.h = nil
	g.mu.Unlock()
	g.busy.Wait()
}

// enter returns the handler, or false if the gate is closed. The caller must
// call leave after use.
func (g *gate) enter() (h connectors.Handler, leave func(), ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.h == nil {
		return nil, nil, false
	}
	g.busy.Add(1)
	return g.h, g.busy.Done, true
}

// lanes serialize posts of each topic in the order of arrival, as Handler
// requires. The zero value is ready to use.
type lanes struct {
	mu   sync.Mutex
	lane map[topic]*lane
}

type lane struct {
	turn  chan struct{} // has one element during a post
	users int           // guarded by lanes.mu
}

// enter waits for the topic's turn. The caller must call leave if err is nil.
func (l *lanes) enter(ctx context.Context, t topic) (leave func(), err error) {
	l.mu.Lock()
	if l.lane == nil {
		l.lane = make(map[topic]*lane)
	}
	ln := l.lane[t]
	if ln == nil {
		ln = &lane{turn: make(chan struct{}, 1)}
		l.lane[t] = ln
	}
	ln.users++
	l.mu.Unlock()
	gone := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if ln.users--; ln.users == 0 {
			delete(l.lane, t)
		}
	}
	select {
	case ln.turn <- struct{}{}:
		return func() { <-ln.turn; gone() }, nil
	case <-ctx.Done():
		gone()
		return nil, context.Cause(ctx)
	}
}

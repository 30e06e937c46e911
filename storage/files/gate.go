package files

import (
	"context"
	"sync"

	"github.com/claybot/claybot"
)

// A gate lets one in at a time. Unlike a mutex it may be held across disk work:
// waiting for it ends with the context.
type gate chan struct{}

func newGate() gate { return make(gate, 1) }

func (g gate) enter(ctx context.Context) error {
	select {
	case g <- struct{}{}:
		return nil
	default:
	}
	select {
	case g <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (g gate) leave() { <-g }

// keyGates has a gate for every identity that somebody waits for.
type keyGates struct {
	mu    sync.Mutex
	gates map[claybot.Descriptor]*keyGate
}

type keyGate struct {
	gate
	users int
}

// enter waits for the gate of d; the caller must call leave.
func (k *keyGates) enter(ctx context.Context, d claybot.Descriptor) (leave func(), err error) {
	d = d.Identity()
	k.mu.Lock()
	g := k.gates[d]
	if g == nil {
		g = &keyGate{gate: newGate()}
		k.gates[d] = g
	}
	g.users++
	k.mu.Unlock()

	forget := func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if g.users--; g.users == 0 {
			delete(k.gates, d)
		}
	}
	if err := g.gate.enter(ctx); err != nil {
		forget()
		return nil, err
	}
	return func() { g.leave(); forget() }, nil
}

package agentsystem

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/storage"
)

// How connectors are held back after unclean starts in a row.
const (
	holdFrom  = 3 // unclean starts
	holdFirst = time.Second
	holdMost  = 30 * time.Second
	proveIn   = 300 * time.Millisecond // in which a connector that was started by itself kills the process, if it does
	blameAt   = 3                      // deaths in a row right after the start of the same connector
	blameMost = 10 * time.Minute
)

// A holding keeps connectors from starting while the process dies in a row. Until
// the first interrupted run has survived, and no longer than 1 s, doubling to 30 s
// with each death, nothing new comes in. What a process dies of meanwhile did not come
// in, so each such death halves that time, until what comes in has been let in again: a
// machine that kills every process early does not keep people out for good. When no run was interrupted, one of the
// connectors may kill the process: they start one by one, each time in another order,
// so that kills from outside do not blame the same one; one that was starting at
// three deaths in a row starts last, after a minute or more.
type holding struct {
	mu   sync.Mutex
	why  map[string]string // by connector
	gate map[string]chan struct{}
}

func newHolding() *holding {
	return &holding{why: make(map[string]string), gate: make(map[string]chan struct{})}
}

// hold closes the gates of connectors.
func (h *holding) hold(why string, names ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, n := range names {
		h.why[n] = why
		if h.gate[n] == nil {
			h.gate[n] = make(chan struct{})
		}
	}
}

// open lets connectors start.
func (h *holding) open(names ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, n := range names {
		if g := h.gate[n]; g != nil {
			close(g)
			delete(h.gate, n)
			delete(h.why, n)
		}
	}
}

// held is why a connector does not start yet; empty when it may.
func (h *holding) held(name string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.why[name]
}

// wait blocks until a connector may start, or ctx is done.
func (h *holding) wait(ctx context.Context, name string) {
	h.mu.Lock()
	gate := h.gate[name]
	h.mu.Unlock()
	if gate == nil {
		return
	}
	select {
	case <-gate:
	case <-ctx.Done():
	}
}

// holdBack decides before they start which connectors are held back, and returns
// what lets them in again; nil when none is held.
func (s *AgentSystem) holdBack(cs []connectors.Connector) func(context.Context) {
	unclean, running := s.Worker.Ramp.Crashes()
	if unclean < holdFrom || len(cs) == 0 {
		return nil
	}
	names := make([]string, len(cs))
	for i, c := range cs {
		names[i] = c.Name()
	}
	slices.Sort(names)
	s.holding.hold(fmt.Sprintf("held back after %d unclean starts in a row", unclean), names...)
	s.Log.Warn("connectors are held back", "uncleanStarts", unclean)
	if running > 0 {
		died := s.Boots.Last().Held
		s.Worker.Ramp.Record(false, func(b *storage.Boot) { b.Held = died + 1 })
		return func(ctx context.Context) {
			timer := time.NewTimer(min(holdFirst<<min(unclean-holdFrom, 10), holdMost) >> min(died, 10))
			defer timer.Stop()
			select {
			case <-s.Worker.Ramp.Proven:
			case <-timer.C:
			case <-ctx.Done():
			}
			s.Worker.Ramp.Record(false, func(b *storage.Boot) { b.Held = max(0, died-1) })
			s.holding.open(names...)
		}
	}
	first := unclean % len(names)
	return func(ctx context.Context) { s.startOneByOne(ctx, slices.Concat(names[first:], names[:first])) }
}

// startOneByOne starts connectors, and records which one is on trial.
func (s *AgentSystem) startOneByOne(ctx context.Context, names []string) {
	last := s.Boots.Last()
	times := last.Blamed + 1 // that the process died with last.Starting
	late := time.Duration(0)
	if last.Starting != "" && times >= blameAt && slices.Contains(names, last.Starting) {
		late = min(time.Minute<<min(times-blameAt, 10), blameMost)
		names = append(slices.DeleteFunc(names, func(n string) bool { return n == last.Starting }), last.Starting)
		s.holding.hold(fmt.Sprintf("held back for %v: claybot died %d times in a row right after it had started", late, times), last.Starting)
		s.Log.Error("a connector kills the process and is held back", "connector", last.Starting, "times", times, "for", late)
	}
	for _, name := range names {
		blamed := 0
		if name == last.Starting {
			blamed = times
			claybot.Sleep(ctx, late)
		}
		if ctx.Err() != nil {
			return
		}
		s.Worker.Ramp.Record(false, func(b *storage.Boot) { b.Starting, b.Blamed = name, blamed })
		s.holding.open(name)
		claybot.Sleep(ctx, proveIn)
	}
	s.Worker.Ramp.Record(false, func(b *storage.Boot) { b.Starting, b.Blamed = "", 0 })
}

// comingBack is nil after an orderly end, and once the process has lived long enough.
func (s *AgentSystem) comingBack() *overview.StartStatus {
	unclean, atOnce, waiting, active := s.Worker.Ramp.Status()
	if !active {
		return nil
	}
	return &overview.StartStatus{Unclean: unclean, AtOnce: atOnce, Waiting: waiting}
}

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
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/worker"
)

// After holdFrom unclean starts in a row, the connectors of this member are held back.
//
// If a run was interrupted, it may be the cause: nothing new comes in until the first
// interrupted run has survived, at most for holdFirst, doubling with each death up to
// holdMost. What kills the process meanwhile did not come in, so each such death halves
// that time: a machine that kills every process early does not keep people out for good.
//
// If none was, one of the connectors may be the cause: they start one by one, each time
// in another order, so that kills from outside do not blame the same one. One that had
// just started at blameAt deaths in a row starts last, after a minute or more.
const (
	holdFrom  = 3
	holdFirst = time.Second
	holdMost  = 30 * time.Second
	proveIn   = 300 * time.Millisecond // in which a connector kills the process, if it does
	blameAt   = 3
	blameMost = 10 * time.Minute
)

// A holding keeps one connector from starting.
type holding struct {
	why  string
	over chan struct{} // closed when the connector may start
}

// A holdback keeps connectors from starting after crashes.
type holdback struct {
	recovery *worker.Recovery
	boot     *worker.BootRecord
	boots    storage.Boots
	log      *slog.Logger

	mu   sync.Mutex
	held map[string]*holding // by connector
}

// hold keeps connectors from starting.
func (h *holdback) hold(why string, names ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, n := range names {
		if h.held[n] == nil {
			h.held[n] = &holding{over: make(chan struct{})}
		}
		h.held[n].why = why
	}
}

// release lets connectors start.
func (h *holdback) release(names ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, n := range names {
		if x := h.held[n]; x != nil {
			close(x.over)
			delete(h.held, n)
		}
	}
}

// Held is overview.Parts.Held.
func (h *holdback) Held(name string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if x := h.held[name]; x != nil {
		return x.why
	}
	return ""
}

// await blocks until a connector may start, or ctx is done.
func (h *holdback) await(ctx context.Context, name string) {
	h.mu.Lock()
	x := h.held[name]
	h.mu.Unlock()
	if x == nil {
		return
	}
	select {
	case <-x.over:
	case <-ctx.Done():
	}
}

// holdBack decides before they start which connectors are held back, and returns what
// releases them; nil when none is held.
func (h *holdback) holdBack(cs []connectors.Connector) (release func(context.Context)) {
	unclean, running := h.recovery.Crashes()
	if unclean < holdFrom || len(cs) == 0 {
		return nil
	}
	names := make([]string, len(cs))
	for i, c := range cs {
		names[i] = c.Name()
	}
	slices.Sort(names)
	h.hold(fmt.Sprintf("held back after %d unclean starts in a row", unclean), names...)
	h.log.Warn("connectors held back", "uncleanStarts", unclean)
	if running == 0 {
		first := unclean % len(names)
		return func(ctx context.Context) { h.startOneByOne(ctx, slices.Concat(names[first:], names[:first])) }
	}
	died := h.boots.Last().Held
	h.boot.Record(false, func(b *storage.Boot) { b.Held = died + 1 })
	return func(ctx context.Context) {
		timer := time.NewTimer(min(holdFirst<<min(unclean-holdFrom, 10), holdMost) >> min(died, 10))
		defer timer.Stop()
		select {
		case <-h.recovery.Proven:
		case <-timer.C:
		case <-ctx.Done():
		}
		h.boot.Record(false, func(b *storage.Boot) { b.Held = max(0, died-1) })
		h.release(names...)
	}
}

// startOneByOne starts connectors, and records which one is on trial.
func (h *holdback) startOneByOne(ctx context.Context, names []string) {
	last := h.boots.Last()
	times := last.Blamed // that the process died with last.Starting
	if !last.Forced {
		times++
	}
	late := time.Duration(0)
	if last.Starting != "" && times >= blameAt && slices.Contains(names, last.Starting) {
		late = min(time.Minute<<min(times-blameAt, 10), blameMost)
		names = append(slices.DeleteFunc(names, func(n string) bool { return n == last.Starting }), last.Starting)
		h.hold(fmt.Sprintf("held back for %v: claybot died %d times in a row right after it had started", late, times), last.Starting)
		h.log.Error("connector crashes the process; held back", "connector", last.Starting, "times", times, "for", late)
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
		h.boot.Record(false, func(b *storage.Boot) { b.Starting, b.Blamed = name, blamed })
		h.release(name)
		claybot.Sleep(ctx, proveIn)
	}
	h.boot.Record(false, func(b *storage.Boot) { b.Starting, b.Blamed = "", 0 })
}

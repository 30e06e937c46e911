package agentsystem

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

// After holdFrom unclean starts in a row, a supervisor holds its connectors back.
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

// hold keeps connectors from starting.
func (s *supervisor) hold(why string, names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range names {
		if s.held[n] == nil {
			s.held[n] = &holding{over: make(chan struct{})}
		}
		s.held[n].why = why
	}
}

// release lets connectors start.
func (s *supervisor) release(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range names {
		if h := s.held[n]; h != nil {
			close(h.over)
			delete(s.held, n)
		}
	}
}

// Held implements overview.Connectors.
func (s *supervisor) Held(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.held[name]; h != nil {
		return h.why
	}
	return ""
}

// await blocks until a connector may start, or ctx is done.
func (s *supervisor) await(ctx context.Context, name string) {
	s.mu.Lock()
	h := s.held[name]
	s.mu.Unlock()
	if h == nil {
		return
	}
	select {
	case <-h.over:
	case <-ctx.Done():
	}
}

// holdBack decides before they start which connectors are held back, and returns what
// releases them; nil when none is held.
func (s *supervisor) holdBack(cs []connectors.Connector) (release func(context.Context)) {
	unclean, running := s.recovery.Crashes()
	if unclean < holdFrom || len(cs) == 0 {
		return nil
	}
	names := make([]string, len(cs))
	for i, c := range cs {
		names[i] = c.Name()
	}
	slices.Sort(names)
	s.hold(fmt.Sprintf("held back after %d unclean starts in a row", unclean), names...)
	s.log.Warn("connectors held back", "uncleanStarts", unclean)
	if running == 0 {
		first := unclean % len(names)
		return func(ctx context.Context) { s.startOneByOne(ctx, slices.Concat(names[first:], names[:first])) }
	}
	died := s.boots.Last().Held
	s.boot.Record(false, func(b *storage.Boot) { b.Held = died + 1 })
	return func(ctx context.Context) {
		timer := time.NewTimer(min(holdFirst<<min(unclean-holdFrom, 10), holdMost) >> min(died, 10))
		defer timer.Stop()
		select {
		case <-s.recovery.Proven:
		case <-timer.C:
		case <-ctx.Done():
		}
		s.boot.Record(false, func(b *storage.Boot) { b.Held = max(0, died-1) })
		s.release(names...)
	}
}

// startOneByOne starts connectors, and records which one is on trial.
func (s *supervisor) startOneByOne(ctx context.Context, names []string) {
	last := s.boots.Last()
	times := last.Blamed + 1 // that the process died with last.Starting
	late := time.Duration(0)
	if last.Starting != "" && times >= blameAt && slices.Contains(names, last.Starting) {
		late = min(time.Minute<<min(times-blameAt, 10), blameMost)
		names = append(slices.DeleteFunc(names, func(n string) bool { return n == last.Starting }), last.Starting)
		s.hold(fmt.Sprintf("held back for %v: claybot died %d times in a row right after it had started", late, times), last.Starting)
		s.log.Error("connector crashes the process; held back", "connector", last.Starting, "times", times, "for", late)
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
		s.boot.Record(false, func(b *storage.Boot) { b.Starting, b.Blamed = name, blamed })
		s.release(name)
		claybot.Sleep(ctx, proveIn)
	}
	s.boot.Record(false, func(b *storage.Boot) { b.Starting, b.Blamed = "", 0 })
}

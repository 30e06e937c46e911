package agentsystem

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claybot/claybot/connectors"
)

// replaceTime is how long Replace waits for connectors to end.
const replaceTime = 10 * time.Second

// errReplaced ends the Run of a connector that another one replaces, or that is gone.
var errReplaced = errors.New("the connector is replaced or removed")

// A tenure is the time for which a connector works under its name.
type tenure struct {
	connector connectors.Connector
	former    []*tenure              // that end first
	behind    atomic.Pointer[tenure] // the one of former that it waits for; nil for none
	came      time.Time              // when it took the place of a connector that worked, or of none; zero: neither
	end       context.CancelCauseFunc
	ended     chan struct{} // closed when its Run has returned
}

// runAll runs the connectors until ctx is done, and returns when all have ended.
func (s *supervisor) runAll(ctx context.Context, h connectors.Handler) {
	var working sync.WaitGroup
	s.mu.Lock()
	s.begin = func(t *tenure) {
		mine, end := context.WithCancelCause(ctx)
		t.end = end
		working.Go(func() {
			defer close(t.ended)
			defer end(nil)
			for _, f := range t.former {
				t.behind.Store(f)
				<-f.ended // also when this one is to end: the next one waits for it
			}
			t.behind.Store(nil)
			t.former = nil
			if mine.Err() != nil {
				return
			}
			if pooled, is := t.connector.(connectors.Pooled); is {
				pooled.Wake()
				defer pooled.CloseIdleConnections()
			}
			s.run(mine, t.connector, h)
		})
	}
	for name, c := range s.connectors {
		s.tenure(name, c, nil, time.Time{})
	}
	s.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock()
	s.begin = nil // from here on none is added
	s.mu.Unlock()
	working.Wait()
}

// isOver reports whether the connector has ended.
func (t *tenure) isOver() bool {
	select {
	case <-t.ended:
		return true
	default:
		return false
	}
}

// over waits until the connector has ended; false if ctx is done first.
func (t *tenure) over(ctx context.Context) bool {
	select {
	case <-t.ended:
		return true
	case <-ctx.Done():
		return false
	}
}

// tenure begins one, when those before it have ended; came as in tenure. The caller holds the lock.
func (s *supervisor) tenure(name string, c connectors.Connector, former []*tenure, came time.Time) {
	if s.begin == nil {
		return
	}
	if t := s.tenures[name]; t != nil {
		former = append(slices.Clip(former), t)
	}
	t := &tenure{connector: c, former: former, came: came, ended: make(chan struct{})}
	s.tenures[name] = t
	s.begin(t)
}

// fresh is Fresh for a caller that holds the lock.
func (s *supervisor) fresh(name string) bool {
	t := s.tenures[name]
	return t != nil && !t.came.IsZero() && time.Since(t.came) < connectors.LiveWithin
}

// follows says which former connector one waits for; empty for none.
func (s *supervisor) follows(name string) string {
	s.mu.Lock()
	t := s.tenures[name]
	s.mu.Unlock()
	if t == nil {
		return ""
	}
	former := t.behind.Load()
	if former == nil || former.isOver() {
		return ""
	}
	return fmt.Sprintf("it waits for the former connector %s to end", former.connector.Name())
}

// unwell returns the names of the connectors that do not work: what takes their place has yet to show
// that it does.
func (s *supervisor) unwell() map[string]bool {
	all := make(map[string]bool)
	for _, c := range s.All() {
		h := c.Health()
		all[c.Name()] = h.State == connectors.StateStopped || h.Lapsed() || h.State != connectors.StateStandby && h.LastOK.IsZero() && !s.Fresh(c.Name())
	}
	return all
}

// replace is AgentSystem.Replace. It returns the names that have another connector now.
func (s *supervisor) replace(ctx context.Context, cs []connectors.Connector) (changed []string) {
	s.replacing <- struct{}{}
	defer func() { <-s.replacing }()
	next := make(map[string]connectors.Connector, len(cs))
	for _, c := range cs {
		next[c.Name()] = c
	}
	unwell := s.unwell()
	s.mu.Lock()
	s.running = true // these are the connectors, whatever Run is called with
	var ending []*tenure
	for name, was := range s.connectors {
		if next[name] == was {
			continue
		}
		if t := s.tenures[name]; t != nil {
			t.end(errReplaced)
			ending = append(ending, t)
		}
		if next[name] == nil {
			delete(s.connectors, name)
			s.standby.over(name)
		}
	}
	s.mu.Unlock()
	wait, cancel := context.WithTimeout(ctx, replaceTime)
	defer cancel()
	for _, t := range ending {
		if !t.over(wait) && ctx.Err() == nil {
			s.log.Warn("connector does not end", "connector", t.connector.Name())
		}
	}
	s.alarms.drop(ending)
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, t := range s.tenures {
		if next[name] == nil && t.isOver() {
			delete(s.tenures, name)
		}
	}
	for name, c := range next {
		if s.connectors[name] != c {
			came := time.Time{}
			if !unwell[name] {
				came = time.Now()
			}
			s.connectors[name] = c
			s.standby.over(name)
			s.tenure(name, c, ending, came)
			changed = append(changed, name)
		}
	}
	return changed
}

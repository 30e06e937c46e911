package agentsystem

import (
	"context"
	"errors"
	"slices"
	"sync"
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
	former    []*tenure // that end first
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
				<-f.ended // also when this one is to end: the next one waits for it
			}
			t.former = nil
			if mine.Err() == nil {
				s.run(mine, t.connector, h)
			}
		})
	}
	for name, c := range s.connectors {
		s.tenure(name, c, nil)
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

// tenure begins one, when those before it have ended. The caller holds the lock.
func (s *supervisor) tenure(name string, c connectors.Connector, former []*tenure) {
	if s.begin == nil {
		return
	}
	if t := s.tenures[name]; t != nil {
		former = append(slices.Clip(former), t)
	}
	t := &tenure{connector: c, former: former, ended: make(chan struct{})}
	s.tenures[name] = t
	s.begin(t)
}

// replace is AgentSystem.Replace. It returns the names that have another connector now.
func (s *supervisor) replace(ctx context.Context, cs []connectors.Connector) (changed []string) {
	s.replacing <- struct{}{}
	defer func() { <-s.replacing }()
	next := make(map[string]connectors.Connector, len(cs))
	for _, c := range cs {
		next[c.Name()] = c
	}
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
			delete(s.holders, name)
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
			s.connectors[name] = c
			delete(s.holders, name)
			s.tenure(name, c, ending)
			changed = append(changed, name)
		}
	}
	return changed
}

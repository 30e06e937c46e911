package agentsystem

import (
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// silences are the times until which platforms asked not to be written to, by
// scope: a destination or a whole connector. The zero value is ready.
type silences struct {
	mu    sync.Mutex
	until map[string]time.Time
}

// keep holds a scope silent until a time, or longer if it is so already.
func (s *silences) keep(scope string, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.until == nil {
		s.until = make(map[string]time.Time)
	}
	if until.After(s.until[scope]) {
		s.until[scope] = until
	}
}

// obey notes the silence that a refusal asks for on a route and says when it
// ends.
func (s *silences) obey(r claybot.Route, e *connectors.RetryError) time.Time {
	end := time.Now().Add(max(e.After, shortestSilence))
	scope := r.Dest()
	if e.All {
		scope = r.Connector
	}
	s.keep(scope, end)
	return end
}

// over is when a route may be written to; a past time means now.
func (s *silences) over(r claybot.Route) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	var last time.Time
	for _, scope := range []string{r.Connector, r.Dest()} {
		end, ok := s.until[scope]
		switch {
		case !ok:
		case !end.After(time.Now()):
			delete(s.until, scope)
		case end.After(last):
			last = end
		}
	}
	return last
}

package delivery

import (
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// Silences are the times until which platforms asked for no further messages, by
// scope: a destination or a whole connector. The zero value is ready to use.
type Silences struct {
	mu    sync.Mutex
	until map[string]time.Time
}

// keep silences a scope until a time; a later time that is known already stays.
func (s *Silences) keep(scope string, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.until == nil {
		s.until = make(map[string]time.Time)
	}
	if until.After(s.until[scope]) {
		s.until[scope] = until
	}
}

// end ends the silence of a scope.
func (s *Silences) end(scope string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.until, scope)
}

// Obey records the silence that a refusal asks for on a route, or for its whole connector, and
// returns when it ends. Call it after a send outside the outbox was refused as well.
func (s *Silences) Obey(r claybot.Route, e *connectors.RetryError) time.Time {
	end := time.Now().Add(max(e.After, MinSilence))
	scope := r.Dest()
	if e.All {
		scope = r.Connector
	}
	s.keep(scope, end)
	return end
}

// Until returns when a route may be written to; a time in the past means now.
func (s *Silences) Until(r claybot.Route) time.Time {
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

package inbox

import "sync"

// A Signal wakes all its waiters. The zero value is ready.
type Signal struct {
	mu sync.Mutex
	ch chan struct{}
}

// Next is closed when the signal is raised next.
func (s *Signal) Next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

// Raise wakes all who wait for it.
func (s *Signal) Raise() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}

package agentsystem

import "sync"

// A signal wakes all who wait for it. The zero value is ready.
type signal struct {
	mu sync.Mutex
	ch chan struct{}
}

// next is closed when the signal is raised next.
func (s *signal) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

func (s *signal) raise() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}

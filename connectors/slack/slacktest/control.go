package slacktest

import (
	"encoding/json"
	"sort"
	"time"
)

// Disconnect tells all open sockets to leave and closes them after linger;
// until then they get envelopes like any other.
func (s *Server) Disconnect(reason string, linger time.Duration) {
	b, _ := json.Marshal(answer{"type": "disconnect", "reason": reason, "debug_info": answer{"host": "applink-1"}}) // strings always marshal
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.sockets {
		c.put(b)
		time.AfterFunc(linger, func() { c.put(nil) })
	}
}

// Frame sends raw bytes on all open sockets.
func (s *Server) Frame(data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.sockets {
		c.put(data)
	}
}

// Freeze makes all open sockets half-open: nothing comes out of them any more,
// and what goes in is lost.
func (s *Server) Freeze() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.sockets {
		c.mu.Lock()
		c.frozen = true
		c.mu.Unlock()
	}
}

// Cut closes all open sockets without a word.
func (s *Server) Cut() {
	s.mu.Lock()
	sockets := append([]*socket(nil), s.sockets...)
	s.mu.Unlock()
	for _, c := range sockets {
		c.close()
	}
}

// Down makes Slack unreachable: it closes all sockets and answers every call
// with 503, until it is up again.
func (s *Server) Down(down bool) {
	s.mu.Lock()
	s.down = down
	s.mu.Unlock()
	if down {
		s.Cut()
	}
}

func (s *Server) isDown() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.down
}

// Acks returns the acknowledgements in the order in which they arrived.
func (s *Server) Acks() []Ack {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Ack(nil), s.acks...)
}

// Unacked returns the ids of envelopes without an acknowledgement.
func (s *Server) Unacked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []string
	for _, e := range s.unacked() {
		ids = append(ids, e.id)
	}
	return ids
}

// unacked are the envelopes without an acknowledgement, oldest first. The lock
// is held.
func (s *Server) unacked() []*envelope {
	var all []*envelope
	for _, e := range s.open {
		all = append(all, e)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].id < all[j].id })
	return all
}

// Traffic returns the counts so far.
func (s *Server) Traffic() Traffic {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.traffic
	if !s.zero.IsZero() {
		t.Gap += time.Since(s.zero)
	}
	return t
}

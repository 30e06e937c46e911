package postgrestest

import (
	"net"
	"sync"
	"testing"
	"time"
)

// No process of a server goes on that is frozen while clients connect: not the one
// either that was being made at that moment.
func TestFreezeWhileClientsCome(t *testing.T) {
	s := New(t, Config{Fast: true})
	for range 20 {
		freezeWhileClientsCome(t, s)
	}
}

func freezeWhileClientsCome(t *testing.T, s *Server) {
	t.Helper()
	const each = 10
	var clients sync.WaitGroup
	connected := make(chan net.Conn, 4*each) // they stay, and so does who serves them
	for range 4 {
		clients.Go(func() {
			for range each {
				c, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.Addr())
				if err != nil {
					t.Error(err)
				}
				connected <- c // nil counts, too
			}
		})
	}
	for range each { // some are served, others about to be
		if c := <-connected; c != nil {
			defer c.Close()
		}
	}
	if err := s.Freeze(); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for begun := time.Now(); ; <-tick.C {
		left := s.going()
		if len(left) == 0 {
			break
		}
		if time.Since(begun) > patience {
			t.Errorf("processes %v go on", left)
			break
		}
	}
	if err := s.Thaw(); err != nil {
		t.Fatal(err)
	}
	clients.Wait()
	close(connected)
	for c := range connected {
		if c != nil {
			_ = c.Close() // the server sees an end
		}
	}
}

// going are the processes of the server that do not stand still.
func (s *Server) going() (pids []int) {
	for _, pid := range append(children(s.PID()), s.PID()) {
		if state, _ := status(pid); state == "R" || state == "S" || state == "D" {
			pids = append(pids, pid)
		}
	}
	return pids
}

package web

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// maxConns is the maximum number of connections. Further ones wait, so that the
// rest of the process has file descriptors.
const maxConns = 2048

// A limit is a listener with a limited number of connections. While it is full, it
// closes connections that wait for a request, so that nobody who only holds
// connections open keeps others out.
type limit struct {
	net.Listener
	seats  chan struct{} // one for each connection
	closed chan struct{}
	close  func()

	mu sync.Mutex
	// idle are the connections without a request under way, by when that began.
	idle map[*seated]time.Time
	full bool // Accept waits for a seat
}

// limited makes a listener accept the next connection only while it has fewer
// than n. The others wait in the system's queue.
func limited(l net.Listener, n int) *limit {
	closed := make(chan struct{})
	return &limit{
		Listener: l, seats: make(chan struct{}, n), closed: closed,
		close: sync.OnceFunc(func() { close(closed) }), idle: make(map[*seated]time.Time),
	}
}

// Accept implements net.Listener.
func (l *limit) Accept() (net.Conn, error) {
	if err := l.sit(); err != nil {
		return nil, err
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.seats
		return nil, err
	}
	s := &seated{Conn: c}
	if at, err := netip.ParseAddrPort(c.RemoteAddr().String()); err == nil {
		s.peer = at.Addr()
	}
	s.leave = sync.OnceFunc(func() {
		l.mu.Lock()
		delete(l.idle, s)
		l.mu.Unlock()
		<-l.seats
	})
	return s, nil
}

// sit waits for a seat.
func (l *limit) sit() error {
	select {
	case l.seats <- struct{}{}:
		return nil
	default:
	}
	l.setFull(true)
	defer l.setFull(false)
	select {
	case l.seats <- struct{}{}:
		return nil
	case <-l.closed:
		return net.ErrClosed
	}
}

func (l *limit) setFull(full bool) {
	l.mu.Lock()
	l.full = full
	l.mu.Unlock()
	if full {
		l.makeRoom()
	}
}

// watch is the ConnState of the server of this listener.
func (l *limit) watch(c net.Conn, state http.ConnState) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	s, ok := c.(*seated)
	if !ok {
		return
	}
	l.mu.Lock()
	waits := state == http.StateNew || state == http.StateIdle
	if waits {
		l.idle[s] = time.Now()
	} else {
		delete(l.idle, s)
	}
	full := l.full
	l.mu.Unlock()
	if waits && full {
		l.makeRoom()
	}
}

// makeRoom closes one connection without a request: of the address that has the most of
// them, the one that has waited the longest.
func (l *limit) makeRoom() {
	l.mu.Lock()
	count := make(map[netip.Addr]int)
	for s := range l.idle {
		count[s.peer]++
	}
	var out *seated
	for s, since := range l.idle {
		if out == nil || count[s.peer] > count[out.peer] || count[s.peer] == count[out.peer] && since.Before(l.idle[out]) {
			out = s
		}
	}
	l.mu.Unlock()
	if out != nil {
		_ = out.Close() // the server notices
	}
}

// Close implements net.Listener. Connections go on.
func (l *limit) Close() error {
	l.close()
	return l.Listener.Close()
}

type seated struct {
	net.Conn
	peer  netip.Addr
	leave func()
}

// Close implements net.Conn.
func (c *seated) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// CloseWrite lets the server finish a response that the client still has to
// read.
func (c *seated) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

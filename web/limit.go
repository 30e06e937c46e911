package web

import (
	"net"
	"sync"
)

// maxConns is the maximum number of connections. Further ones wait, so that the
// rest of the process has file descriptors.
const maxConns = 2048

// A limit is a listener with a limited number of connections.
type limit struct {
	net.Listener
	seats  chan struct{} // one for each connection
	closed chan struct{}
	close  func()
}

// limited makes a listener accept the next connection only while it has fewer
// than n. The others wait in the system's queue.
func limited(l net.Listener, n int) net.Listener {
	closed := make(chan struct{})
	return &limit{l, make(chan struct{}, n), closed, sync.OnceFunc(func() { close(closed) })}
}

// Accept implements net.Listener.
func (l *limit) Accept() (net.Conn, error) {
	select {
	case l.seats <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.seats
		return nil, err
	}
	return &seated{c, sync.OnceFunc(func() { <-l.seats })}, nil
}

// Close implements net.Listener. Connections go on.
func (l *limit) Close() error {
	l.close()
	return l.Listener.Close()
}

type seated struct {
	net.Conn
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

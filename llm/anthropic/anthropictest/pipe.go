package anthropictest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// Pipe serves on connections in memory, which also work where time is
// simulated. dial opens one, whatever the address; stop ends all of them and
// returns when nothing runs any more.
func (s *Server) Pipe() (dial func(ctx context.Context, network, addr string) (net.Conn, error), stop func()) {
	l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	srv := &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(l) // ends with stop
	}()
	return l.dial, func() {
		_ = srv.Close() // no caller is left to report an error to
		<-done
	}
}

type pipeListener struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

var errClosed = errors.New("anthropictest: closed")

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, errClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, errClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "anthropictest", Net: "pipe"} }

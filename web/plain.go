package web

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// plainConns is the maximum number of connections of a Plain.
const plainConns = 64

// A Plain serves one handler at an address of its own, without encryption and without a
// token.
type Plain struct {
	Addr    string
	Handler http.Handler
	// What names the listener, Setting the setting of Addr, and Example is a good value of
	// it, for operators.
	What, Setting, Example string
	Log                    *slog.Logger

	problem atomic.Pointer[string]
}

// Problem returns why Run does not listen at present, with the next step; empty while it
// does, and before Run.
func (p *Plain) Problem() string {
	if s := p.problem.Load(); s != nil {
		return *s
	}
	return ""
}

// Run serves until ctx is done and returns the cause. It retries while the port is in use.
func (p *Plain) Run(ctx context.Context) error {
	for {
		l, err := new(net.ListenConfig).Listen(ctx, network(p.Addr), p.Addr)
		if err == nil {
			p.problem.Store(nil)
			p.Log.Info("listener started", "addr", l.Addr().String())
			err = serve(ctx, limited(l, plainConns), p.Handler, nil, p.Log, shutdownWait)
		}
		if err != nil && ctx.Err() == nil {
			sentence := listenSentence(p.What, p.Setting, p.Addr, p.Example, err)
			if sentence != p.Problem() {
				p.Log.Error("listener not available, retrying", "problem", sentence)
			}
			p.problem.Store(&sentence)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(retryListen):
		}
	}
}

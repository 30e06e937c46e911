package web

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

// ErrLoggedOut is the cause with which the context of a request ends when the
// session or token that it came with has ended: revoked, rotated, expired or
// logged out.
var ErrLoggedOut = errors.New("the login has ended")

// A pass is the right to make one request.
type pass struct {
	Caller
	until time.Time     // when the credential ends by itself; zero: never
	leave func()        // to be called when the request has ended
	wait  time.Duration // until the rate of the token allows the next request; 0: it allows this one
	spend bool          // the token has a budget
	full  bool          // too many requests are under way for one that takes long
}

// maxRequests is how many requests may be under way with one credential; most
// of so many are streams. Each takes a file descriptor, which others need too.
const maxRequests = 256

type holders map[string]map[*holder]struct{}

type holder struct{ end context.CancelCauseFunc }

func (u holders) end(key string) {
	for h := range u[key] {
		h.end(ErrLoggedOut)
	}
}

// enter registers a request in its pass, unless there are too many; mu is held, and
// leave takes it.
func (u holders) enter(mu *sync.Mutex, p pass, key string, end context.CancelCauseFunc) pass {
	if len(u[key]) >= maxRequests {
		p.full, p.leave = true, func() {}
		return p
	}
	h := &holder{end}
	if u[key] == nil {
		u[key] = make(map[*holder]struct{})
	}
	u[key][h] = struct{}{}
	p.leave = func() {
		mu.Lock()
		defer mu.Unlock()
		delete(u[key], h)
		if len(u[key]) == 0 {
			delete(u, key)
		}
	}
	return p
}

// bound serves a request for as long as its credential is valid. When it ends, nothing
// more is written and the connection is closed.
func bound(next http.Handler, w http.ResponseWriter, r *http.Request, until time.Time) {
	ctx := r.Context()
	if !until.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, until, ErrLoggedOut)
		defer cancel()
	}
	c := &cutter{
		ResponseWriter: w, rc: http.NewResponseController(w),
		ended: func() bool { return errors.Is(context.Cause(ctx), ErrLoggedOut) },
	}
	stop := context.AfterFunc(ctx, c.cut)
	defer c.done()
	defer stop()
	next.ServeHTTP(c, r.WithContext(ctx))
	if c.ended() {
		panic(http.ErrAbortHandler) // the server's way to close a connection
	}
}

// A cutter is a response that ends with the credential of its request.
type cutter struct {
	http.ResponseWriter
	rc    *http.ResponseController
	ended func() bool // whether the credential has

	mu   sync.Mutex
	over bool // the handler has returned: the response is not ours any more
}

// cut ends a read or a write that waits for a slow client.
func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || !c.ended() {
		return
	}
	// Without deadlines a slow client is TCP's affair.
	_ = c.rc.SetWriteDeadline(time.Unix(1, 0))
	_ = c.rc.SetReadDeadline(time.Unix(1, 0))
}

func (c *cutter) done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
}

func (c *cutter) Write(b []byte) (int, error) {
	if c.ended() {
		return 0, ErrLoggedOut
	}
	return c.ResponseWriter.Write(b)
}

// Flush and FlushError send what was written.
func (c *cutter) Flush() { _ = c.FlushError() } // the interface has no error

// FlushError is Flush with its error.
func (c *cutter) FlushError() error {
	if c.ended() {
		return ErrLoggedOut
	}
	return c.rc.Flush()
}

// SetWriteDeadline and SetReadDeadline are for streams, which outlast the
// server's own limits; they cannot outlast the credential.
func (c *cutter) SetWriteDeadline(t time.Time) error { return c.deadline(c.rc.SetWriteDeadline, t) }

// SetReadDeadline is like SetWriteDeadline.
func (c *cutter) SetReadDeadline(t time.Time) error { return c.deadline(c.rc.SetReadDeadline, t) }

func (c *cutter) deadline(set func(time.Time) error, t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended() {
		return ErrLoggedOut
	}
	return set(t)
}

// Unwrap is for http.ResponseController.
func (c *cutter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

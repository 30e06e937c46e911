package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/claybot/claybot/web"
)

// errGone: the client disconnected before the response.
var errGone = errors.New("the client is gone")

// A longAnswer is the connection to a client that waits for one JSON value. Proxies drop a
// connection that is silent for a minute, so claybot sends spaces, which JSON allows
// before a value. The first space sends status 200: from then on the value itself must
// carry any error.
type longAnswer struct {
	sink
	r    *http.Request
	kept bool // the status is sent
}

// until calls work and keeps the connection alive until it returns. If the client
// disconnects, it cancels work and returns errGone.
func (l *longAnswer) until(every time.Duration, work func(context.Context) error) error {
	ctx, cancel := context.WithCancel(l.r.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- work(ctx) }()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-tick.C:
			if !l.kept {
				l.kept = true
				l.head(http.StatusOK)
			}
			if err := l.send([]byte("\n")); err != nil {
				cancel()
				<-done //nolint:errcheck // the client disconnected
				return errGone
			}
		}
	}
}

func (l *longAnswer) head(status int) {
	h := l.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // proxies
	l.w.WriteHeader(status)
}

// end sends the value. It returns nil once all of it was written. status has no effect if
// one was sent already.
func (l *longAnswer) end(status int, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	b = append(b, '\n')
	if !l.kept {
		l.w.Header().Set("Content-Length", strconv.Itoa(len(b)))
		l.head(status)
	}
	if err := l.send(b); err != nil {
		return err
	}
	return context.Cause(l.r.Context())
}

// whole returns the final reply of the run as one JSON value.
func (c *completer) whole(w http.ResponseWriter, r *http.Request) error {
	line := &longAnswer{sink: sink{w, http.NewResponseController(w)}, r: r}
	if err := c.out.begin(c.got.Run, nil); err != nil {
		return err
	}
	var end ending
	err := line.until(c.completions.keepAlive, func(ctx context.Context) (err error) {
		end, err = c.follow(ctx, false)
		return err
	})
	switch {
	case line.kept && (r.Context().Err() != nil || errors.Is(err, errGone)):
		panic(http.ErrAbortHandler) // a connected client retries and gets the answer
	case err == nil:
		c.deliver(line, http.StatusOK, c.out.whole(end, nil), true)
		return nil
	}
	p := problemOf(c.completions.log, r, operation{id: "createCompletion", missing: noModel}, err)
	advise(p, w.Header(), true)
	answer := any(likeOpenAI(p))
	if line.kept {
		answer = c.out.whole(end, p)
	}
	c.deliver(line, p.Status, answer, p.Ended)
	return nil
}

// deliver sends the answer to a request. final is set unless a retry may get another one.
func (c *completer) deliver(line *longAnswer, status int, answer any, final bool) {
	if final {
		c.repeat.answered(line.r.Context())
	}
	if err := line.end(status, answer); err != nil {
		c.repeat.unanswered(line.r.Context())
		c.completions.log.Debug("completion not delivered", "run", c.got.Run, "request", web.RequestID(line.r.Context()), "err", err)
		panic(http.ErrAbortHandler)
	}
	c.repeat.delivered(line.r.Context())
}

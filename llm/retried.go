package llm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"
)

const (
	maxTries   = 3
	minBackoff = 500 * time.Millisecond
	maxBackoff = 8 * time.Second
)

// MaxRetryAfter is the longest wait between two tries of a call: what a provider asks for beyond it is the caller's business.
const MaxRetryAfter = time.Minute

// Retries configures the retries of failed calls. Zero fields mean the default.
type Retries struct {
	Tries int           // of one call, the first included; 3
	Step  time.Duration // the whole call with all its tries; 10 min
	Route string        // the name of the route in logs
	Log   *slog.Logger  // discards when nil
}

// Retried returns a model that tries again where that can help: after errors of
// class Transient and Rate. What the provider asks for is obeyed to the letter
// up to a minute; otherwise the wait is random, so that many agents do not come
// back at once. A second answer that was paid for and cannot be used is the last. Each try is a call of m, so that it can be paid for by itself,
// and tells Request.Delta its text from offset 0. The error of a call that ctx
// ended also wraps the cause of ctx.
func Retried(m Model, o Retries) Model {
	if o.Tries <= 0 {
		o.Tries = maxTries
	}
	if o.Step <= 0 {
		o.Step = StepTime
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &retried{model: m, o: o}
}

type retried struct {
	model Model
	o     Retries
}

var _ patient = (*retried)(nil)

func (m *retried) Chat(ctx context.Context, r Request) (Response, error) { return m.chat(ctx, r, 0) }

// chat is Chat, where no try begins later than patience after the first one
// failed. 0 sets no such limit.
func (m *retried) chat(ctx context.Context, r Request, patience time.Duration) (Response, error) {
	step, cancel := context.WithTimeoutCause(ctx, m.o.Step, ErrStep)
	defer cancel()
	shown, paid := false, false
	if told := r.Delta; told != nil {
		r.Delta = func(offset int, text string) { shown = true; told(offset, text) }
	}
	var until time.Time
	for try := 1; ; try++ {
		began := time.Now()
		resp, err := m.model.Chat(step, r)
		if err == nil {
			return resp, nil
		}
		failed := time.Now()
		var e *Error
		if !errors.As(err, &e) || e.Class == Budget || ctx.Err() != nil {
			return resp, caused(ctx, err)
		}
		if patience > 0 && until.IsZero() {
			until = time.Now().Add(patience)
		}
		wait, again := m.backoff(step, try, e, until)
		again = again && !(paid && e.Paid)
		paid = paid || e.Paid
		m.o.Log.Warn("model call failed", "route", m.o.Route, "agent", r.Agent, "run", r.Run, "try", try,
			"class", e.Class, "status", e.Status, "again", again, "wait", wait, "error", e.Text)
		if r.Failed != nil {
			r.Failed(Attempt{Route: m.o.Route, Try: try, Err: e, At: failed, Took: failed.Sub(began), Again: again, Wait: wait})
		}
		if !again {
			return resp, err
		}
		if !sleep(step, wait) {
			return resp, caused(step, err)
		}
		if shown { // what was shown is no part of the answer
			r.Delta(0, "")
			shown = false
		}
	}
}

func caused(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", err, cause)
	}
	return err
}

// backoff reports whether there is another try after the failed one, counted from
// 1, and how long to wait before it. It begins before until, when that is set.
func (m *retried) backoff(ctx context.Context, try int, err *Error, until time.Time) (wait time.Duration, again bool) {
	if try >= m.o.Tries || err.Class != Transient && err.Class != Rate || ctx.Err() != nil {
		return 0, false
	}
	left := time.Duration(1<<63 - 1)
	if !until.IsZero() {
		left = time.Until(until)
	}
	wait = err.RetryAfter
	if wait <= 0 {
		ceiling := min(minBackoff<<(2*try), maxBackoff, left) // 2 s, then 8 s
		if ceiling <= minBackoff {
			return 0, false
		}
		wait = minBackoff + rand.N(ceiling-minBackoff)
	}
	if wait > min(MaxRetryAfter, left) {
		return 0, false
	}
	if end, ok := ctx.Deadline(); ok && time.Until(end) <= wait {
		return 0, false
	}
	return wait, true
}

// sleep waits and reports whether ctx lived on.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

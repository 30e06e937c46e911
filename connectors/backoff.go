package connectors

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"
)

// The bounds of a Backoff.
const (
	backoffMin = time.Second
	backoffMax = 30 * time.Second
	maxPause   = time.Hour // the longest pause that a platform can ask for
)

// A Backoff is the wait between attempts: a second, doubling to 30, up to a quarter less at
// random. The zero value is ready to use.
type Backoff struct{ wait time.Duration }

// Next returns the next wait. If asked, the wait that the platform requested, is positive,
// Next returns it, up to an hour.
func (b *Backoff) Next(asked time.Duration) time.Duration {
	if asked > 0 {
		return min(asked, maxPause)
	}
	b.wait = min(max(2*b.wait, backoffMin), backoffMax)
	return b.wait - rand.N(b.wait/4)
}

// Reset starts again with the shortest wait.
func (b *Backoff) Reset() { b.wait = 0 }

// Sleep waits and reports whether ctx is still alive.
func Sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// Retry calls try until it succeeds, with the waits of a Backoff or those that a RetryError asks for, and logs
// its errors as warnings. It reports false if ctx is done before.
func Retry(ctx context.Context, log *slog.Logger, warning string, try func() error) bool {
	var back Backoff
	for {
		err := try()
		if err == nil || ctx.Err() != nil {
			return err == nil
		}
		log.Warn(warning, "err", err) //nolint:sloglint // a constant of the caller
		var later *RetryError
		var asked time.Duration
		if errors.As(err, &later) {
			asked = later.After
		}
		if !Sleep(ctx, back.Next(asked)) {
			return false
		}
	}
}

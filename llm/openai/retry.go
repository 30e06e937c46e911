package openai

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/claybot/claybot/llm"
)

const (
	maxTries      = 3
	maxRetryAfter = time.Minute // longer waits are the caller's business
	minBackoff    = 500 * time.Millisecond
	maxBackoff    = 8 * time.Second
)

// backoff says whether there is another try after the failed one, counted from
// 1, and how long to wait before it. What the provider asks for is obeyed to
// the letter up to a minute; otherwise the wait is random, so that many agents
// do not come back at once.
func backoff(ctx context.Context, try int, err *llm.Error) (wait time.Duration, again bool) {
	if try >= maxTries || err.Class != llm.Transient && err.Class != llm.Rate || ctx.Err() != nil {
		return 0, false
	}
	wait = err.RetryAfter
	if wait > maxRetryAfter {
		return 0, false
	}
	if wait <= 0 {
		ceiling := min(minBackoff<<(2*try), maxBackoff) // 2 s, then 8 s
		wait = minBackoff + rand.N(ceiling-minBackoff)
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

// retryAfter reads how long a provider asks to wait: milliseconds in a header
// of its own, else seconds or a date. It is 0 when nothing usable is there, and
// a year at most.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, ok := number(h.Get("Retry-After-Ms")); ok {
		return bounded(ms / 1000)
	}
	v := h.Get("Retry-After")
	if s, ok := number(v); ok {
		return bounded(s)
	}
	if at, err := http.ParseTime(v); err == nil {
		return bounded(at.Sub(now).Seconds())
	}
	return 0
}

func number(s string) (float64, bool) {
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil && f == f // not NaN
}

func bounded(seconds float64) time.Duration {
	const year = 365 * 24 * 3600
	return time.Duration(max(0, min(seconds, year)) * float64(time.Second))
}

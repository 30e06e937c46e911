package provider

import (
	"net/http"
	"strconv"
	"time"
)

// RetryAfter reads how long a provider asks to wait: milliseconds in a header
// of its own, else seconds or a date. It is 0 when nothing usable is there, and
// a year at most.
func RetryAfter(h http.Header, now time.Time) time.Duration {
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

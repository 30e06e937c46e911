package provider

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"github.com/claybot/claybot/llm"
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

// limits are the headers of rate limits: what is left of each, and when it is whole again. OpenAI's guide "Rate limits" as of
// 26 June 2026, and those of the servers with its API; Anthropic's page "Rate limits" as Claude Platform on AWS repeats it.
var limits = []struct {
	left, reset string
	tokens      bool
}{
	{"X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests", false},
	{"X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens", true},
	{"Anthropic-Ratelimit-Requests-Remaining", "Anthropic-Ratelimit-Requests-Reset", false},
	{"Anthropic-Ratelimit-Tokens-Remaining", "Anthropic-Ratelimit-Tokens-Reset", true},
	{"Anthropic-Ratelimit-Input-Tokens-Remaining", "Anthropic-Ratelimit-Input-Tokens-Reset", true},
	{"Anthropic-Ratelimit-Output-Tokens-Remaining", "Anthropic-Ratelimit-Output-Tokens-Reset", true},
}

// limited reads how long the limits last that a refused request met: those of which nothing is left, else those of tokens, of
// which the request takes more than is left. Then a limit is whole again; since it fills up until then, the time is the most
// that a call waits, and never keeps it from being tried again.
func limited(h http.Header, now time.Time) time.Duration {
	var used, tokens time.Duration
	for _, l := range limits {
		d := untilReset(h.Get(l.reset), now)
		if left, ok := number(h.Get(l.left)); !ok || left <= 0 {
			used = max(used, d)
		}
		if l.tokens {
			tokens = max(tokens, d)
		}
	}
	return min(cmp.Or(used, tokens), llm.MaxRetryAfter)
}

// untilReset reads a time such as 6m0s, a number of seconds, or a date.
func untilReset(v string, now time.Time) time.Duration {
	if s, ok := number(v); ok {
		return bounded(s)
	}
	if d, err := time.ParseDuration(v); err == nil {
		return bounded(d.Seconds())
	}
	if at, err := time.Parse(time.RFC3339, v); err == nil {
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

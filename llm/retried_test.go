package llm

import (
	"net/http"
	"testing"
	"time"
)

func TestRetryAfterHeader(t *testing.T) {
	now := time.Date(2026, 7, 1, 9, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name, value string
		want        time.Duration
	}{
		{"Retry-After", "", 0},
		{"Retry-After", "0.5", 500 * time.Millisecond},
		{"Retry-After", "-3", 0},
		{"Retry-After", "NaN", 0},
		{"Retry-After", "1e300", 365 * 24 * time.Hour},
		{"Retry-After", "Wed, 01 Jul 2026 09:00:30 GMT", 30 * time.Second},
		{"Retry-After", "Wed, 01 Jul 2099 09:00:30 GMT", 365 * 24 * time.Hour},
		{"Retry-After-Ms", "250", 250 * time.Millisecond},
	} {
		if got := RetryAfter(http.Header{tt.name: {tt.value}}, now); got != tt.want {
			t.Errorf("%s %q: got %v, want %v", tt.name, tt.value, got, tt.want)
		}
	}
}

func TestBackoffIsJittered(t *testing.T) {
	m := Retried(nil, Retries{}).(*retried)
	seen := map[time.Duration]bool{}
	for range 100 {
		for try, ceiling := range map[int]time.Duration{1: 2 * time.Second, 2: maxBackoff} {
			wait, again := m.backoff(t.Context(), try, &Error{Class: Transient}, time.Time{})
			if !again || wait < minBackoff || wait > ceiling {
				t.Fatalf("try %d: %v %v", try, wait, again)
			}
			seen[wait] = true
		}
	}
	if len(seen) < 100 {
		t.Errorf("only %d different waits", len(seen))
	}
}

package llm

import (
	"testing"
	"time"
)

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

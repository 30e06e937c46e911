package main

import (
	"testing"
	"time"
)

func TestExpiry(t *testing.T) {
	now := time.Date(2030, 2, 27, 22, 0, 0, 0, time.UTC)
	for s, want := range map[string]time.Time{
		"90d":        time.Date(2030, 5, 28, 22, 0, 0, 0, time.UTC),
		"12h":        now.Add(12 * time.Hour),
		"90m":        now.Add(90 * time.Minute),
		"2030-02-28": time.Date(2030, 3, 1, 0, 0, 0, 0, time.UTC), // the last day
		"2030-02-27": time.Date(2030, 2, 28, 0, 0, 0, 0, time.UTC),
		"2030-02-26": {}, "": {}, "d": {}, "0d": {}, "-1d": {}, "99999d": {}, "1.5d": {}, "-1h": {}, "0s": {}, "2030-02-30": {}, "tomorrow": {}, "90": {},
	} {
		got, err := expiry(s, now)
		if want.IsZero() != (err != nil) || !got.Equal(want) {
			t.Errorf("expiry(%q) = %v, %v, want %v", s, got, err, want)
		}
	}
}

package tools

import (
	"testing"
	"time"
)

func TestParseDuration(t *testing.T) {
	tests := []struct {
		in   string
		want time.Duration // -1: an error
	}{
		{"90s", 90 * time.Second},
		{"45m", 45 * time.Minute},
		{"1h30m", 90 * time.Minute},
		{"1h 30m", 90 * time.Minute},
		{"2d", 48 * time.Hour},
		{"1w2d", 9 * 24 * time.Hour},
		{"1.5h", 90 * time.Minute},
		{"250ms", 250 * time.Millisecond},
		{" 5m ", 5 * time.Minute},
		{"300", 300 * time.Second},
		{"0", 0},
		{"", -1},
		{" ", -1},
		{"m", -1},
		{"5", 5 * time.Second},
		{"5.5", -1},
		{"5x", -1},
		{"5m3", -1},
		{"-5m", -1},
		{"+5m", -1},
		{"1e3s", -1},
		{".s", -1},
		{"1.2.3s", -1},
		{"5M", -1},
		{"5m,3s", -1},
		{"106751d", 106751 * day},
		{"106752d", -1}, // beyond 2^63 nanoseconds
		{"5000000000", -1},
		{"infs", -1},
	}
	for _, tt := range tests {
		got, err := ParseDuration(tt.in, time.Second)
		if err != nil {
			got = -1
		}
		if got != tt.want {
			t.Errorf("%q: %v, %v; want %v", tt.in, got, err, tt.want)
		}
	}
	for _, in := range []string{"5", "300"} {
		if got, err := ParseDuration(in, 0); err == nil {
			t.Errorf("%q without a unit: %v", in, got)
		}
	}
}

func FuzzDuration(f *testing.F) {
	for _, s := range []string{"", "90s", "1h30m", "2d", "0", "9e9w", "1.5h", "99999999999w", "-1m"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParseDuration(s, 0)
		if err != nil {
			return
		}
		if got < 0 {
			t.Fatalf("%q is %v", s, got)
		}
		// What Go reads as well means the same, to a rounding.
		if want, err := time.ParseDuration(s); err == nil && (got-want).Abs() > want/1e9+1 {
			t.Fatalf("%q is %v, want %v", s, got, want)
		}
	})
}

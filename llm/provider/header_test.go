package provider

import (
	"net/http"
	"strings"
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

// The limit that is used up counts, and that of tokens if none is.
func TestLimited(t *testing.T) {
	now := time.Date(2026, 7, 1, 9, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name   string
		header []string
		want   time.Duration
	}{
		{"none", nil, 0},
		{"no counts", []string{"x-ratelimit-reset-requests", "1s", "x-ratelimit-reset-tokens", "12s"}, 12 * time.Second},
		{"requests are used up", []string{"x-ratelimit-remaining-requests", "0", "x-ratelimit-reset-requests", "2m59.56s", "x-ratelimit-remaining-tokens", "140000", "x-ratelimit-reset-tokens", "7ms"}, time.Minute},
		{"requests are used up for a second", []string{"x-ratelimit-remaining-requests", "0", "x-ratelimit-reset-requests", "1s", "x-ratelimit-remaining-tokens", "140000", "x-ratelimit-reset-tokens", "30s"}, time.Second},
		{"too many tokens for what is left", []string{"x-ratelimit-remaining-requests", "59", "x-ratelimit-reset-requests", "30s", "x-ratelimit-remaining-tokens", "120", "x-ratelimit-reset-tokens", "350ms"}, 350 * time.Millisecond},
		{"Azure without limits", []string{"x-ratelimit-remaining-tokens", "-1", "x-ratelimit-reset-tokens", "0"}, 0},
		{"seconds", []string{"x-ratelimit-reset-tokens", "26"}, 26 * time.Second},
		{"garbage", []string{"x-ratelimit-reset-tokens", "soon", "x-ratelimit-reset-requests", "-3s"}, 0},
		{"dates", []string{"anthropic-ratelimit-requests-remaining", "12", "anthropic-ratelimit-requests-reset", "2026-07-01T09:00:50Z", "anthropic-ratelimit-output-tokens-remaining", "0", "anthropic-ratelimit-output-tokens-reset", "2026-07-01T09:00:04Z"}, 4 * time.Second},
		{"a date that has passed", []string{"anthropic-ratelimit-tokens-remaining", "0", "anthropic-ratelimit-tokens-reset", "2026-07-01T08:59:59Z"}, 0},
	} {
		h := http.Header{}
		for i := 0; i+1 < len(tt.header); i += 2 {
			h.Set(tt.header[i], tt.header[i+1])
		}
		if got := limited(h, now); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestRedactor(t *testing.T) {
	d := NewRedactor("canary-key", map[string]string{"A": "Bearer canary-token", "B": "short"})
	got := d.Short("canary-key, canary-token,\n\x00https://u:p@host/x?y sk-other-0123456789 \xff" + strings.Repeat("é", 300))
	for _, secret := range []string{"canary", "host", "0123456789", "\n"} {
		if strings.Contains(got, secret) {
			t.Errorf("%q is in %q", secret, got)
		}
	}
	if n := len([]rune(got)); n != 201 {
		t.Errorf("%d characters", n)
	}
	for said, want := range map[string]string{
		"Incorrect API key provided: sk-FAKE1234567.": "Incorrect API key provided: [redacted]",
		"The token expired yesterday":                 "The token expired yesterday",
		"Incorrect API key provided.":                 "Incorrect API key provided.",
		"key abcdefghijklmnopq, key abc12345":         "[redacted], [redacted]",
		"bearer abcdefgh, key: abcdefgh":              "[redacted], [redacted]",
	} {
		if got := (Redactor{}).Short(said); got != want {
			t.Errorf("%q became %q, want %q", said, got, want)
		}
	}
	if got := (Redactor{}).Short("fine"); got != "fine" {
		t.Errorf("got %q", got)
	}
}

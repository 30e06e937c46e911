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
	if got := (Redactor{}).Short("fine"); got != "fine" {
		t.Errorf("got %q", got)
	}
}

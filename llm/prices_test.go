package llm

import (
	"testing"

	"github.com/claybot/claybot"
)

// What a cache saves is what the same tokens would have cost without it.
func TestSaved(t *testing.T) {
	p := Prices{"m": {Input: 10, CachedInput: 1, Output: 10, CacheWrite: 12.5}, "plain": {Input: 10, Output: 10}}
	for _, tt := range []struct {
		model string
		usage claybot.Usage
		saved int64
		known bool
	}{
		{"m", claybot.Usage{Input: 1000, Output: 50}, 0, true},
		{"m", claybot.Usage{Input: 1000, CachedInput: 800, Output: 50}, 7200, true},
		{"m", claybot.Usage{Input: 1000, CacheWrite: 800, Output: 50}, -2000, true},
		{"m", claybot.Usage{Input: 1000, CachedInput: 500, CacheWrite: 400}, 3500, true},
		{"plain", claybot.Usage{Input: 1000, CachedInput: 800}, 0, true},
		{"other", claybot.Usage{Input: 1000, CachedInput: 800}, 0, false},
	} {
		if saved, known := p.Saved(tt.model, tt.usage); saved != tt.saved || known != tt.known {
			t.Errorf("%s, %+v: got %d, %v", tt.model, tt.usage, saved, known)
		}
	}
}

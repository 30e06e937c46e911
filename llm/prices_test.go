package llm

import (
	"testing"

	"github.com/claybot/claybot"
)

// A model whose price changes with the hour costs what it costs at the most, by each of its names.
func TestPeakPrices(t *testing.T) {
	u := claybot.Usage{Input: 2_000_000, CachedInput: 1_000_000, Output: 1_000_000}
	for model, want := range map[string]int64{"deepseek-flash": 1_506_000, "deepseek-v4-flash": 1_506_000, "deepseek-v4-pro": 5_324_000} {
		if cost, known := DefaultPrices().Cost(model, u); cost != want || !known {
			t.Errorf("%s costs %d, %v; want %d", model, cost, known, want)
		}
	}
}

// A model of Gemini costs no less than its provider's page says, by the length of its name, and what is not on it stays unknown.
func TestGeminiPrices(t *testing.T) {
	u := claybot.Usage{Input: 1_000_000, CachedInput: 500_000, Output: 1_000_000}
	for model, want := range map[string]int64{
		"gemini-3.8-flash": 9_000_000, "gemini-3.5-flash": 10_500_000, "gemini-3.5-flash-lite": 2_800_000, "gemini-3.1-pro-preview": 22_000_000, "gemini-2.5-pro": 0,
	} {
		if cost, known := DefaultPrices().Cost(model, u); cost != want || known != (want > 0) {
			t.Errorf("%s costs %d, %v; want %d", model, cost, known, want)
		}
	}
}

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

package telegram

import (
	"slices"
	"testing"
)

func TestRefs(t *testing.T) {
	c := New(Config{Name: "telegram", Token: "1000001:test-token-that-is-not-real"})
	tests := []struct {
		link string
		want []string
	}{
		{"https://t.me/c/1234567890/77", []string{"telegram/1000001/-1001234567890/77", "telegram/-1001234567890/77"}},
		{"https://t.me/c/1234567890/5/77", []string{"telegram/1000001/-1001234567890/77", "telegram/-1001234567890/77"}},
		{"https://telegram.me/c/1/2?single", []string{"telegram/1000001/-1001/2", "telegram/-1001/2"}},
		{"https://t.me/somegroup/77", nil},
		{"https://t.me/c/12x/77", nil},
		{"https://t.me/c/12", nil},
		{"https://t.me/c//77", nil},
		{"http://t.me/c/1/2", nil},
		{"https://t.me.example.org/c/1/2", nil},
		{"telegram/1/2", nil},
		{"", nil},
	}
	for _, tt := range tests {
		if got := c.Refs(tt.link); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.link, got, tt.want)
		}
	}
}

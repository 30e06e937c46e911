package schedule

import (
	"strings"
	"testing"
)

func TestNameOf(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"Morning report", "morning-report"},
		{"  --Ünïcode & more!! ", "n-code-more"},
		{"../../etc/passwd", "etc-passwd"},
		{"...", "task"},
		{"日本", "task"},
		{"a.b_c-d", "a.b_c-d"},
		{strings.Repeat("x", 100), strings.Repeat("x", 64)},
		{strings.Repeat("x", 63) + " y", strings.Repeat("x", 63)},
	} {
		if got := NameOf(c.name); got != c.want || !ValidName(got) {
			t.Errorf("%q: %q, want %q", c.name, got, c.want)
		}
	}
}

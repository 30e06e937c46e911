package files

import (
	"strings"
	"testing"
)

func TestPattern(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"*.go", "a.go", true},
		{"*.go", "a/b.go", false},
		{"**/*.go", "b.go", true},
		{"**/*.go", "a/b/c.go", true},
		{"a/**", "a/b/c", true},
		{"a/**", "b/a", false},
		{"./?.[a-c]", "x.b", true},
		{"**/x/**/y", "1/x/2/3/y", true},
		{strings.Repeat("**/", 60) + "z", strings.Repeat("a/", 500) + "b", false},
	} {
		p, err := newPattern("pattern", tt.pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.match(tt.name); got != tt.want {
			t.Errorf("%q fits %q: %v", tt.pattern, tt.name, got)
		}
	}
}

func FuzzPattern(f *testing.F) {
	f.Add("**/*.go", "a/b.go")
	f.Add("[a", "a")
	f.Add("\\", "")
	f.Fuzz(func(_ *testing.T, pattern, name string) {
		if p, err := newPattern("pattern", pattern); err == nil {
			p.match(name)
		}
	})
}

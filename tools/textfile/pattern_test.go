package textfile

import (
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestMatch(t *testing.T) {
	tests := []struct {
		pattern, name string
		want          bool
	}{
		{"*", "a", true},
		{"*", "a/b", false},
		{"**", "a/b/c", true},
		{"**/c", "c", true},
		{"**/c", "a/b/c", true},
		{"**/c", "a/b/cc", false},
		{"a/**", "a/b/c", true},
		{"a/**", "a", true}, // nothing stands for **
		{"a/**/c", "a/c", true},
		{"a/**/c", "a/b/b/c", true},
		{"a/**/c", "b/c", false},
		{"**/**/**", "a", true},
		{"**.go", "a.go", true}, // within a part, ** is *
		{"**.go", "a/a.go", false},
		{"a?c", "abc", true},
		{"a?c", "aéc", true},
		{"[a-c]x", "bx", true},
		{`\*`, "*", true},
		{`\*`, "a", false},
		{"./a", "a", true},
		{"./?.[a-c]", "x.b", true},
		{"**/x/**/y", "1/x/2/3/y", true},
		{strings.Repeat("**/", 60) + "z", strings.Repeat("a/", 500) + "b", false},
	}
	for _, tt := range tests {
		p, err := NewPattern("pattern", tt.pattern)
		if err != nil {
			t.Errorf("%s: %v", tt.pattern, err)
			continue
		}
		if got := p.Match(tt.name); got != tt.want {
			t.Errorf("%s on %s: %v", tt.pattern, tt.name, got)
		}
	}
	if p, err := NewPattern("pattern", strings.Repeat("**/a/", 31)+"b"); err != nil {
		t.Error(err)
	} else if p.Match(strings.Repeat("a/", 2000) + "c") { // at once, or never
		t.Error("a pattern with many ** fits what it must not")
	}
	if _, err := NewPattern("pattern", strings.Repeat("a/", 64)+"b"); err == nil {
		t.Errorf("65 parts: %v", err)
	}
}

// The matcher agrees with a regular expression made of the same pattern, for
// patterns of letters, * and **.
func FuzzGlob(f *testing.F) {
	f.Add("**/a*/b", "x/ab/b")
	f.Add("a/**", "a")
	f.Add("**", "")
	f.Add("[", "a")
	f.Fuzz(func(t *testing.T, s, name string) {
		p, err := NewPattern("pattern", s)
		if err != nil {
			return
		}
		if name == "" || !filepath.IsLocal(name) || path.Clean(name) != name || !utf8.ValidString(name) {
			return // never asked
		}
		got := p.Match(name)
		if strings.ContainsAny(s, `?[]\`) || !utf8.ValidString(s) {
			return
		}
		var re strings.Builder
		for _, part := range p {
			if part == "**" {
				re.WriteString("(/[^/]+)*")
				continue
			}
			re.WriteString("/")
			for i, literal := range strings.Split(part, "*") {
				if i > 0 {
					re.WriteString("[^/]*")
				}
				re.WriteString(regexp.QuoteMeta(literal))
			}
		}
		if want := regexp.MustCompile("^" + re.String() + "$").MatchString("/" + name); got != want {
			t.Fatalf("%q on %q: %v, want %v", s, name, got, want)
		}
	})
}

package documents

import (
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzPath(f *testing.F) {
	for _, s := range []string{"", ".", "..", "a", "a/b", "./a", "a/./b/", "a//b", "/a", "a/../b", "a\x00", "\xff", "...", ".claybot-x", strings.Repeat("a/", 3000)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := cleanFolder(s)
		if err != nil {
			if got != "" || !hasCode(err, Invalid) {
				t.Fatalf("%q is refused with %q, %v", s, got, err)
			}
			return
		}
		if again, err := cleanFolder(got); again != got || err != nil {
			t.Fatalf("%q becomes %q, and that %q, %v", s, got, again, err)
		}
		if got == "" {
			return
		}
		if !filepath.IsLocal(got) || path.Clean(got) != got || len(got) > maxPath || !utf8.ValidString(got) || strings.Contains(got, "\x00") {
			t.Fatalf("%q becomes %q", s, got)
		}
		// Folders and files have the same paths.
		if file, err := clean(got); file != got || err != nil {
			t.Fatalf("%q as a file: %q, %v", got, file, err)
		}
	})
}

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
	}
	for _, tt := range tests {
		p, err := newPattern("pattern", tt.pattern)
		if err != nil {
			t.Errorf("%s: %v", tt.pattern, err)
			continue
		}
		if got := p.match(tt.name); got != tt.want {
			t.Errorf("%s on %s: %v", tt.pattern, tt.name, got)
		}
	}
	if p, err := newPattern("pattern", strings.Repeat("**/a/", 31)+"b"); err != nil {
		t.Error(err)
	} else if p.match(strings.Repeat("a/", 2000) + "c") { // at once, or never
		t.Error("a pattern with many ** fits what it must not")
	}
	if _, err := newPattern("pattern", strings.Repeat("a/", 64)+"b"); !hasCode(err, Invalid) {
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
		p, err := newPattern("pattern", s)
		if err != nil {
			if !hasCode(err, Invalid) {
				t.Fatal(err)
			}
			return
		}
		name, err = clean(name)
		if err != nil {
			return
		}
		got := p.match(name)
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

package documents

import (
	"path"
	"path/filepath"
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

package connectors

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// atMost reports whether a text has at most so many marks of bold and code.
func atMost(most int) func(string) bool {
	return func(s string) bool { return strings.Count(s, "**")/2+strings.Count(s, "`")/2 <= most }
}

func TestSplitFitting(t *testing.T) {
	list := func(lines int) string {
		var b strings.Builder
		for i := range lines {
			fmt.Fprintf(&b, "- **Option %d**: set `key` to `value`\n", i)
		}
		return strings.TrimSpace(b.String())
	}
	prose := strings.TrimSpace(strings.Repeat("Some prose that goes on and has **bold** words in it, as answers do. ", 130))
	for _, tt := range []struct {
		name  string
		text  string
		parts int
	}{
		{"60 lines", list(60), 2},
		{"34 lines", list(34), 2},
		{"200 lines", list(200), 7},
		{"prose", prose, 3},
		{"a word too many", strings.TrimSpace(strings.Repeat("word ", 820)), 2},
		{"fits", list(20), 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			parts := SplitFitting(tt.text, 4096, UTF16Len, atMost(99))
			if len(parts) != tt.parts {
				t.Errorf("%d parts, want %d", len(parts), tt.parts)
			}
			for i, p := range parts {
				if n := UTF16Len(p); n > 4096 || !atMost(99)(p) || len(parts) > 1 && n < UTF16Len(tt.text)/len(parts)/4 {
					t.Errorf("part %d has %d units and %d marks", i, n, strings.Count(p, "**"))
				}
			}
			if got := strings.Fields(strings.Join(parts, " ")); !slices.Equal(got, strings.Fields(tt.text)) {
				t.Errorf("the parts are another text")
			}
		})
	}
}

// Whatever fits says, SplitFitting ends, loses no word, and keeps to the limit.
func TestSplitFittingProperties(t *testing.T) {
	words := []string{"a", "**b**", "`c`", "Sentence.", " ", " ", "\n", "\n\n", "😀", "日本語。", "loooooooooooooooooooooong"}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 0, 80).Draw(t, "words"), "")
		limit := rapid.IntRange(12, 80).Draw(t, "limit")
		squeeze := func(s string) string { return strings.Join(strings.Fields(s), "") }
		parts := SplitFitting(text, limit, UTF16Len, atMost(rapid.IntRange(0, 5).Draw(t, "marks")))
		if squeeze(strings.Join(parts, "")) != squeeze(text) {
			t.Fatalf("%q became %q", text, parts)
		}
		for _, p := range parts {
			if UTF16Len(p) > limit {
				t.Fatalf("a part of %d units: %q", UTF16Len(p), p)
			}
		}
	})
}

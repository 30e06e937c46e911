package connectors

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSplitSpans(t *testing.T) {
	words := func(n int) string { return strings.TrimSpace(strings.Repeat("word ", n)) }
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"bold", "**" + words(20) + "** end", []string{"**" + words(14) + "**", "**" + words(6) + "** end"}},
		{"italic", "a *" + words(20) + "* end", []string{"a *" + words(14) + "*", "*" + words(6) + "* end"}},
		{"underscores", "a _" + words(20) + "_ end", []string{"a _" + words(14) + "_", "_" + words(6) + "_ end"}},
		{"bold and italic", "**a *" + words(20) + "* b** end", []string{"**a *" + words(13) + "***", "***" + words(7) + "* b** end"}},
		{"struck", "~~" + words(20) + "~~", []string{"~~" + words(14) + "~~", "~~" + words(6) + "~~"}},
		{"hidden", "||" + words(20) + "||", []string{"||" + words(14) + "||", "||" + words(6) + "||"}},
		{"code", "`" + words(20) + "`", []string{"`" + words(14) + "`", "`" + words(6) + "`"}},
		{"no end", "**" + words(20), []string{"**" + words(15), words(5)}},
		{"a product", "2 * 3 " + words(20) + " * 4", []string{"2 * 3 " + words(15), words(5) + " * 4"}},
		{"names", "a_b " + words(20) + " c_d", []string{"a_b " + words(15), words(5) + " c_d"}},
		{"escaped", "\\*\\*" + words(20) + "\\*\\*", []string{"\\*\\*" + words(15), words(5) + "\\*\\*"}},
		{"of another item", "- **" + words(15) + "\n- " + words(5) + "**", []string{"- **" + words(15), "- " + words(5) + "**"}},
		{"to another item", "- **" + words(20) + "\n- end**", []string{"- **" + words(15), words(5) + "\n- end**"}},
		{"before a fence", "**" + words(12) + "\n```\na** b c d e f g h\n```", []string{"**" + words(12), "```\na** b c d e f g h\n```"}},
		{"over lines", "**" + words(12) + "\n" + words(8) + "**", []string{"**" + words(12) + "**", "**" + words(8) + "**"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Split(tt.text, 80, UTF16Len); !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

// Whatever marks a text has, its parts are within the limit and lose nothing, and a text whose bold is
// closed has parts whose bold is closed.
func TestSplitSpansProperties(t *testing.T) {
	words := []string{"a", "word", "Sentence.", " ", " ", "\n", "**", "*", "_", "`", "||", "~~", "\\", "日本語。", "- item "}
	bare := strings.NewReplacer("*", "", "_", "", "`", "", "|", "", "~", "", " ", "", "\n", "")
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(leastSpans+spansRoom, 4*leastSpans).Draw(t, "limit")
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 0, 300).Draw(t, "words"), "")
		parts := Split(text, limit, UTF16Len)
		if got := bare.Replace(strings.Join(parts, "")); got != bare.Replace(text) {
			t.Fatalf("%q became %q", text, parts)
		}
		for _, p := range parts {
			if UTF16Len(p) > limit {
				t.Fatalf("a part of %d units, limit %d: %q", UTF16Len(p), limit, p)
			}
		}
		bold := rapid.SliceOfN(rapid.IntRange(1, 60), 1, 12).Draw(t, "bold")
		text = ""
		for i, n := range bold {
			text += fmt.Sprintf("%d **%s** ", i, strings.TrimSpace(strings.Repeat("word ", n)))
		}
		for _, p := range Split(strings.TrimSpace(text), limit, UTF16Len) {
			if strings.Contains(Render(p, Style{}), "**") || UTF16Len(p) > limit {
				t.Fatalf("a stray mark, or too long: %q", p)
			}
		}
	})
}

// hostile returns paragraphs of about n characters that are nothing but marks.
func hostile(n int) map[string]string {
	fill := func(s string, n int) string { return strings.Repeat(s, n/len(s)) }
	return map[string]string{
		"no end":     fill("*a ", n),
		"bold":       fill("**a** ", n),
		"code":       fill("`a", n),
		"tildes":     fill("~~", n),
		"struck":     fill("~~a ", n),
		"nested":     fill("_*~a ", n),
		"other ends": fill("~~a ", n/2) + fill("a* ", n/2),
		"lines":      fill("*a\n", n),
	}
}

// The work for a character does not grow with the text. What is counted is memory, since time
// depends on the machine.
func TestSplitHostile(t *testing.T) {
	perCharacter := func(text string) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		parts := Split(text, 4096, UTF16Len)
		runtime.ReadMemStats(&after)
		for _, p := range parts {
			if n := UTF16Len(p); n > 4096 {
				t.Errorf("a part of %d units", n)
			}
		}
		return (after.TotalAlloc - before.TotalAlloc) / uint64(len(text))
	}
	short := hostile(10_000)
	for name, text := range hostile(100_000) {
		t.Run(name, func(t *testing.T) {
			if less, more := perCharacter(short[name]), perCharacter(text); more > 2*less+100 {
				t.Errorf("%d bytes of memory for a character of a long text, %d of a short one", more, less)
			}
		})
	}
}

// A span ends at its mark if at most mostOpen are open there.
func TestMarkedSpansBound(t *testing.T) {
	for strays, want := range map[int]bool{0: true, mostOpen - 1: true, mostOpen: false, 100 * mostOpen: false} {
		spans := markedSpans("**a " + strings.Repeat("*a ", strays) + "b** c")
		if got := spans[0].end > 0; got != want {
			t.Errorf("bold around %d stray marks ends: %v, want %v", strays, got, want)
		}
	}
}

func BenchmarkSplitHostile(b *testing.B) {
	for name, text := range hostile(100_000) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				SplitFitting(text, 4096, UTF16Len, atMost(99))
			}
		})
	}
}

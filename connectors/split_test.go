package connectors

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestSplit(t *testing.T) {
	family := "👩‍👩‍👧"
	tests := []struct {
		name  string
		text  string
		limit int
		want  []string
	}{
		{"fits", "abc", 3, []string{"abc"}},
		{"blank", "", 3, []string{""}},
		{"paragraph", "one two\n\nthree\nfour", 16, []string{"one two", "three\nfour"}},
		{"line", "one two\nthree four", 13, []string{"one two", "three four"}},
		{"sentence", "One two. Three four five", 14, []string{"One two.", "Three four", "five"}},
		{"word", "aaa bbb  ccc", 8, []string{"aaa bbb", "ccc"}},
		{"hard", "abcdefgh", 3, []string{"abc", "def", "gh"}},
		{"late word beats early line", "a\nbbbb cccc dddd", 12, []string{"a\nbbbb cccc", "dddd"}},
		{"pairs", "😀😀😀", 5, []string{"😀😀", "😀"}},
		{"combining", "e\u0301e\u0301e\u0301", 3, []string{"e\u0301", "e\u0301", "e\u0301"}},
		{"joined emoji", "ab" + family + "c", 9, []string{"ab", family + "c"}},
		{"flag", "a🇩🇪🇫🇷", 6, []string{"a🇩🇪", "🇫🇷"}},
		{"stacked marks", "e" + strings.Repeat("\u0301", 5), 3, []string{"e\u0301\u0301", "\u0301\u0301\u0301"}},
		{"keeps indentation", "- a aaaaaa\n  - b\n  - c", 15, []string{"- a aaaaaa", "  - b\n  - c"}},
		{"cjk", "一二。三四。五六", 5, []string{"一二。", "三四。五六"}},
		{"arabic", "هل هذا؟ نعم نعم نعم", 17, []string{"هل هذا؟", "نعم نعم نعم"}},
		{"urdu", "یہ ہے۔ ہاں ہاں ہاں", 16, []string{"یہ ہے۔", "ہاں ہاں ہاں"}},
		{"hindi", "यह है। हाँ हाँ हाँ", 16, []string{"यह है।", "हाँ हाँ हाँ"}},
		{"fence", "```go\naaaa\nbbbb\ncccc\n```\nend", 20, []string{"```go\naaaa\nbbbb\n```", "```go\ncccc\n```\nend"}},
		{"fence keeps code", "````\n  a = 1\n\n  b = 2\n````", 20, []string{"````\n  a = 1\n````", "````\n  b = 2\n````"}},
		{"before a fence", "aaaa bbbb cccc\n```sh\nls\n```", 24, []string{"aaaa bbbb cccc", "```sh\nls\n```"}},
		{"tildes", "~~~\naaaaaa\nbbbbbb\n~~~", 16, []string{"~~~\naaaaaa\n~~~", "~~~\nbbbbbb\n~~~"}},
		{"carriage returns", "aaa bbb\r\nccc ddd", 12, []string{"aaa bbb", "ccc ddd"}},
		{"giant in a fence", "```\n" + family + "\n```\na", 12, []string{"```\n👩\u200d\n```", "```\n👩\u200d\n```", "```\n👧\n```\na"}},
		{"room for the opening line only", "aaaa\n```\nbcde\n```", 12, []string{"aaaa", "```\nbcde\n```"}},
		{"empty fence", "aaaaaaaaaaa\n```\n```\nbbbb", 12, []string{"aaaaaaaaaaa", "bbbb"}},
		{"blank lines fill a fence", "```\n" + strings.Repeat("\n", 20) + "a\n```\nb", 12, []string{"```\na\n```\nb"}},
		{"blank lines end a fence", "```\na" + strings.Repeat("\n", 20) + "```\nb", 12, []string{"```\na\n\n\n```", "b"}},
		{"wide fence lines", "```" + strings.Repeat(" ", 20) + "\na\n```" + strings.Repeat(" ", 20) + "\nb", 12, []string{"```\na\n```", "b"}},
		{"nothing to show", strings.Repeat("```\n\n```\n", 4), 12, nil},
		{"long code line", "```\nabcdefghijkl\n```", 14, []string{"```\nabcdef\n```", "```\nghijkl\n```"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Split(tt.text, tt.limit, UTF16Len)
			if !slices.Equal(got, tt.want) {
				t.Errorf("Split(%q, %d)\n got %q\nwant %q", tt.text, tt.limit, got, tt.want)
			}
		})
	}
}

// checkSplit holds Split to its promise for one text.
func checkSplit(t interface {
	Fatalf(string, ...any)
}, text string, limit int,
) {
	parts := Split(text, limit, UTF16Len)
	for _, p := range parts {
		if n := UTF16Len(p); n > limit {
			t.Fatalf("part of %d units, limit %d: %q", n, limit, p)
		}
		if utf8.ValidString(text) && !utf8.ValidString(p) {
			t.Fatalf("part cuts a rune: %q", p)
		}
	}
	if UTF16Len(text) <= limit {
		if len(parts) != 1 || parts[0] != text {
			t.Fatalf("a text that fits was changed: %q", parts)
		}
		return
	}
	pieces := splitter{text: text, limit: limit, length: UTF16Len}.pieces()
	at, closed := 0, false // where the piece before ended, and whether it closed a fence
	for _, p := range pieces {
		lost := text[at:p.from]
		fences := checkLost(t, lost)
		if closed && p.open != "" && lost != "" && lost != "\n" { // only where it leaves no room for code
			first := text[p.from : p.from+cluster(text[p.from:])]
			if strings.TrimSpace(lost) != "" || UTF16Len(p.open+lost+first+p.open) < limit {
				t.Fatalf("code lost at a cut: %q", lost)
			}
		}
		if (p.open != "") != closed && fences == 0 {
			t.Fatalf("a fence was closed and not opened again, or the other way round: %q", parts)
		}
		if part := p.open + text[p.from:p.to] + p.close; (p.open != "" || p.close != "") && emptyFence(part) || strings.TrimSpace(part) == "" {
			t.Fatalf("a part shows nothing: %q", part)
		}
		at, closed = p.to, p.close != ""
	}
	checkLost(t, text[at:])
}

// checkLost holds what is left out between parts to white space and the lines
// of fences, and counts the latter.
func checkLost(t interface {
	Fatalf(string, ...any)
}, lost string,
) (fences int) {
	for line := range strings.SplitSeq(lost, "\n") {
		switch line = strings.TrimSpace(line); {
		case line == "":
		case beginsFence(line):
			fences++
		default:
			t.Fatalf("lost at a cut: %q", lost)
		}
	}
	return fences
}

// emptyFence reports a part that is two lines of a fence and blank lines.
func emptyFence(part string) bool {
	lines := strings.Split(strings.TrimSpace(part), "\n")
	first, last := lines[0], strings.TrimSpace(lines[len(lines)-1])
	if len(lines) < 2 || !beginsFence(first) || !beginsFence(last) || first[0] != last[0] || strings.Trim(last, last[:1]) != "" {
		return false
	}
	return strings.TrimSpace(strings.Join(lines[1:len(lines)-1], "")) == ""
}

// A user must not see an empty bubble before a long code line.
func TestSplitGiantCharacterInAFence(t *testing.T) {
	parts := Split("```\na"+strings.Repeat("\u0301", 6000)+"\n```", 4096, UTF16Len)
	if len(parts) != 2 {
		t.Fatalf("%d parts, want 2", len(parts))
	}
	for _, p := range parts {
		if n := UTF16Len(p); n > 4096 || n < 1900 {
			t.Errorf("a part of %d units", n)
		}
	}
}

// The least limit that is promised, for a length in bytes.
func TestSplitLeastLimit(t *testing.T) {
	text := "```go\n" + strings.Repeat("👩‍👩‍👧", 5) + "\n```\n~~~\n" + strings.Repeat("e\u0301", 9)
	for limit := 12; limit < 40; limit++ {
		for _, p := range Split(text, limit, func(s string) int { return len(s) }) {
			if len(p) > limit {
				t.Errorf("limit %d: a part of %d: %q", limit, len(p), p)
			}
		}
	}
}

func TestSplitProperties(t *testing.T) {
	words := []string{"a", "word", "Sentence.", " ", "\n", "\n\n", "```go\n", "\n```\n", "~~~\n", "```", "😀", "e\u0301", "👩‍👩‍👧", "🇩🇪", "  - item\n", "日本語。", "שָׁלוֹם", "مَرْحَبًا", "👋🏽", "\u200f", "\u2067אב\u2069", "\t", "loooooooooooooooooooooong"}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 0, 80).Draw(t, "words"), "")
		checkSplit(t, text, rapid.IntRange(2, 80).Draw(t, "limit"))
	})
}

// FuzzSplit is F09.
func FuzzSplit(f *testing.F) {
	f.Add("```go\nx\n```\n\ny", 8)
	f.Add("a b\n\n\nc\xff😀", 3)
	f.Add("\v\v\v\v\v", 4)
	f.Add("\n```\na ``````word", 12)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		if len(text) < 5000 && limit >= 2 && limit <= 5000 {
			checkSplit(t, text, limit)
		}
	})
}

func TestUTF16Len(t *testing.T) {
	for _, s := range []string{"", "abc", "äöü", "😀", "e\u0301", "a\xffb", "\U0010ffff"} {
		if got, want := UTF16Len(s), len(utf16.Encode([]rune(s))); got != want {
			t.Errorf("UTF16Len(%q) = %d, want %d", s, got, want)
		}
	}
}

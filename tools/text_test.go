package tools

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"plain", "a\tb\nc äöü 🙂", "a\tb\nc äöü 🙂"},
		{"NUL", "a\x00b", "ab"},
		{"carriage return", "a\r\nb", "a\nb"},
		{"color", "\x1b[1;31mred\x1b[0m", "red"},
		{"title", "\x1b]0;title\x07after", "after"},
		{"title with another end", "\x1b]0;title\x1b\\after", "after"},
		{"endless title keeps the text", "\x1b]0;title", "0;title"},
		{"character set", "\x1b(Bx", "x"},
		{"cut sequence", "a\x1b[31", "a"},
		{"lone escape", "a\x1b", "a"},
		{"C1", "a\u009b31mb", "a31mb"},
		{"invalid", "a\xffb\xc3", "a\uFFFDb\uFFFD"},
		{"replacement character stays", "a\uFFFDb", "a\uFFFDb"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := clean(tt.in); got != tt.want {
				t.Errorf("clean(%q) = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

func FuzzClean(f *testing.F) {
	for _, seed := range []string{"plain", "\x1b[31", "\x1b]0;x\x1b\\y", "\xff\xfe", "a\u0085b", "\x1b", "\x1b(B", "\uFFFD"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := clean(text)
		if !utf8.ValidString(got) || strings.ContainsFunc(got, control) {
			t.Fatalf("%q became %q", text, got)
		}
		if again := clean(got); again != got {
			t.Fatalf("%q became %q, then %q", text, got, again)
		}
	})
}

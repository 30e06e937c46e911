package tools

import (
	"strings"
	"unicode/utf8"
)

// maxWhole is the most bytes of one result that are looked at and kept. What a
// tool returns beyond them is dropped.
const maxWhole = 64 << 20

// clean makes text safe to store and to show: valid UTF-8 without NUL, terminal
// control sequences or other control characters than newline and tab.
func clean(s string) string {
	if plain(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		if s[i] == 0x1b {
			i += escape(s[i:])
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if !control(r) {
			b.WriteRune(r) // an invalid byte becomes U+FFFD
		}
		i += n
	}
	return b.String()
}

func plain(s string) bool {
	for i, r := range s {
		if control(r) || r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD") {
			return false
		}
	}
	return true
}

// control reports C0, DEL and C1 characters, newline and tab excepted.
func control(r rune) bool {
	return r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0
}

// escape returns the length of the terminal sequence that s, which starts with
// ESC, begins with: CSI, a string such as OSC, or a short one. A string without
// an end within reason is taken for a short sequence, so that it cannot swallow
// the text behind it.
func escape(s string) int {
	const maxString = 4 << 10
	if len(s) < 2 {
		return len(s)
	}
	switch s[1] {
	case '[':
		i := 2
		for i < len(s) && s[i] >= 0x20 && s[i] <= 0x3f {
			i++
		}
		if i < len(s) && s[i] >= 0x40 && s[i] <= 0x7e {
			i++
		}
		return i
	case ']', 'P', 'X', '^', '_':
		for i := 2; i < min(len(s), maxString); i++ {
			if s[i] == 0x07 {
				return i + 1
			}
			if s[i] == 0x1b && i+1 < len(s) && s[i+1] == '\\' {
				return i + 2
			}
		}
		return 2
	}
	i := 1
	for i < len(s) && s[i] >= 0x20 && s[i] <= 0x2f {
		i++
	}
	if i < len(s) && s[i] >= 0x30 && s[i] <= 0x7e {
		i++
	}
	return i
}

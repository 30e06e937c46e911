package connectors

import (
	"unicode"
	"unicode/utf8"
)

// cluster is the length in bytes of the visible character that s begins with.
// It is a little coarser than Unicode's grapheme clusters.
func cluster(s string) int {
	r, n := utf8.DecodeRuneInString(s)
	if r < utf8.RuneSelf && (n == len(s) || s[n] < utf8.RuneSelf) {
		return n
	}
	flag := regional(r)
	for n < len(s) {
		next, size := utf8.DecodeRuneInString(s[n:])
		switch {
		case next == utf8.RuneError && size == 1:
			return n
		case next == zeroWidthJoiner:
			n += size
			if n < len(s) && s[n] >= utf8.RuneSelf {
				_, size = utf8.DecodeRuneInString(s[n:])
				n += size
			}
		case flag && regional(next):
			n += size
			flag = false
		case extends(next):
			n += size
		default:
			return n
		}
	}
	return n
}

const zeroWidthJoiner = '\u200d'

func regional(r rune) bool { return r >= 0x1f1e6 && r <= 0x1f1ff }

// extends reports whether r belongs to the character before it.
func extends(r rune) bool {
	return r >= 0x300 && (unicode.In(r, unicode.Mn, unicode.Me, unicode.Mc) ||
		r >= 0x1f3fb && r <= 0x1f3ff || // skin tones
		r >= 0xe0020 && r <= 0xe007f || // tags of regional flags
		r >= 0x1160 && r <= 0x11ff) // Hangul vowels and finals
}

package dashboard

import (
	"fmt"
	"strings"
)

// turning reports the characters that turn the direction of writing of what
// follows: embeddings and overrides, and isolates.
func turning(r rune) (overrides, isolates bool) {
	return r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069'
}

// straight leaves out the characters that turn the direction of writing: in one
// line among others they are of no use.
func straight(r rune) rune {
	if overrides, isolates := turning(r); overrides || isolates {
		return -1
	}
	return r
}

// unturned shows the overrides in the text of a page as what they are: with one,
// "gnp.exe" is read as "exe.png". Attributes and fields keep them, as they go
// back to where they came from. Isolates stay: they end with their element. Our
// templates write < and > around tags alone.
func unturned(html string) string {
	if !strings.Contains(html, "\u202a"[:2]) {
		return html
	}
	var b strings.Builder
	b.Grow(len(html))
	tag, field := false, false
	for i, r := range html {
		switch overrides, _ := turning(r); {
		case overrides && !tag && !field:
			fmt.Fprintf(&b, "[U+%04X]", r)
			continue
		case r == '<':
			tag = true
			switch rest := html[i+1:]; {
			case strings.HasPrefix(rest, "textarea"):
				field = true
			case strings.HasPrefix(rest, "/textarea"):
				field = false
			}
		case r == '>':
			tag = false
		}
		b.WriteRune(r)
	}
	return b.String()
}

package connectors

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// spansRoom is the room for what closes the spans at a cut, of at most spansOpen.
	spansRoom = 2 * spansOpen
	spansOpen = 4
	// leastSpans is the length of a part below which spans are cut without repair.
	leastSpans = 8 * spansRoom
)

// An openSpan is the run of marks that opens bold, italic, struck or hidden text, or code, at an index.
type openSpan struct {
	mark string
	at   int
}

// spans returns what opens again after c the spans that c cuts, and what closes them before it. It
// is nothing outside of a span, and where more than spansOpen are open.
func (s splitter) spans(c cut) (opens, closes string) {
	if c.to == 0 || c.next == len(s.text) || strings.ContainsAny(s.text[c.to-1:c.to]+s.text[c.next:c.next+1], "`*_~|") && c.to == c.next {
		return "", ""
	}
	from := s.blockStart(c.to)
	to := s.blockEnd(c.to)
	if c.next >= to || s.blockStart(c.next) != from {
		return "", ""
	}
	var open []openSpan // at the end of what is read
	var cut []openSpan  // of those, open at the cut
	for i, seen := from, false; i < to; {
		if i >= c.to && !seen {
			cut, seen = append(cut, open...), true
			if len(cut) == 0 {
				return "", ""
			}
		}
		n := 1
		switch s.text[i] {
		case '\\':
			n = 2
		case '`', '*', '_', '~', '|':
			n = runOf(s.text[i:to])
			open = s.mark(open, i, n, to)
		}
		i += n
	}
	for _, x := range cut {
		if !slices.Contains(open, x) && len(x.mark) <= 2 { // its end comes
			opens, closes = opens+x.mark, x.mark+closes
		}
	}
	if len(opens) > spansRoom {
		return "", ""
	}
	return opens, closes
}

// blockStart returns the start of the paragraph, heading or item of a list that contains i.
func (s splitter) blockStart(i int) int {
	start := lineStart(s.text, i)
	for start > 0 && !beginsBlock(s.text[start:]) && !blank(s.text[lineStart(s.text, start-1):start]) {
		start = lineStart(s.text, start-1)
	}
	return start
}

// blockEnd returns the end of the paragraph, heading or item of a list that contains i.
func (s splitter) blockEnd(i int) int {
	for end := s.lineEnd(i); ; end = s.lineEnd(end) {
		if end == len(s.text) || beginsBlock(s.text[end:]) || blank(s.text[end:s.lineEnd(end)]) {
			return end
		}
	}
}

func blank(line string) bool { return strings.TrimSpace(line) == "" }

// beginsBlock reports whether a line begins a block, into which no span reaches.
func beginsBlock(line string) bool {
	line = strings.TrimLeft(line, " \t")
	if line == "" || strings.IndexByte("#>|", line[0]) >= 0 || beginsFence(line) {
		return true
	}
	if strings.IndexByte("-*+", line[0]) >= 0 {
		return len(line) > 1 && line[1] == ' '
	}
	item := strings.TrimLeft(line, "0123456789")
	return item != line && (strings.HasPrefix(item, ". ") || strings.HasPrefix(item, ") "))
}

// runOf is the length of the run of the mark that begins s.
func runOf(s string) int { return len(s) - len(strings.TrimLeft(s, s[:1])) }

// mark returns the open spans after the run of n marks at i. In code there are no others.
func (s splitter) mark(open []openSpan, i, n, to int) []openSpan {
	mark := s.text[i : i+n]
	if k := len(open); k > 0 && open[k-1].mark[0] == '`' {
		if open[k-1].mark == mark {
			return open[:k-1]
		}
		return open
	}
	before, _ := utf8.DecodeLastRuneInString(s.text[:i])
	after, _ := utf8.DecodeRuneInString(s.text[i+n : to])
	word := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	begins := i+n < to && !unicode.IsSpace(after) && (mark[0] != '_' || i == 0 || !word(before))
	ends := i > 0 && !unicode.IsSpace(before) && (mark[0] != '_' || i+n == to || !word(after))
	if mark[0] != '`' && ends {
		for k := len(open) - 1; k >= 0; k-- {
			if open[k].mark == mark {
				return open[:k:k]
			}
		}
	}
	if mark[0] == '`' || begins && (n == 2 || n == 1 && mark[0] != '~' && mark[0] != '|') {
		open = append(open[:len(open):len(open)], openSpan{mark, i})
	}
	return open
}

package connectors

import (
	"slices"
	"sort"
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
	// mostOpen bounds the spans that are open at once: of more, the oldest counts as text.
	mostOpen = 32
)

// A markedSpan is bold, italic, struck or hidden text, or code, that begins at an index with a run of
// marks of length n.
type markedSpan struct {
	at, n  int
	end    int // the index of the run of marks that ends it, 0 for none
	parent int // the innermost span in which it begins, -1 for none
}

// spans returns what opens again after c the spans that c cuts, and what closes them before it. It
// is nothing outside of a span, and where more than spansOpen are open.
func (s splitter) spans(c cut) (opens, closes string) {
	if c.to == 0 || c.next == len(s.text) || strings.ContainsAny(s.text[c.to-1:c.to]+s.text[c.next:c.next+1], "`*_~|") && c.to == c.next {
		return "", ""
	}
	i := sort.Search(len(s.marked), func(i int) bool { return s.marked[i].at >= c.to }) - 1
	for range mostOpen {
		if i < 0 {
			break
		}
		x := s.marked[i]
		if x.end >= c.next && x.n <= 2 {
			mark := s.text[x.at : x.at+x.n]
			opens, closes = mark+opens, closes+mark
		}
		i = x.parent
	}
	if len(opens) > spansRoom {
		return "", ""
	}
	return opens, closes
}

// A spanScan finds the spans of a text in one pass.
type spanScan struct {
	text  string
	spans []markedSpan // in the order of their beginnings
	open  []int        // the indexes of those that are open, outermost first
}

// markedSpans returns the spans of text in the order of their beginnings, also those that never end.
// Its work grows with the length of the text, whatever marks it has.
func markedSpans(text string) []markedSpan {
	s := spanScan{text: text}
	for from := 0; from < len(text); {
		to := blockEnd(text, from)
		s.open = s.open[:0]
		for i := from; i < to; {
			n := 1
			switch text[i] {
			case '\\':
				n = 2
			case '`', '*', '_', '~', '|':
				n = runOf(text[i:to])
				s.mark(i, n, to)
			}
			i += n
		}
		from = to
	}
	return s.spans
}

// blockEnd returns the end of the paragraph, heading or item of a list that contains i.
func blockEnd(text string, i int) int {
	for end := lineEnd(text, i); ; end = lineEnd(text, end) {
		if end == len(text) || beginsBlock(text[end:]) || blank(text[end:lineEnd(text, end)]) {
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

// mark opens or ends a span at the run of n marks at i, in a block that ends at to. In code there are
// no others.
func (s *spanScan) mark(i, n, to int) {
	mark := s.text[i : i+n]
	if k := len(s.open) - 1; k >= 0 && s.markOf(k)[0] == '`' {
		if s.markOf(k) == mark {
			s.endFrom(k, i)
		}
		return
	}
	before, _ := utf8.DecodeLastRuneInString(s.text[:i])
	after, _ := utf8.DecodeRuneInString(s.text[i+n : to])
	word := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	begins := i+n < to && !unicode.IsSpace(after) && (mark[0] != '_' || i == 0 || !word(before))
	ends := i > 0 && !unicode.IsSpace(before) && (mark[0] != '_' || i+n == to || !word(after))
	if mark[0] != '`' && ends {
		for k := len(s.open) - 1; k >= 0; k-- {
			if s.markOf(k) == mark {
				s.endFrom(k, i)
				return
			}
		}
	}
	if mark[0] == '`' || begins && (n == 2 || n == 1 && mark[0] != '~' && mark[0] != '|') {
		s.begin(i, n)
	}
}

// markOf returns the marks that began the k-th open span.
func (s *spanScan) markOf(k int) string {
	x := s.spans[s.open[k]]
	return s.text[x.at : x.at+x.n]
}

func (s *spanScan) begin(i, n int) {
	parent := -1
	if k := len(s.open) - 1; k >= 0 {
		parent = s.open[k]
	}
	if len(s.open) == mostOpen {
		s.open = slices.Delete(s.open, 0, 1)
	}
	s.open = append(s.open, len(s.spans))
	s.spans = append(s.spans, markedSpan{at: i, n: n, parent: parent})
}

// endFrom ends the k-th open span at i, and with it those that began in it.
func (s *spanScan) endFrom(k, i int) {
	for _, x := range s.open[k:] {
		s.spans[x].end = i
	}
	s.open = s.open[:k]
}

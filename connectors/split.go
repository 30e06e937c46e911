package connectors

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Split cuts text into parts of at most limit, measured by length, which must
// add up: the length of a text is the sum of the lengths of its runes.
//
// It cuts at the end of a paragraph, else of a line, of a sentence, of a word,
// and only then anywhere; never inside a rune or between runes that make one
// visible character (combining marks, joined emoji, flags), unless that
// character alone is longer than limit. A Markdown fence that is cut is closed
// at the end of the part and opened again, with its language, in the next. So is bold, italic, struck
// and hidden text, and a code span.
//
// The parts joined are the text, but for what closes and opens fences and
// spans, and white space at the cuts: outside a fence the spaces and blank
// lines around the cut are left out (the indentation of the next line stays),
// inside a fence the newline that the cut replaces, and blank lines that fill
// a part. No part is blank or nothing but an empty fence; of a text that is
// nothing else and does not fit, no part remains. A text that fits comes back
// unchanged.
//
// No part is above a limit of 2r+4 or more, where r is the length of the
// longest rune: 8 in UTF-16 units, 12 in bytes. Without fences r is enough; a
// limit below that is taken as r.
func Split(text string, limit int, length func(string) int) []string {
	if length(text) <= limit {
		return []string{text}
	}
	s := splitter{text: text, limit: limit, length: length}
	var parts []string
	for _, p := range s.pieces() {
		parts = append(parts, s.part(p))
	}
	return parts
}

// UTF16Len is the length of s in UTF-16 code units. A broken byte counts as
// one.
func UTF16Len(s string) int {
	n := 0
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			i++
			n++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		n++
		if r > 0xffff {
			n++
		}
	}
	return n
}

type splitter struct {
	text   string
	limit  int
	length func(string) int
	fits   func(string) bool // reports whether a part fits as it is formatted; nil for always
	marked []markedSpan      // of the text; none for a limit below leastSpans
}

// A piece is text[from:to] between what repairs fences and spans.
type piece struct {
	open, close string
	from, to    int
}

// A fence is an open Markdown fence; its zero value is none.
type fence struct {
	line string // the line that opened it, trimmed
	mark string // its run of backticks or tildes
}

// Cut kinds, best first.
const (
	cutParagraph = iota
	cutLine
	cutSentence
	cutWord
	cutHard
	cutKinds
)

// A cut ends a part at to; the next begins at next, inside fence.
type cut struct {
	to, next int // to is 0 for no cut
	used     int // length of the part up to the cut
	fence    fence
	spans    string // opens again in the next part what is open at the cut
}

func (s splitter) pieces() []piece {
	if s.limit >= leastSpans {
		s.marked = markedSpans(s.text)
	}
	var out []piece
	pos, in := s.skipEmpty(0, fence{})
	spans := ""
	rest := s.length(s.text[pos:])
	for pos < len(s.text) {
		p := piece{from: pos, to: len(s.text)}
		if in.mark != "" {
			p.open = in.line + "\n"
		} else {
			p.open = spans
		}
		if s.length(p.open)+rest <= s.limit && s.shows(p) {
			return append(out, p)
		}
		var c cut
		p, c = s.fill(p, in)
		if strings.TrimSpace(s.text[p.from:p.to]) != "" {
			out = append(out, p)
		}
		next, after := s.skipEmpty(c.next, c.fence)
		rest -= s.length(s.text[pos:next])
		pos, in, spans = next, after, c.spans
	}
	return out
}

// skipEmpty skips blank lines and empty fences at the start of a part, inside
// fence in. An open fence continues unless only its closing line is left.
func (s splitter) skipEmpty(pos int, in fence) (int, fence) {
	for {
		code, f := pos, in
		if in.mark == "" {
			pos = s.skipBlankLines(pos)
			if code, f = pos, s.lineFence(pos, in, true); f.mark != "" {
				code = s.lineEnd(pos)
			}
		}
		shown := s.skipBlankLines(code)
		switch {
		case f.mark == "":
			return pos, in
		case shown == len(s.text):
			return shown, fence{}
		case s.lineFence(shown, f, true).mark != "":
			return pos, in
		}
		pos, in = s.lineEnd(shown), fence{}
	}
}

func (s splitter) lineEnd(pos int) int { return lineEnd(s.text, pos) }

// lineEnd returns the start of the line of text after the one that contains pos.
func lineEnd(text string, pos int) int {
	if n := strings.IndexByte(text[pos:], '\n'); n >= 0 {
		return pos + n + 1
	}
	return len(text)
}

func closing(body string, f fence) string {
	if strings.HasSuffix(body, "\n") {
		return f.mark
	}
	return "\n" + f.mark
}

// cut finds where the part that begins at pos ends.
func (s splitter) cut(pos int, in fence, budget int) cut {
	start := in
	best := [cutKinds]cut{}
	used, after := 0, in
	shown := false // whether a cut here shows part of the fence
	i := pos
	for i < len(s.text) {
		if i == pos || s.text[i-1] == '\n' {
			after = s.lineFence(i, in, i == pos)
		}
		if c, kind, ok := s.cutAt(i, in, after); ok && c.to > pos && (shown || c.fence.mark == "") {
			if c.used = used; c.fence.mark != "" {
				c.used += s.length("\n" + c.fence.mark)
			}
			if c.used <= budget {
				best[kind] = c
			}
		}
		n := cluster(s.text[i:])
		if used += s.length(s.text[i : i+n]); used > budget {
			break
		}
		shown = shown || in.mark != "" && strings.TrimSpace(s.text[i:i+n]) != ""
		if s.text[i+n-1] == '\n' {
			shown = shown && in == after
			in = after
		}
		i += n
	}
	for _, half := range []int{budget / 3, 0} {
		for _, c := range best {
			if c.to > 0 && c.used >= half {
				return c
			}
		}
	}
	return s.force(pos, start, budget)
}

// force makes a cut if there is no good one: the text at pos is longer than a
// part, or opens a fence that is. It never closes a fence that shows nothing:
// then the cut is empty, and the next part starts after the text that cannot be
// shown.
func (s splitter) force(pos int, in fence, budget int) cut {
	to := pos
	if in.mark == "" {
		if f := s.lineFence(pos, in, true); f.mark != "" {
			return cut{to: pos, next: s.lineEnd(pos), fence: f}
		}
	} else {
		to = s.skipBlank(pos)
		_, first := utf8.DecodeRuneInString(s.text[to:])
		budget -= s.length("\n"+in.mark) + s.length(s.text[pos:to])
		if to > pos && budget < s.length(s.text[to:to+first]) {
			return cut{to: pos, next: to, fence: in}
		}
	}
	to += s.runes(to, budget)
	return cut{to: to, next: to, fence: in}
}

// cutAt returns the possible cut before s.text[i], if any. in is the fence at
// i, after the fence that follows the current line.
func (s splitter) cutAt(i int, in, after fence) (c cut, kind int, ok bool) {
	kind, c = cutHard, cut{to: i, next: i, fence: in}
	at := s.text[i]
	switch {
	case at != '\n' && in != after: // inside a line that opens or closes a fence
		return c, kind, false
	case at == '\n' && in.mark == "" && after.mark != "": // just behind an opening line
		return c, kind, false
	case at == '\n' && after.mark != "":
		if s.lineFence(i+1, after, false).mark == "" { // before the closing line
			return c, kind, false
		}
		kind, c.next = cutLine, i+1
	case at == '\n':
		if strings.HasSuffix(strings.TrimRight(s.text[:i], " \t\r"), "\n") { // a blank line: noted before it
			return c, kind, false
		}
		c.fence = fence{}
		c.to = len(strings.TrimRight(s.text[:i], " \t\r"))
		c.next = s.skipBlankLines(i)
		kind = cutLine
		if strings.Count(s.text[c.to:c.next], "\n") > 1 {
			kind = cutParagraph
		}
	case in.mark == "" && (at == ' ' || at == '\t') && i > 0 && !space(s.text[i-1]):
		c.next = i + len(s.text[i:]) - len(strings.TrimLeft(s.text[i:], " \t"))
		kind = cutWord
		if strings.ContainsAny(s.text[i-1:i], ".!?") || endsWith(s.text[:i], "؟", "۔", "।", "॥") {
			kind = cutSentence
		}
	case in.mark == "" && endsSentence(s.text[:i]):
		kind = cutSentence
	}
	return c, kind, kind <= cutLine || !beginsFence(s.text[c.next:])
}

func space(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// endsSentence reports a full stop after which East Asian scripts put no space.
func endsSentence(s string) bool { return endsWith(s, "。", "！", "？") }

func endsWith(s string, ends ...string) bool {
	return slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(s, end) })
}

// beginsFence reports whether s must not start a line, because it would open or
// close a fence.
func beginsFence(s string) bool {
	return strings.HasPrefix(s, "```") || strings.HasPrefix(s, "~~~")
}

// lineFence returns the fence after the line that begins at i, where in is the
// fence before it. The rest of a line that was cut opens no fence.
func (s splitter) lineFence(i int, in fence, first bool) fence {
	line, _, _ := strings.Cut(s.text[i:], "\n")
	line = strings.TrimSpace(line)
	if !beginsFence(line) {
		return in
	}
	mark := line[:len(line)-len(strings.TrimLeft(line, line[:1]))]
	if in.mark != "" {
		if mark == line && line[0] == in.mark[0] && len(mark) >= len(in.mark) {
			return fence{}
		}
		return in
	}
	midLine := first && i > 0 && s.text[i-1] != '\n' && strings.TrimLeft(s.text[lineStart(s.text, i):i], " \t") != ""
	if midLine || line[0] == '`' && strings.Contains(line[len(mark):], "`") || s.length(line) > s.limit/4 {
		return in
	}
	return fence{line: line, mark: mark}
}

func lineStart(s string, i int) int { return strings.LastIndexByte(s[:i], '\n') + 1 }

// skipBlankLines returns the start of the first line at or after i that is not
// blank, including its indentation, or the end of the text.
func (s splitter) skipBlankLines(i int) int {
	shown := s.skipBlank(i)
	if shown == len(s.text) {
		return shown
	}
	return i + strings.LastIndexByte(s.text[i:shown], '\n') + 1
}

// skipBlank returns the end of the white space that begins at i.
func (s splitter) skipBlank(i int) int {
	return len(s.text) - len(strings.TrimLeftFunc(s.text[i:], unicode.IsSpace))
}

// runes returns how many bytes from pos fit if a visible character is longer
// than a part: as many runes of its line as fit, at least one.
func (s splitter) runes(pos, budget int) int {
	n, used := 0, 0
	for n < len(s.text)-pos {
		_, size := utf8.DecodeRuneInString(s.text[pos+n:])
		used += s.length(s.text[pos+n : pos+n+size])
		if n > 0 && (used > budget || s.text[pos+n] == '\n') {
			break
		}
		n += size
	}
	return n
}

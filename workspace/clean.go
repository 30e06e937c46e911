package workspace

import (
	"unicode/utf8"
)

// maxString is the longest terminal string, such as a window's title, that is
// taken for one. The text of a longer one is shown, so that a sequence without an
// end cannot hide what comes behind it.
const maxString = 4 << 10

// A cleaner drops terminal sequences and control characters from a text that
// comes in pieces. A carriage return becomes the end of the line, alone or with
// the newline behind it.
type cleaner struct {
	emit  func([]byte)
	state state
	back  bool   // a carriage return came last
	begun bool   // something came
	held  []byte // the text of a string that has no end yet
}

type state int

const (
	inText   state = iota
	inEscape       // behind ESC
	inShort        // behind ESC and intermediate characters
	inCSI          // behind ESC [
	inString       // in an OSC, DCS, SOS, PM or APC
	inEnd          // behind ESC in a string
)

// ground reports that plain text can be emitted as it is.
func (c *cleaner) ground() bool { return c.state == inText && !c.back }

func (c *cleaner) next(r rune) {
	first := !c.begun
	c.begun = true
	if first && r == '\uFEFF' {
		return // the mark of an encoding
	}
	switch c.state {
	case inText:
		c.plain(r)
	case inEscape:
		c.escape(r)
	case inShort:
		c.short(r)
	case inCSI:
		switch {
		case r >= 0x20 && r <= 0x3f:
		case r >= 0x40 && r <= 0x7e:
			c.state = inText
		default:
			c.state = inText
			c.plain(r)
		}
	case inString:
		c.string(r)
	case inEnd:
		if r == '\\' {
			c.held, c.state = nil, inText
			return
		}
		c.release()
		c.escape(r)
	}
}

func (c *cleaner) close() {
	if c.state == inString || c.state == inEnd {
		c.release()
	}
	c.state, c.back = inText, false
}

func (c *cleaner) plain(r rune) {
	switch {
	case r == '\r':
		c.back = true
		return
	case c.back:
		c.back = false
		c.put('\n')
		if r == '\n' {
			return
		}
	}
	switch {
	case r == 0x1b:
		c.state = inEscape
	case r == 0x9b:
		c.state = inCSI
	case r == 0x90 || r == 0x98 || r >= 0x9d && r <= 0x9f:
		c.state = inString
	case r == '\n' || r == '\t' || r >= 0x20 && r < 0x7f || r >= 0xa0:
		c.put(r)
	}
}

func (c *cleaner) escape(r rune) {
	switch r {
	case '[':
		c.state = inCSI
	case ']', 'P', 'X', '^', '_':
		c.state = inString
	default:
		c.short(r)
	}
}

func (c *cleaner) short(r rune) {
	switch {
	case r >= 0x20 && r <= 0x2f:
		c.state = inShort
	case r >= 0x30 && r <= 0x7e:
		c.state = inText
	default:
		c.state = inText
		c.plain(r)
	}
}

// string takes a character of a string. A line never ends in one, so what does
// was none.
func (c *cleaner) string(r rune) {
	switch {
	case r == 0x07 || r == 0x9c:
		c.held, c.state = nil, inText
	case r == 0x1b:
		c.state = inEnd
	case r == '\n' || r == '\r' || len(c.held) >= maxString:
		c.release()
		c.plain(r)
	case r == '\t' || r >= 0x20 && r < 0x7f || r >= 0xa0:
		c.held = utf8.AppendRune(c.held, r)
	}
}

func (c *cleaner) release() {
	held := c.held
	c.held, c.state = nil, inText
	if len(held) > 0 {
		c.emit(held)
	}
}

func (c *cleaner) put(r rune) {
	var b [utf8.UTFMax]byte
	c.emit(utf8.AppendRune(b[:0], r))
}

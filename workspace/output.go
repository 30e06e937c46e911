package workspace

import (
	"io"
	"sync"
	"unicode/utf8"
)

// maxHeld is how many raw bytes are kept in memory before the file for the whole
// output is begun, and how far the text may grow between two cuts.
const maxHeld = 128 << 10

// An Output collects what a command writes: the end of it as clean text, and all
// of it, as it came, in a file when the text is only a part.
//
// The text is the same however the bytes are split into writes. It is valid,
// without NUL, terminal sequences or other control characters than newline and
// tab; what is UTF-16 by its mark or its look is read as such. An Output takes
// less than 1 MiB of memory, whatever is written. It is safe for concurrent use.
type Output struct {
	mu      sync.Mutex
	spill   func() (io.Writer, error)
	whole   io.Writer
	lost    error // why the file does not have all of the first MaxWhole bytes
	spilled bool
	held    []byte // what came before the file was begun
	bytes   int64
	stored  int64 // of bytes: in the file
	chars   int64
	tail    []byte
	streams []*stream
}

// NewOutput makes an Output. whole is called once, when the file is needed, and
// returns where it is written to; nil keeps no file.
func NewOutput(whole func() (io.Writer, error)) *Output { return &Output{spill: whole} }

// Stream is a new source of the output, such as stdout: characters and sequences
// go on from one write to the next of the same stream. Writes never fail; a file
// that cannot be written does not keep a command from its end.
func (o *Output) Stream() io.Writer {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := &stream{to: o}
	s.text.emit = o.add
	o.streams = append(o.streams, s)
	return s
}

// Close ends all streams: what was half of a character is one that cannot be
// read. Writes after it are dropped. A second call does nothing.
func (o *Output) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range o.streams {
		if !s.closed {
			s.closed = true
			s.close()
		}
	}
}

// String is the text so far: its last MaxTail characters.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(last(o.tail))
}

// Bytes is how much was written.
func (o *Output) Bytes() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bytes
}

// Cut reports whether String is only a part of the text.
func (o *Output) Cut() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.chars > MaxTail
}

// Whole reports whether the file was begun, which may be before Cut is true, and
// why it has less than the first MaxWhole bytes.
func (o *Output) Whole() (begun bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.spilled, o.lost
}

func (o *Output) add(text []byte) {
	o.chars += int64(utf8.RuneCount(text))
	if len(text) > maxHeld { // only its end can stay
		text = text[len(text)-maxHeld:]
		o.tail = o.tail[:0]
		for len(text) > 0 && !utf8.RuneStart(text[0]) {
			text = text[1:]
		}
	}
	if len(o.tail)+len(text) > 2*maxHeld {
		o.tail = append(o.tail[:0], last(o.tail)...)
	}
	o.tail = append(o.tail, text...)
}

func last(text []byte) []byte {
	at := len(text)
	for n := 0; n < MaxTail && at > 0; n++ {
		_, size := utf8.DecodeLastRune(text[:at])
		at -= size
	}
	return text[at:]
}

func (o *Output) keep(p []byte) {
	o.bytes += int64(len(p))
	if o.spill == nil || o.lost != nil {
		return
	}
	if !o.spilled {
		if len(o.held)+len(p) <= maxHeld && o.chars <= MaxTail {
			o.held = append(o.held, p...)
			return
		}
		o.spilled = true
		o.whole, o.lost = o.spill()
		held := o.held
		o.held = nil
		o.store(held)
	}
	o.store(p)
}

func (o *Output) store(p []byte) {
	p = p[:min(int64(len(p)), MaxWhole-o.stored)]
	if o.lost != nil || len(p) == 0 {
		return
	}
	n, err := o.whole.Write(p)
	o.stored += int64(n)
	o.lost = err
}

type stream struct {
	to     *Output
	text   cleaner
	head   []byte // the beginning, until the encoding is known
	code   encoding
	rest   []byte // the part of a character
	closed bool
}

// An encoding is how a stream writes characters.
type encoding int

const (
	unknown encoding = iota
	utf8Text
	utf16Little
	utf16Big
)

func (s *stream) Write(p []byte) (int, error) {
	s.to.mu.Lock()
	defer s.to.mu.Unlock()
	if s.closed {
		return len(p), nil
	}
	// In parts, so that the text is known before the file is needed and a large
	// write needs no more memory than a small one.
	for rest := p; len(rest) > 0; {
		part := rest[:min(len(rest), 32<<10)]
		rest = rest[len(part):]
		s.read(part)
		s.to.keep(part)
	}
	return len(p), nil
}

func (s *stream) read(p []byte) {
	if s.code == unknown {
		s.head = append(s.head, p...)
		if s.code = guess(s.head); s.code == unknown {
			return
		}
		p, s.head = s.head, nil
	}
	if len(s.rest) > 0 {
		p = append(s.rest, p...)
		s.rest = nil
	}
	n := 0
	if s.code == utf8Text {
		n = s.utf8(p, false)
	} else {
		n = s.utf16(p, false)
	}
	if n < len(p) {
		s.rest = append([]byte(nil), p[n:]...)
	}
}

func (s *stream) close() {
	if s.code == unknown {
		s.code = utf8Text
		s.rest = s.head
	}
	if s.code == utf8Text {
		s.utf8(s.rest, true)
	} else {
		s.utf16(s.rest, true)
	}
	s.head, s.rest = nil, nil
	s.text.close()
}

// utf8 reads characters, and returns how many bytes they had; at the end, that is
// all.
func (s *stream) utf8(p []byte, end bool) int {
	at := 0
	for at < len(p) {
		if n := plainLen(p[at:]); n > 0 && s.text.ground() {
			s.text.emit(p[at : at+n])
			at += n
			continue
		}
		if !end && !utf8.FullRune(p[at:]) {
			break
		}
		r, n := utf8.DecodeRune(p[at:])
		s.text.next(r)
		at += n
	}
	return at
}

// plainLen is how many bytes at the beginning are characters that stay as they
// are, whatever comes before and after them.
func plainLen(p []byte) int {
	for i, c := range p {
		if (c < 0x20 && c != '\n' && c != '\t') || c >= 0x7f {
			return i
		}
	}
	return len(p)
}

func (s *stream) utf16(p []byte, end bool) int {
	unit := func(i int) rune {
		if s.code == utf16Little {
			return rune(p[i]) | rune(p[i+1])<<8
		}
		return rune(p[i])<<8 | rune(p[i+1])
	}
	at := 0
	for at+1 < len(p) {
		r := unit(at)
		n := 2
		switch {
		case r >= 0xd800 && r < 0xdc00: // the first of two
			if at+3 >= len(p) && !end {
				return at
			}
			first := r
			r = utf8.RuneError
			if at+3 < len(p) {
				if second := unit(at + 2); second >= 0xdc00 && second < 0xe000 {
					r = (first-0xd800)<<10 | (second - 0xdc00) + 0x10000
					n = 4
				}
			}
		case r >= 0xdc00 && r < 0xe000:
			r = utf8.RuneError
		}
		s.text.next(r)
		at += n
	}
	if end && at < len(p) {
		s.text.next(utf8.RuneError)
		at = len(p)
	}
	return at
}

// guess tells the encoding from the beginning of a stream: by its mark, or
// because every other byte of the first eight is NUL. Otherwise it is UTF-8.
func guess(head []byte) encoding {
	const enough = 8
	little, big := true, true
	for i, c := range head[:min(len(head), enough)] {
		if zero := c == 0; i%2 == 0 {
			little, big = little && !zero, big && zero
		} else {
			little, big = little && zero, big && !zero
		}
	}
	switch {
	case len(head) >= 2 && head[0] == 0xff && head[1] == 0xfe:
		return utf16Little
	case len(head) >= 2 && head[0] == 0xfe && head[1] == 0xff:
		return utf16Big
	case len(head) < 2 && (len(head) == 0 || head[0] >= 0xfe || little || big):
		return unknown
	case !little && !big:
		return utf8Text
	case len(head) < enough:
		return unknown
	case little:
		return utf16Little
	default:
		return utf16Big
	}
}

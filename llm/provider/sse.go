package provider

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"sync"
)

// Errors of a stream that is larger than allowed.
var (
	ErrLineTooLong = errors.New("a line of the answer is longer than 1 MiB")
	ErrTooLarge    = errors.New("the answer is larger than 32 MiB")
)

// The limits of an answer.
const (
	MaxLine   = 1 << 20  // bytes of one line, and of the data of one event
	MaxAnswer = 32 << 20 // bytes of one response
)

// readers are reused because a reader's buffer is most of what a short answer
// would allocate.
var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 16<<10) }}

var byteOrderMark = []byte("\xEF\xBB\xBF")

// An EventReader splits a stream of server-sent events. It accepts every form
// of the grammar (a byte order mark, lines that end in LF, CRLF or CR, comments,
// "data:" with and without a blank, data in several lines) and what servers
// make of it: an end of the stream without the last empty line. Nothing it
// holds grows beyond MaxLine.
type EventReader struct {
	r      *bufio.Reader
	begun  bool
	skipLF bool   // the last line ended in CR, so an LF belongs to it
	long   []byte // a line that does not fit the reader's buffer
	data   []byte
	err    error // why there are no more lines
}

// NewEventReader reads events of r. Close it when done.
func NewEventReader(r io.Reader) *EventReader {
	br := readers.Get().(*bufio.Reader)
	br.Reset(r)
	return &EventReader{r: br}
}

// Close gives the buffer back; nothing that Next returned may be used after.
func (e *EventReader) Close() {
	e.r.Reset(nil)
	readers.Put(e.r)
	e.r = nil
}

// Next returns the data of the next event that has any, valid until the next
// call, and at last why there are no more: io.EOF for an end that looks orderly.
// Only before that one an event may miss its empty line.
func (e *EventReader) Next() ([]byte, error) {
	e.data = e.data[:0]
	has := false
	for e.err == nil {
		line, err := e.line()
		if err != nil {
			e.err = err
			if len(line) == 0 {
				break
			}
		}
		if len(line) == 0 {
			if has && len(bytes.TrimSpace(e.data)) > 0 {
				return e.data, nil
			}
			e.data, has = e.data[:0], false
			continue
		}
		value, ok := field(line, "data")
		if !ok {
			continue
		}
		if has {
			e.data = append(e.data, '\n')
		}
		if len(e.data)+len(value) > MaxLine {
			e.err = ErrLineTooLong
			return nil, e.err
		}
		e.data, has = append(e.data, value...), true
	}
	if errors.Is(e.err, io.EOF) && has && len(bytes.TrimSpace(e.data)) > 0 {
		return e.data, nil
	}
	return nil, e.err
}

// field returns the value of a line that sets the field name.
func field(line []byte, name string) ([]byte, bool) {
	if len(line) < len(name) || string(line[:len(name)]) != name {
		return nil, false
	}
	line = line[len(name):]
	if len(line) == 0 {
		return nil, true
	}
	if line[0] != ':' {
		return nil, false
	}
	return bytes.TrimPrefix(line[1:], []byte(" ")), true
}

// line returns the next line without its end. With an error it returns what
// came since the last end of a line.
func (e *EventReader) line() ([]byte, error) {
	e.long = e.long[:0]
	for {
		if _, err := e.r.Peek(1); err != nil {
			return e.firstLine(e.long), err
		}
		buf, _ := e.r.Peek(e.r.Buffered()) // what is buffered can be peeked
		if e.skipLF {
			e.skipLF = false
			if buf[0] == '\n' {
				_, _ = e.r.Discard(1) // is buffered
				continue
			}
		}
		end := bytes.IndexByte(buf, '\n')
		if cr := bytes.IndexByte(buf[:max(end, 0)], '\r'); cr >= 0 {
			end = cr
		} else if end < 0 {
			end = bytes.IndexByte(buf, '\r')
		}
		part := buf
		if end >= 0 {
			part = buf[:end]
		}
		if len(e.long)+len(part) > MaxLine {
			return nil, ErrLineTooLong
		}
		if end < 0 {
			e.long = append(e.long, part...)
			_, _ = e.r.Discard(len(part)) // is buffered
			continue
		}
		e.skipLF = buf[end] == '\r'
		_, _ = e.r.Discard(end + 1) // is buffered, and leaves part in place
		if len(e.long) > 0 {
			part = append(e.long, part...)
			e.long = part
		}
		return e.firstLine(part), nil
	}
}

// firstLine takes the byte order mark off the first line.
func (e *EventReader) firstLine(line []byte) []byte {
	if !e.begun {
		e.begun = true
		line = bytes.TrimPrefix(line, byteOrderMark)
	}
	return line
}

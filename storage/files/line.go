package files

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"

	"github.com/claybot/claybot"
)

// crcMember is the last member of a history line; the question marks stand for
// the digits.
const crcMember = `,"crc":"????????"}`

// offMember begins the member before it, if the line has one: its own offset.
const offMember = `,"off":`

const hexDigits = "0123456789abcdef"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// An encoder turns records into history lines without allocating for each.
type encoder struct {
	buf  bytes.Buffer
	json *json.Encoder
}

// linesAt returns records as lines, each with its crc and a newline, as they are written
// at offset off of a file. Each line has its own offset, so that a block of lines that was
// moved differs from one that was written; below 0 they have none. The result is valid
// until the next call.
func (e *encoder) linesAt(records []claybot.Record, off int64) ([]byte, error) {
	if e.json == nil {
		e.json = json.NewEncoder(&e.buf)
		e.json.SetEscapeHTML(false)
	}
	e.buf.Reset()
	for i := range records {
		start := e.buf.Len()
		if err := e.json.Encode(&records[i]); err != nil {
			return nil, fmt.Errorf("encode record: %w", err)
		}
		e.buf.Truncate(e.buf.Len() - len("}\n"))
		if off >= 0 {
			e.buf.WriteString(offMember)
			e.buf.Write(strconv.AppendInt(e.buf.AvailableBuffer(), off+int64(start), 10))
		}
		e.buf.WriteByte('}')
		sum := crc32.Checksum(e.buf.Bytes()[start:], castagnoli)
		e.buf.Truncate(e.buf.Len() - len("}"))
		e.buf.WriteString(`,"crc":"`)
		for shift := 28; shift >= 0; shift -= 4 {
			e.buf.WriteByte(hexDigits[sum>>shift&15])
		}
		e.buf.WriteString("\"}\n")
	}
	return e.buf.Bytes(), nil
}

var (
	errCRC    = errors.New("crc does not match")
	errNoType = errors.New("record without a type")
)

// decodeLine reads one line of history, without its newline.
func decodeLine(line []byte) (claybot.Record, error) {
	var r claybot.Record
	if err := checkCRC(line); err != nil {
		return r, err
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return claybot.Record{}, fmt.Errorf("decode record: %w", err)
	}
	if r.Type == "" {
		return claybot.Record{}, errNoType
	}
	return r, nil
}

// statedOffset returns the offset that a line says it has; false: it says none. The
// line's crc was verified.
func statedOffset(line []byte) (int64, bool) {
	end := len(line) - len(crcMember)
	if end < 1 || !bytes.HasPrefix(line[end:], []byte(crcMember[:8])) {
		return 0, false
	}
	at := bytes.LastIndex(line[max(0, end-len(offMember)-20):end], []byte(offMember))
	if at < 0 {
		return 0, false
	}
	off, err := strconv.ParseInt(string(line[max(0, end-len(offMember)-20):end][at+len(offMember):]), 10, 64)
	return off, err == nil
}

// checkCRC verifies the crc of a line that has one. A member that is a crc but
// for one or two damaged bytes is a damaged crc and not another member:
// otherwise a flipped bit in its name would let the line pass unchecked.
func checkCRC(line []byte) error {
	at := len(line) - len(crcMember)
	if at < 1 {
		return nil
	}
	wrong, digits, sum := 0, true, uint32(0)
	for i, c := range line[at:] {
		switch want := crcMember[i]; want {
		case '?':
			d := bytes.IndexByte([]byte(hexDigits), c)
			digits = digits && d >= 0
			sum = sum<<4 | uint32(d&15)
		case c:
		default:
			wrong++
		}
	}
	if wrong > 2 {
		return nil // a line without crc
	}
	got := crc32.Update(crc32.Checksum(line[:at], castagnoli), castagnoli, []byte{'}'})
	if wrong > 0 || !digits || got != sum {
		return errCRC
	}
	return nil
}

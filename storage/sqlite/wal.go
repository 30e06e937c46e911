package sqlite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
)

const (
	walHeader = 32
	walFrame  = 24 + pageSize
	walMagic  = 0x377f0682
)

// A walSum is the checksum of SQLite's log, which goes on from frame to frame.
type walSum [2]uint32

func (s walSum) add(order binary.ByteOrder, b []byte) walSum {
	for ; len(b) >= 8; b = b[8:] {
		s[0] += order.Uint32(b) + s[1]
		s[1] += order.Uint32(b[4:]) + s[0]
	}
	return s
}

func storedSum(b []byte) walSum {
	return walSum{binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])}
}

// lostCommits counts the commits in the log of the file at path that are whole and that
// SQLite will not use, because the log is damaged before them. A loss of power may leave
// such a log as well: then nobody was told that they were durable.
func lostCommits(path string) (lost int, err error) {
	f, err := os.Open(path + "-wal")
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	head := make([]byte, walHeader)
	if _, err := io.ReadFull(f, head); err != nil {
		return 0, nil //nolint:nilerr // it was not begun
	}
	var order binary.ByteOrder = binary.LittleEndian
	if head[3]&1 == 1 {
		order = binary.BigEndian
	}
	sum := walSum{}.add(order, head[:24])
	began := binary.BigEndian.Uint32(head)&^1 == walMagic && sum == storedSum(head[24:]) // else it does not say which frames are of this log
	whole := began
	salts := head[16:24]
	frame, before, known := make([]byte, walFrame), sum, true
	for {
		if _, err := io.ReadFull(f, frame); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return lost, nil
		} else if err != nil {
			return lost, err
		}
		// A frame stands for itself when its checksum goes on from the one that is stored
		// before it, or, where that is not there any more, when it is of this log.
		stored := storedSum(frame[16:])
		same := !began || bytes.Equal(frame[8:16], salts)
		own := !known || before.add(order, frame[:8]).add(order, frame[24:]) == stored
		whole = whole && same && sum.add(order, frame[:8]).add(order, frame[24:]) == stored
		if !whole && own && same && binary.BigEndian.Uint32(frame[4:]) != 0 {
			lost++
		}
		sum, before, known = stored, stored, same
	}
}

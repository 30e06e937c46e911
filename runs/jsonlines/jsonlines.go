// Package jsonlines is a sink that appends events to a file, one JSON object in
// the wire form of package runs on each line.
//
// The lines of a batch are on disk when Publish returns. The file may be
// renamed, removed or cut short at any time: what comes later goes to a new
// file at the same path, or behind what is left. A last line that a crash left
// unfinished is removed before anything is added; its event comes again. A
// reader may therefore find an event twice, never half of one in front of a
// whole one; run and seq tell them apart.
//
// The file is made for its owner alone (0600). Only cmd and tests import this
// package.
package jsonlines

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
)

var _ runs.Sink = (*Sink)(nil)

// A Sink appends to one file, one batch at a time. It is safe for concurrent use: relays of one process that have the
// same file share its Sink, since two would cut short what the other one is writing.
type Sink struct {
	path string

	turn chan struct{} // holds a token while file is in use
	file *os.File      // nil: not open
}

// New returns a sink for the file at path, whose folder must exist. The file is
// opened when there is something to write.
func New(path string) *Sink { return &Sink{path: path, turn: make(chan struct{}, 1)} }

// Close closes the file, unless a batch is under way: it is that of another relay, which closes it when it ends. A later
// Publish opens it again.
func (s *Sink) Close() error {
	select {
	case s.turn <- struct{}{}:
	default:
		return nil
	}
	defer s.end()
	return s.close()
}

// end lets the next batch begin.
func (s *Sink) end() { <-s.turn }

func (s *Sink) close() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}

// Publish implements runs.Sink.
func (s *Sink) Publish(ctx context.Context, events []claybot.Event) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if len(events) == 0 {
		return nil
	}
	var lines bytes.Buffer
	for _, e := range events {
		lines.Write(runs.Encode(e))
		lines.WriteByte('\n')
	}
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("append events to %s: another batch is still under way: %w", s.path, context.Cause(ctx))
	}
	defer s.end()
	for range 3 {
		if err := s.write(lines.Bytes()); err != nil {
			_ = s.close() // err says what matters; opening again repairs
			return fmt.Errorf("append events to %s: %w", s.path, err)
		}
		// A file that was deleted meanwhile may be gone with the lines.
		if s.current() {
			return nil
		}
	}
	return fmt.Errorf("append events to %s: the file is taken away again and again", s.path)
}

// write appends to the file at the path.
func (s *Sink) write(lines []byte) error {
	if !s.current() {
		_ = s.close() // all that was written to it is synced
		if err := s.open(); err != nil {
			return err
		}
	}
	if _, err := s.file.Write(lines); err != nil {
		return err
	}
	return s.file.Sync()
}

// current reports whether the open file is the one at the path.
func (s *Sink) current() bool {
	if s.file == nil {
		return false
	}
	ours, err := s.file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(s.path)
	return err == nil && os.SameFile(ours, there)
}

// open opens the file, makes it when there is none, and repairs its end.
func (s *Sink) open() error {
	if st, err := os.Stat(s.path); err == nil && !st.Mode().IsRegular() {
		return errors.New("this is not a regular file")
	}
	f, err := os.OpenFile(s.path, os.O_RDWR|os.O_APPEND, 0)
	made := errors.Is(err, fs.ErrNotExist)
	if made {
		f, err = os.OpenFile(s.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	}
	if err != nil {
		return err
	}
	if made {
		err = syncFolder(filepath.Dir(s.path))
	} else {
		err = repair(f)
	}
	if err != nil {
		_ = f.Close() // err says what matters
		return err
	}
	s.file = f
	return nil
}

// repair ends the last line of a file: one that is whole gets its line break,
// one that is not is removed.
func repair(f *os.File) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	begin, line, err := lastLine(f, st.Size())
	if err != nil || len(line) == 0 {
		return err
	}
	if json.Valid(line) && line[0] == '{' {
		_, err = f.Write([]byte("\n"))
		return err
	}
	return f.Truncate(begin)
}

// longestLine is how far back the beginning of an unfinished line is looked
// for. Events are far shorter.
const longestLine = 8 << 20

// lastLine returns what follows the last line break of a file, and where it
// begins.
func lastLine(f io.ReaderAt, size int64) (begin int64, line []byte, err error) {
	const step = 64 << 10
	for begin = size; begin > 0; {
		if size-begin > longestLine {
			return 0, nil, errors.New("the last line is too long for a file of events")
		}
		n := min(step, begin)
		piece := make([]byte, n, n+int64(len(line)))
		if _, err := f.ReadAt(piece, begin-n); err != nil {
			return 0, nil, err
		}
		if i := bytes.LastIndexByte(piece, '\n'); i >= 0 {
			return begin - n + int64(i) + 1, append(piece[i+1:], line...), nil
		}
		begin -= n
		line = append(piece, line...)
	}
	return 0, line, nil
}

func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

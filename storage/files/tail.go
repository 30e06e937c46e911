package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"slices"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// chunk is how much of a history is read at a time, from its end.
const chunk = 64 << 10

// A tail is the end of a history file, from its last marker or summary on.
type tail struct {
	marker  claybot.Record   // the start or reset, zero without one or when a summary is newer
	records []claybot.Record // after the marker; or what the summary kept, the summary, and what follows
	from    int64            // offset of the first line that counts, 0 without a marker
	end     int64            // where the next line belongs; what follows is torn
	open    bool             // the last line is whole but for its newline
	torn    span             // an unreadable last line
	lost    bool             // it had been written whole
	found   *marker          // the marker as it is in the file; nil without one, or when a summary is newer
	cut     bool             // the recorded marker is not in the file: nothing before its offset counts
	damaged []span           // runs of unreadable lines before it, newest first
	damages int              // how many lines of both, but for one that a crash cut short
}

// A span is a part of a file.
type span struct{ off, size int64 }

// readTail reads a history of the given size from its end back to the most
// recent marker, or to the first of the records that the most recent summary
// keeps: what lies before is not decoded. Damage is no error.
//
// known is the recorded marker. The reading goes back to it at most: when it, or a newer
// one, is not in the file as it was recorded, nothing that lies before its offset
// counts. In a file that was edited by hand it may have moved.
//
// A summary keeps the Keep records directly before it. An older summary among
// them is omitted and not counted, and the records that it compacted stay
// compacted.
func readTail(r io.ReaderAt, size int64, known marker) (tail, error) {
	t := tail{end: size}
	beyond := -1 // how many records lie behind the offset of the recorded marker; -1: it is not reached
	if err := checkVersion(r, size); err != nil {
		return t, err
	}
	kept := -1 // how many more records the summary keeps; -1: there is no summary yet
	place := placing{shift: -known.Base}
	for line, err := range backwards(r, size) {
		if err != nil {
			return t, err
		}
		if beyond < 0 && line.off < known.Offset {
			beyond = len(t.records)
		}
		if beyond >= 0 && known.CRC == "" {
			break
		}
		last := line.off+int64(len(line.text)) == size
		text, whole := bytes.CutSuffix(line.text, []byte("\n"))
		if whole && len(bytes.TrimSpace(text)) == 0 {
			continue // empty lines are harmless
		}
		rec, err := decodeLine(text)
		if err == nil && place.moved(line.off, text, t.damages) {
			err = errMoved
		}
		if err != nil {
			t.damage(line, last, whole)
			continue
		}
		t.open = t.open || last && !whole
		if rec.Marker() {
			if beyond >= 0 && lineSum(text) != known.CRC {
				break
			}
			beyond = -1
			if kept < 0 {
				t.marker, t.from = rec, line.off
				t.found = &marker{Offset: line.off, CRC: lineSum(text)}
			}
			break
		}
		kept = t.add(rec, kept)
		if kept >= 0 {
			t.from = line.off
		}
		if kept == 0 && beyond < 0 {
			break
		}
	}
	if beyond >= 0 {
		t.records, t.from, t.cut = t.records[:beyond], min(known.Offset, size), true
	}
	slices.Reverse(t.records)
	return t, nil
}

// add takes a record that counts. kept is how many more records the summary keeps, and is
// returned as it is then.
func (t *tail) add(rec claybot.Record, kept int) int {
	switch summary := rec.Type == claybot.RecordSummary; {
	case summary && kept < 0:
		kept = max(rec.Keep, 0)
		t.records = append(t.records, rec)
	case summary:
		kept = min(kept, max(rec.Keep, 0))
	default:
		t.records = append(t.records, rec)
		if kept > 0 {
			kept--
		}
	}
	return kept
}

var errMoved = errors.New("line was moved")

// A placing distinguishes moved lines from lines around a manual edit. If lines were
// added or removed by hand, all lines before have a different distance from their
// stated offset; a moved block is between damaged lines, where it was cut.
type placing struct {
	shift   int64 // of the lines that were accepted last; at the end of the file, of what was removed at its beginning
	damages int   // before the last accepted line
}

// moved reports whether the intact line at off was moved. damages counts the damaged
// lines that were met until now.
func (p *placing) moved(off int64, line []byte, damages int) bool {
	stated, ok := statedOffset(line)
	if !ok {
		return false
	}
	shift := off - stated
	if shift != p.shift && damages > p.damages {
		return true
	}
	p.shift, p.damages = shift, damages
	return false
}

// damage notes a line that cannot be read.
func (t *tail) damage(line fileLine, last, whole bool) {
	d := span{line.off, int64(len(line.text))}
	if !last || whole { // else a crash has cut it short
		t.damages++
	}
	if last {
		t.torn, t.end, t.lost = d, line.off, whole
		return
	}
	if n := len(t.damaged); n > 0 && d.off+d.size == t.damaged[n-1].off {
		t.damaged[n-1] = span{d.off, d.size + t.damaged[n-1].size}
		return
	}
	t.damaged = append(t.damaged, d)
}

// checkVersion returns an error if the start record of a history has a newer
// format.
func checkVersion(r io.ReaderAt, size int64) error {
	head := make([]byte, min(size, 512)) // a start record is far shorter
	if n, err := r.ReadAt(head, 0); n < len(head) {
		return fmt.Errorf("read history: %w", err)
	}
	line, _, _ := bytes.Cut(head, []byte("\n"))
	if rec, err := decodeLine(line); err == nil && rec.Type == claybot.RecordStart && rec.V > version {
		return &newerError{"history.jsonl", rec.V}
	}
	return nil
}

// A fileLine is one line of a file with its newline, if it has one.
type fileLine struct {
	off  int64
	text []byte // valid until the next one
}

// backwards yields the lines of the first size bytes of r, the last one first.
// It holds one chunk, or one line when that is longer.
func backwards(r io.ReaderAt, size int64) iter.Seq2[fileLine, error] {
	return func(yield func(fileLine, error) bool) {
		var buf []byte // the bytes from off on that were not yielded
		off, step := size, int64(chunk)
		for off > 0 {
			n := min(step, off)
			grown := make([]byte, n, n+int64(len(buf)))
			if got, err := r.ReadAt(grown, off-n); int64(got) < n {
				yield(fileLine{}, fmt.Errorf("read history: %w", err))
				return
			}
			buf, off = append(grown, buf...), off-n
			found := false
			for {
				body := buf[:max(len(buf)-1, 0)] // the newline at the very end belongs to its line
				i := bytes.LastIndexByte(body, '\n')
				if i < 0 {
					break
				}
				found = true
				if !yield(fileLine{off + int64(i) + 1, buf[i+1:]}, nil) {
					return
				}
				buf = buf[:i+1]
			}
			if found {
				step = chunk
			} else {
				step *= 2 // a long line: reading it stays linear
			}
		}
		if len(buf) > 0 {
			yield(fileLine{0, buf}, nil)
		}
	}
}

const (
	tailsLimit = 8 << 20         // bytes of history files whose tails stay decoded
	tailsIdle  = 5 * time.Minute // for at most this long after the last use
	tailCost   = 512             // what a tail takes besides its lines
)

// A cachedTail is the decoded tail of a history file as its last writer left
// it, so that a busy agent's file is not read and decoded for every message. It belongs to
// one at a time: the cache or an open history.
type cachedTail struct {
	id      claybot.AgentID
	marker  claybot.Record
	records []claybot.Record
	from    int64     // offset of the marker or summary
	noted   marker    // as far as is recorded
	size    int64     // of the whole file
	mod     time.Time // of the file
}

// tails are those of histories that were closed a moment ago.
type tails = storage.Recent[claybot.AgentID, *cachedTail]

func newTails(limit int64) *tails {
	return storage.NewRecent[claybot.AgentID, *cachedTail](limit, tailsIdle)
}

// fits reports whether the file is still as it was.
func (t *cachedTail) fits(file fs.FileInfo) bool {
	return t.size == file.Size() && t.mod.Equal(file.ModTime())
}

// What Release leaves in memory: for the conversations that are going on.
const (
	releasedTails     = 1 << 20 // bytes of history files
	releasedResidents = 64      // agents, with their tails: each of them keeps pages of the heap, however short it is
)

// Release drops most of what is in memory for speed alone; it is read again when it is needed.
func (s *Store) Release() {
	s.tails.Shrink(releasedTails, releasedResidents)
	s.residents.mu.Lock()
	defer s.residents.mu.Unlock()
	s.residents.shrink(releasedResidents)
}

// keepTail keeps a tail for the next user of the file.
func (s *Store) keepTail(t *cachedTail) { s.tails.Put(t.id, t, t.size-t.from+tailCost) }

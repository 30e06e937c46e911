package files

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"hash/crc32"
	"io/fs"
	"slices"
	"sync"

	"github.com/claybot/claybot"
)

// quarantineLimit bounds the bytes kept; the oldest files go first.
const quarantineLimit = 64 << 20

// A quarantine stores damaged bytes for the operator.
type quarantine struct {
	fs    FS
	dir   string
	limit int64
	mu    sync.Mutex // one writer; damage is rare
}

// keep stores data durably under a name made of origin and its checksum, and
// reports whether it was new. Damage that stays where it is, is kept once.
func (q *quarantine) keep(origin string, data []byte) (fresh bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	data = data[:min(int64(len(data)), q.limit)]
	path := fmt.Sprintf("%s/%s.%08x", q.dir, origin, crc32.Checksum(data, castagnoli))
	if known, err := exists(q.fs, path); known || err != nil {
		return false, err
	}
	if err := q.shrink(q.limit - int64(len(data))); err != nil {
		return false, err
	}
	if err := write(q.fs, path, data); err != nil {
		_ = q.fs.Remove(path) // half a copy would pass for a whole one
		return false, err
	}
	return true, q.fs.SyncDir(q.dir)
}

// shrink removes the oldest files until at most limit bytes are left.
func (q *quarantine) shrink(limit int64) error {
	entries, err := q.fs.ReadDir(q.dir)
	if err != nil {
		return err
	}
	var total int64
	var kept []fs.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			kept = append(kept, info)
			total += info.Size()
		}
	}
	slices.SortFunc(kept, func(a, b fs.FileInfo) int {
		return cmp.Or(a.ModTime().Compare(b.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	for _, info := range kept {
		if total <= limit {
			break
		}
		if err := q.fs.Remove(q.dir + "/" + info.Name()); err != nil {
			return err
		}
		total -= info.Size()
	}
	return nil
}

// repair makes the file end in a whole line and sets damage aside. The sync at
// its end also covers what an earlier process wrote without living to see it
// durable.
//
// end is what was recorded of it.
func (h *history) repair(ctx context.Context, t tail, end ending) error {
	fresh, err := h.setAside(ctx, t.damaged)
	if err != nil {
		return err
	}
	lost := t.lost || fresh
	if t.torn.size > 0 {
		if _, err := h.keep(t.torn); err != nil {
			return err
		}
		if err := h.f.Truncate(t.end); err != nil {
			return err
		}
		h.s.log.Warn("unfinished last line of history quarantined", "agent", h.r.id, "offset", t.torn.off, "bytes", t.torn.size)
	}
	h.tell(t, end, lost)
	h.synced = t.end
	// The records that come now must lie behind a marker, or they would not count.
	begin := t.end == 0 || t.cut && len(t.records) == 0
	missing, err := h.missing(t, end, begin, t.lost || len(t.damaged) > 0 || t.end < end.Size)
	if err != nil {
		return err
	}
	if err := writeAll(h.f, missing); err != nil {
		return err
	}
	h.synced += int64(len(missing))
	if err := h.f.Sync(); err != nil {
		return err
	}
	switch found := t.found; {
	case begin:
		line := missing[bytes.LastIndexByte(missing[:len(missing)-1], '\n')+1:]
		h.s.mark(h.r, marker{Offset: h.synced - int64(len(line)), CRC: lineSum(line)})
	case t.cut && end.CRC != "": // it is told now, and not looked for again
		h.s.mark(h.r, marker{Offset: end.Offset})
	case found != nil && (found.Offset != end.Offset || found.CRC != end.CRC):
		found.Seq, found.Base = end.Seq+1, end.Base
		h.r.marker = *found // state.json has it with its next write
	}
	return nil
}

// mostAside is how many parts of a history are set aside each by itself. More are one,
// with what lies between them: each takes a while, and its agent waits.
const mostAside = 16

// setAside copies unreadable parts, the newest first, to the quarantine, and reports
// whether one of them was not known.
func (h *history) setAside(ctx context.Context, parts []span) (fresh bool, err error) {
	if n := len(parts); n > mostAside {
		last := parts[n-1]
		parts = []span{{last.off, parts[0].off + parts[0].size - last.off}}
	}
	for _, d := range parts {
		if err := context.Cause(ctx); err != nil {
			return false, err
		}
		added, err := h.keep(d)
		if err != nil {
			return false, err
		}
		if added {
			h.s.log.Error("unreadable part of history skipped", "agent", h.r.id, "offset", d.off, "bytes", d.size)
			fresh = true
		}
	}
	return fresh, nil
}

// missing returns what belongs behind t: the end of its last line, the line of a new
// marker when the history begins again, and else a note of what is lost.
func (h *history) missing(t tail, end ending, begin, lost bool) (text []byte, err error) {
	if t.open {
		text = []byte("\n")
	}
	var rec claybot.Record
	switch {
	case begin:
		rec = startRecord(claybot.Now())
		h.marker = rec
	case lost && !slices.ContainsFunc(t.records, isLoss):
		rec = lossRecord()
		h.records = append(h.records, rec)
	default:
		return text, nil
	}
	line, err := h.enc.linesAt([]claybot.Record{rec}, end.Base+t.end+int64(len(text)))
	return append(text, line...), err
}

// tell reports lost records to the operator and to the user.
func (h *history) tell(t tail, end ending, lost bool) {
	log := h.s.log.With("agent", h.r.id)
	switch {
	case h.created, t.end == 0:
		log.Error("agent history missing; starting a new one")
		h.r.reports = append(h.r.reports, saidGone)
	case t.cut && len(t.records) == 0:
		log.Error("conversation unreadable: its start is missing in history.jsonl", "offset", end.Offset, "bytes", t.end)
		h.r.reports = append(h.r.reports, saidGone)
	case t.end < end.Size:
		log.Error("history is shorter than before: an older copy, or its end is lost", "bytes", t.end, "recorded", end.Size)
		h.r.reports = append(h.r.reports, saidShorter)
	case t.cut && end.CRC != "":
		log.Error("start of a conversation unreadable; ignoring older records", "offset", end.Offset)
		h.r.reports = append(h.r.reports, saidBegin)
	case lost:
		h.r.reports = append(h.r.reports, saidHistory)
	}
}

// keep copies a part of the file to the quarantine.
func (h *history) keep(d span) (fresh bool, err error) {
	data := make([]byte, min(d.size, h.s.quarantine.limit))
	if n, err := h.f.ReadAt(data, d.off); n < len(data) {
		return false, err
	}
	return h.s.quarantine.keep(fmt.Sprintf("%s.history.%d", h.r.id, d.off), data)
}

// lossRecord returns a note that records are missing. It is tainted, because one of
// the lost records may have been.
func lossRecord() claybot.Record {
	return claybot.Record{Type: claybot.RecordNote, At: claybot.Now(), Level: "error", Text: saidHistory, Tainted: true}
}

func isLoss(r claybot.Record) bool { return r.Type == claybot.RecordNote && r.Text == saidHistory }

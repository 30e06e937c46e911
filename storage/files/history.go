package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// writeTries is how often a failed append is retried, each time with a new file
// handle.
const writeTries = 3

var _ storage.Ending = (*history)(nil)

// A history is the open history.jsonl of an agent.
//
//	0 ─────────────── synced ── written part of pending ── rest of pending
//	  durable                    in the file, may vanish    in memory
//
// After a failed write or sync the handle is closed and nothing beyond synced
// is trusted: the file is truncated there and pending is written again. So a
// line is in the file at most once.
type history struct {
	s       *Store
	r       *resident
	path    string
	marker  claybot.Record
	records []claybot.Record
	from    int64 // offset of the marker or summary
	enc     encoder

	created  bool    // there was no file
	unmarked *marker // in the file, not yet durable

	f       File // nil when it is not trusted
	synced  int64
	pending []byte
	written int // bytes of pending that are in the file
	closed  bool
}

// OpenHistory opens the history of the leased agent. Before it returns, it
// moves an incomplete end left by a crash to the quarantine. From then on, the
// history of an older holder fails with storage.ErrLeaseLost.
func (s *Store) OpenHistory(ctx context.Context, l storage.Lease) (storage.History, error) {
	h := &history{s: s, path: s.dir(l.Agent) + "/history.jsonl"}
	err := s.with(ctx, l.Agent, func(r *resident) error {
		if err := r.admit(l); err != nil {
			return err
		}
		h.r = r
		if err := h.open(ctx); err != nil {
			h.distrust()
			return failed(fmt.Sprintf("open history of agent %s", r.id), err)
		}
		if _, err := s.residents.pin(r.id); err != nil { // until Close
			h.distrust()
			return err
		}
		r.writer = h
		s.behind.note(r.id)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return h, nil
}

// Records reads the history of an agent and writes nothing. It adds a note at the end if
// a part is unreadable and OpenHistory has not reported it yet.
func (s *Store) Records(ctx context.Context, id claybot.AgentID) ([]claybot.Record, error) {
	var t tail
	lost := false
	err := s.with(ctx, id, func(r *resident) error {
		end, err := s.recorded(ctx, r)
		if err != nil {
			return err
		}
		f, err := s.fs.Open(s.dir(id)+"/history.jsonl", os.O_RDONLY)
		if errors.Is(err, fs.ErrNotExist) {
			lost = end.Size > 0
			return nil
		}
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }() // nothing was written
		info, err := f.Stat()
		if err != nil {
			return err
		}
		size := info.Size()
		if r.cut >= 0 {
			size = min(size, r.cut)
		}
		t, err = readTail(f, size, end.marker)
		lost = t.lost || len(t.damaged) > 0 || t.end < end.Size || t.cut && end.CRC != ""
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("records of agent %s: %w", id, err)
	}
	if lost && !slices.ContainsFunc(t.records, isLoss) {
		t.records = append(t.records, lossRecord())
	}
	return t.records, nil
}

// open makes the file ready for appending. It needs the gate.
func (h *history) open(ctx context.Context) error {
	f, err := h.s.fs.Open(h.path, os.O_RDWR|os.O_APPEND)
	if errors.Is(err, fs.ErrNotExist) {
		h.created = true
		f, err = h.s.fs.Open(h.path, os.O_RDWR|os.O_APPEND|os.O_CREATE)
		if err == nil {
			err = h.s.fs.SyncDir(h.s.dir(h.r.id))
		}
	}
	h.f = f
	if err != nil {
		return err
	}
	if err := h.settle(); err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	h.synced = info.Size()
	if t, ok := h.s.tails.Take(h.r.id); ok && t.fits(info) {
		h.marker, h.records, h.from = t.marker, t.records, t.from
		h.r.marker = newest(h.r.marker, t.noted)
		return nil
	}
	end, err := h.s.recorded(ctx, h.r)
	if err != nil {
		return err
	}
	t, err := readTail(f, h.synced, end.marker)
	if err != nil {
		return err
	}
	h.marker, h.records, h.from = t.marker, t.records, t.from
	h.r.marker = end.marker
	return h.repair(ctx, t, end)
}

// settle cuts off what a failed append of an earlier history may have left.
func (h *history) settle() error {
	if h.r.cut < 0 {
		return nil
	}
	info, err := h.f.Stat()
	if err != nil {
		return err
	}
	if info.Size() > h.r.cut {
		if err := h.f.Truncate(h.r.cut); err != nil {
			return err
		}
	}
	h.s.settled(h.r)
	return nil
}

func (h *history) Records() []claybot.Record { return h.records }

func (h *history) Marker() claybot.Record { return h.marker }

// End implements storage.Ending. What it returns is noted as well, so that no older
// ending is saved after it.
func (h *history) End(ctx context.Context) storage.Checkpoint {
	if h.s.endings.ends == nil || h.r.gate.enter(ctx) != nil {
		return storage.Checkpoint{} // the next one covers it
	}
	defer h.r.gate.leave()
	if h.closed || h.r.writer != h {
		return storage.Checkpoint{}
	}
	end := ending{marker: h.r.marker, Size: h.synced}
	h.s.endings.note(h.r.id, end)
	return storage.Checkpoint{Key: endKey(h.r.id), Value: end.String()}
}

func (h *history) Append(ctx context.Context, records ...claybot.Record) error {
	return h.add(ctx, records, true)
}

func (h *history) Buffer(ctx context.Context, records ...claybot.Record) error {
	return h.add(ctx, records, false)
}

func (h *history) add(ctx context.Context, records []claybot.Record, durable bool) error {
	if err := h.r.gate.enter(ctx); err != nil {
		return fmt.Errorf("append to history of agent %s: %w", h.r.id, err)
	}
	defer h.r.gate.leave()
	switch {
	case h.closed:
		return fmt.Errorf("append to history of agent %s: %w", h.r.id, fs.ErrClosed)
	case h.r.writer != h:
		return fmt.Errorf("append to history of agent %s: %w", h.r.id, storage.ErrLeaseLost)
	}
	start, before := h.synced+int64(len(h.pending)), len(h.pending)
	lines, err := h.enc.linesAt(records, h.r.marker.Base+start)
	if err != nil {
		return fmt.Errorf("append to history of agent %s: %w", h.r.id, err)
	}
	h.pending = append(h.pending, lines...)
	if err := h.push(durable); err != nil {
		h.pending = h.pending[:before]
		return failed(fmt.Sprintf("append to history of agent %s", h.r.id), err)
	}
	if m := markerIn(lines, records, start); m != nil {
		h.unmarked = m
	}
	if durable && h.unmarked != nil {
		h.s.mark(h.r, *h.unmarked)
		h.unmarked = nil
	}
	for _, rec := range records {
		switch {
		case rec.Marker():
			h.marker, h.records, h.from = rec, nil, start
		case rec.Type == claybot.RecordSummary:
			h.marker, h.records = claybot.Record{}, storage.Summarized(h.records, rec)
			h.from = start // less the few that stay: only the cache's bookkeeping
		default:
			h.records = append(h.records, rec)
		}
	}
	return nil
}

// push writes pending and, if durable, syncs it. After an error nothing beyond
// synced is in the file, or r.cut records the truncation that is due.
func (h *history) push(durable bool) error {
	var err error
	for range writeTries {
		if err = h.try(durable); err == nil || full(err) {
			break
		}
		h.distrust()
	}
	if err != nil {
		h.distrust()
		_ = h.reopen() // cuts now if it can; else the next user of the file does
	}
	return err
}

func (h *history) try(durable bool) error {
	if h.f == nil {
		if err := h.reopen(); err != nil {
			return err
		}
	}
	if h.written < len(h.pending) {
		if err := writeAll(h.f, h.pending[h.written:]); err != nil {
			return err
		}
		h.written = len(h.pending)
	}
	if !durable || h.written == 0 {
		return nil
	}
	if err := h.f.Sync(); err != nil {
		return err
	}
	h.synced += int64(h.written)
	h.pending, h.written = h.pending[:0], 0
	return nil
}

// distrust closes the handle after a failure; everything not known to be
// durable has to be written again.
func (h *history) distrust() {
	if h.f != nil {
		_ = h.f.Close() // its result is meaningless after a failure
		h.f = nil
	}
	h.written = 0
	if h.r.writer == h {
		h.r.cut = h.synced
	}
}

// reopen gets a fresh handle and cuts the file back to what is durable.
func (h *history) reopen() error {
	f, err := h.s.fs.Open(h.path, os.O_RDWR|os.O_APPEND)
	if err != nil {
		return err
	}
	h.f = f
	if err := h.verify(); err != nil {
		h.distrust()
		return err
	}
	return nil
}

// verify checks that the durable part is still there and ends in a newline,
// and cuts off the rest.
func (h *history) verify() error {
	info, err := h.f.Stat()
	if err != nil {
		return err
	}
	if info.Size() < h.synced {
		return fmt.Errorf("%w: history.jsonl shrank from %d to %d bytes", storage.ErrDamaged, h.synced, info.Size())
	}
	var last [1]byte
	if n, err := h.f.ReadAt(last[:], h.synced-1); n < 1 {
		return err
	}
	if last[0] != '\n' {
		return fmt.Errorf("%w: history.jsonl has no line end at %d", storage.ErrDamaged, h.synced)
	}
	return h.settle()
}

// Close makes buffered records durable and lets the file go. The handle is
// closed whatever the error; what could not be cut off of a failed append is
// cut off by the next OpenHistory.
func (h *history) Close() error {
	if err := h.r.gate.enter(context.Background()); err != nil {
		return err
	}
	defer h.r.gate.leave()
	if h.closed {
		return nil
	}
	h.closed = true
	var err error
	if h.r.writer == h {
		if len(h.pending) > 0 || h.f == nil {
			err = h.push(true)
		}
		if err == nil && h.unmarked != nil {
			h.s.mark(h.r, *h.unmarked)
		}
		h.cache()
		h.s.endings.note(h.r.id, ending{marker: h.r.marker, Size: h.synced})
		h.r.writer = nil
	}
	if h.f != nil {
		err = errors.Join(err, h.f.Close())
		h.f = nil
	}
	if h.r.cut >= 0 && !h.r.indebted {
		h.r.indebted = true // keep the pin, so that the pending truncation is not forgotten
	} else {
		h.s.residents.unpin(h.r)
	}
	if err != nil {
		return failed(fmt.Sprintf("close history of agent %s", h.r.id), err)
	}
	return nil
}

// cache keeps the tail for the next OpenHistory, if the file is as it should.
func (h *history) cache() {
	if h.f == nil || len(h.pending) > 0 {
		return
	}
	if info, err := h.f.Stat(); err == nil && info.Size() == h.synced {
		h.s.keepTail(&cachedTail{id: h.r.id, marker: h.marker, records: h.records, from: h.from, noted: h.r.marker, size: h.synced, mod: info.ModTime()})
	}
}

// settled records that the file of r needs no truncation. It needs the gate.
func (s *Store) settled(r *resident) {
	r.cut = -1
	if r.indebted {
		r.indebted = false
		s.residents.unpin(r)
	}
}

package relational

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// recordPage is how many records are read per query, newest first.
const recordPage = 200

// errMoved means that an append with a lost response did happen. The history must
// be reopened.
var errMoved = errors.New("the history is longer than it was: it must be opened again")

// addRecords appends to the history of an agent, which has n records. The caller has
// locked the agent's row.
func addRecords(c *Conn, id claybot.AgentID, n int64, records ...claybot.Record) error {
	if len(records) == 0 {
		return nil
	}
	if err := c.do("UPDATE agents SET records = ? WHERE id = ?", n+int64(len(records)), id); err != nil {
		return err
	}
	return insertRecords(c, id, n, records)
}

// insertRecords is addRecords without the agent's row, which the caller saves.
func insertRecords(c *Conn, id claybot.AgentID, n int64, records []claybot.Record) error {
	for _, r := range records {
		body, crc, err := encode(r)
		if err != nil {
			return fmt.Errorf("encode record: %w", err)
		}
		n++
		if err := c.do("INSERT INTO records (agent, n, body, crc) VALUES (?, ?, ?, ?)", id, n, body, crc); err != nil {
			return err
		}
	}
	return nil
}

// A recall is the history of an agent, read from the newest record: the records
// after the newest marker, or those that the newest summary keeps and the ones
// after it. Older summaries among the kept records are omitted, and the records
// that they compacted stay compacted.
type recall struct {
	n       int64 // of the newest record; 0 for none
	from    int64 // of the oldest that was looked at; none before it counts
	crc     int64 // its checksum
	token   int64 // of the lease that had the history open, where it stayed in memory
	marker  claybot.Record
	records []claybot.Record // the newest first until all are read, then the oldest
	summary bool
	kept    int // how many more records the summary keeps
}

// add takes the next older record and reports whether it was the last that counts.
func (m *recall) add(r claybot.Record) (done bool) {
	if r.Marker() {
		if !m.summary {
			m.marker = r
		}
		return true
	}
	switch keeps := max(r.Keep, 0); {
	case r.Type != claybot.RecordSummary:
		m.records = append(m.records, r)
		m.kept--
	case m.summary:
		m.kept = min(m.kept, keeps)
	default:
		m.summary, m.kept = true, keeps
		m.records = append(m.records, r)
	}
	return m.summary && m.kept <= 0
}

// remembered reads the history of an agent page by page with ask. It omits damaged
// records.
func (s *Agents) remembered(ctx context.Context, id claybot.AgentID, ask func(c *Conn, page Ask) error) (recall, error) {
	var m recall
	before, done := int64(1)<<62, false
	for !done {
		rows := 0
		err := s.read(ctx, func(c *Conn) error {
			return ask(c, Ask{Args: []any{id, before, recordPage}, Query: "SELECT body, crc, n FROM records WHERE agent = ? AND n < ? ORDER BY n DESC LIMIT 0+?", Row: func(r Row) error {
				rows++
				if before = r.Int(2); m.n == 0 {
					m.n, m.crc = before, r.Int(1)
				}
				if !done {
					m.from = before
				}
				var rec claybot.Record
				if err := decode(r.Str(0), r.Int(1), &rec); err != nil {
					s.log.Error("damaged history record", "agent", id, "record", before, "err", err)
					return nil
				}
				done = done || m.add(rec)
				return nil
			}})
		})
		if err != nil {
			return m, err
		}
		done = done || rows < recordPage
	}
	slices.Reverse(m.records)
	return m, nil
}

// Records implements storage.Histories.
func (s *Agents) Records(ctx context.Context, id claybot.AgentID) ([]claybot.Record, error) {
	m, err := s.remembered(ctx, id, func(c *Conn, page Ask) error {
		known := false // distinguishes an agent without records from a missing one
		err := c.ask(Ask{Query: "SELECT 1 FROM agents WHERE id = ?", Args: []any{id}, Row: once(&known, func(Row) error { return nil })}, page)
		return need(known, err)
	})
	return result(m.records, err, "records of agent %s", id)
}

// OpenHistory implements storage.Histories.
func (s *Agents) OpenHistory(ctx context.Context, l storage.Lease) (storage.History, error) {
	h := &history{s: s, lease: l}
	if m, ok := s.recent.Take(l.Agent); ok {
		switch same, err := h.resume(ctx, m); {
		case err != nil:
			return nil, fmt.Errorf("open history of agent %s: %w", l.Agent, err)
		case same:
			return h, nil
		}
	}
	m, err := s.remembered(ctx, l.Agent, func(c *Conn, page Ask) error {
		_, err := leasedWith(c, l, page) // without a lock: a write checks the lease again
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open history of agent %s: %w", l.Agent, err)
	}
	h.n, h.crc, h.marker, h.records = m.n, m.crc, m.marker, m.records
	return h, nil
}

const (
	recentHistories = 8 << 20         // bytes of histories that stay decoded
	releasedRecent  = 1 << 20         // of them, after Release
	releasedAgents  = 64              // whose they are then
	recentIdle      = 5 * time.Minute // for at most this long after the last use
	recordCost      = 512             // what a record takes beside its text
)

// resume opens a history that this process had open a moment ago. If another lease was between,
// it reads the newest record of that time, which must be there unchanged, and what others
// have added since. A write checks the lease again.
func (h *history) resume(ctx context.Context, m recall) (same bool, err error) {
	if h.lease.Before == m.token {
		h.n, h.crc, h.marker, h.records = m.n, m.crc, m.marker, m.records
		return true, nil
	}
	var added []claybot.Record
	n, crc, rows := m.n, m.crc, 0
	err = h.s.read(ctx, func(c *Conn) error {
		added, rows, same = nil, 0, true
		_, err := leasedWith(c, h.lease, Ask{
			Query: "SELECT body, crc, n FROM records WHERE agent = ? AND n >= ? ORDER BY n LIMIT 0+?", Args: []any{h.lease.Agent, m.n, recordPage},
			Row: func(r Row) error {
				if rows++; rows == 1 {
					same = r.Int(2) == m.n && r.Int(1) == m.crc
					return nil
				}
				var rec claybot.Record
				same = same && decode(r.Str(0), r.Int(1), &rec) == nil
				added, n, crc = append(added, rec), r.Int(2), r.Int(1)
				return nil
			},
		})
		return err
	})
	if err != nil || !same || rows == 0 || rows == recordPage {
		return false, err
	}
	h.n, h.crc, h.marker, h.records = n, crc, m.marker, m.records
	h.take(added)
	return true, nil
}

// A history implements storage.History.
type history struct {
	s       *Agents
	lease   storage.Lease
	n       int64 // records that are saved
	crc     int64 // checksum of the last of them
	marker  claybot.Record
	records []claybot.Record
	pending []claybot.Record // buffered
	unsure  bool             // a save failed, and may have happened
	closed  bool
}

func (h *history) Records() []claybot.Record { return h.records }

func (h *history) Marker() claybot.Record { return h.marker }

func (h *history) Append(ctx context.Context, records ...claybot.Record) error {
	if h.closed {
		return fmt.Errorf("append to history of agent %s: %w", h.lease.Agent, fs.ErrClosed)
	}
	if err := h.save(ctx, append(h.pending[:len(h.pending):len(h.pending)], records...)); err != nil {
		return fmt.Errorf("append to history of agent %s: %w", h.lease.Agent, err)
	}
	h.pending = nil
	h.take(records)
	return nil
}

// Buffer does not access the database; the lease is checked when the records
// are saved.
func (h *history) Buffer(_ context.Context, records ...claybot.Record) error {
	if h.closed {
		return fmt.Errorf("append to history of agent %s: %w", h.lease.Agent, fs.ErrClosed)
	}
	h.pending = append(h.pending, records...)
	h.take(records)
	return nil
}

// save atomically adds records.
func (h *history) save(ctx context.Context, records []claybot.Record) error {
	err := h.s.core.update(ctx, func(c *Conn) error {
		var n int64
		_, err := leasedWith(c, h.lease, askRecords(h.lease.Agent, &n))
		if err != nil {
			return err
		}
		if n != h.n {
			return errMoved
		}
		return addRecords(c, h.lease.Agent, h.n, records...)
	})
	if err != nil {
		h.unsure = true
		return err
	}
	h.saved(records)
	return nil
}

func (h *history) take(records []claybot.Record) {
	for _, r := range records {
		switch {
		case r.Marker():
			h.marker, h.records = r, nil
		case r.Type == claybot.RecordSummary:
			h.marker, h.records = claybot.Record{}, storage.Summarized(h.records, r)
		default:
			h.records = append(h.records, r)
		}
	}
}

// Deferred implements storage.Deferring.
func (h *history) Deferred() storage.Deferred {
	return storage.Deferred{After: h.n, Records: h.pending}
}

// Settle implements storage.Deferring.
func (h *history) Settle(d storage.Deferred) {
	h.saved(d.Records)
	h.pending = slices.Clone(h.pending[len(d.Records):])
}

// saved notes that records are in the database.
func (h *history) saved(records []claybot.Record) {
	if len(records) > 0 {
		_, crc, _ := encode(records[len(records)-1]) // as it was when it was saved
		h.n, h.crc = h.n+int64(len(records)), int64(crc)
	}
}

// addDeferred appends records to the history of an agent whose payer was loaded. The
// caller saves a.
func addDeferred(c *Conn, a *inboxRow, d storage.Deferred) error {
	if len(d.Records) == 0 {
		return nil
	}
	if a.payer.records != d.After {
		return errMoved
	}
	a.recorded = d.After + int64(len(d.Records))
	return insertRecords(c, a.id, d.After, d.Records)
}

// askRecords finds how many records an agent has.
func askRecords(id claybot.AgentID, n *int64) Ask {
	return Ask{Query: "SELECT records FROM agents WHERE id = ?", Args: []any{id}, Row: func(r Row) error { *n = r.Int(0); return nil }}
}

// Close saves buffered records, unless the lease is lost.
func (h *history) Close() error {
	if h.closed {
		return nil
	}
	h.closed = true
	if len(h.pending) > 0 {
		err := h.save(context.Background(), h.pending)
		switch {
		case errors.Is(err, storage.ErrLeaseLost), errors.Is(err, errMoved):
			return nil
		case err != nil:
			return fmt.Errorf("close history of agent %s: %w", h.lease.Agent, err)
		}
	}
	h.keep()
	return nil
}

// keep keeps the history in memory for the next time that this process opens it, unless it
// may differ from what is stored.
func (h *history) keep() {
	cost := int64(recordCost)
	for i := range h.records {
		cost += sizeOf(&h.records[i])
	}
	if h.n > 0 && !h.unsure {
		h.s.recent.Put(h.lease.Agent, recall{n: h.n, crc: h.crc, token: h.lease.Token, marker: h.marker, records: h.records}, cost)
	}
}

// sizeOf is about how many bytes of memory a record takes.
func sizeOf(r *claybot.Record) int64 {
	n := recordCost + len(r.Text) + len(r.Quote)
	for _, c := range r.ToolCalls {
		n += len(c.Args)
	}
	for _, f := range r.Files {
		n += recordCost + len(f.Text)
	}
	if r.Earlier != nil {
		for _, s := range r.Earlier.Said {
			n += recordCost + len(s.Text)
		}
	}
	if r.Index != nil {
		n += len(r.Index.Text)
	}
	return int64(n)
}

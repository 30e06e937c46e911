package files

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"sync"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// A marker is where the newest start or reset record of a history is. It is kept
// outside of history.jsonl, twice: in state.json and, with the size of the history, in
// Ends. If the line itself is damaged, the conversation still begins there, so a reset
// stays effective.
//
// The history is written first, so a recorded marker may be older than the newest one in
// the file, and then the file counts. Seq orders the two copies.
type marker struct {
	Seq    int64  `json:"seq"`
	Offset int64  `json:"offset"`
	CRC    string `json:"crc"` // of the line without its newline; empty: it is not there any more, and that was told
	// Base is how many bytes were removed at the beginning of the file, ever. Lines state their
	// offset as if they were still there.
	Base int64 `json:"base,omitempty"`
}

// An ending is what Ends keeps of a history.
type ending struct {
	marker
	Size int64 `json:"size"` // of the durable file at some moment; since then, it has only lost what Base counts
}

// with returns e with m, if that is newer.
func (e ending) with(m marker) ending {
	m = newest(e.marker, m)
	return ending{marker: m, Size: e.Size - max(m.Base-e.Base, 0)}
}

// String is the value of an ending in Ends.
func (e ending) String() string {
	b, err := json.Marshal(e)
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	return string(b)
}

// Ends stores small values outside of the agents' directories. A power loss may undo
// SetCheckpoints until the next other write; an empty value removes a key. An Index
// that has these methods is used as Ends.
type Ends interface {
	Checkpoint(ctx context.Context, key string) (string, error)
	SetCheckpoints(ctx context.Context, values map[string]string) error
}

func endKey(id claybot.AgentID) string    { return "history/" + string(id) }
func goneKey(d claybot.Descriptor) string { return "gone/" + d.Key() }

// lineSum is the CRC of a marker.
func lineSum(line []byte) string {
	return fmt.Sprintf("%08x", crc32.Checksum(bytes.TrimSuffix(line, []byte("\n")), castagnoli))
}

// newest is the newer of two copies.
func newest(a, b marker) marker {
	if b.Seq > a.Seq {
		return b
	}
	return a
}

// markerIn returns the newest marker among records whose lines begin at offset off of
// the file; nil: there is none.
func markerIn(lines []byte, records []claybot.Record, off int64) (found *marker) {
	for _, r := range records {
		end := bytes.IndexByte(lines, '\n') + 1
		if r.Marker() {
			found = &marker{Offset: off, CRC: lineSum(lines[:end])}
		}
		lines, off = lines[end:], off+int64(end)
	}
	return found
}

// endings are those that wait to be saved.
type endings struct {
	ends Ends
	mu   sync.Mutex
	late map[claybot.AgentID]ending
}

func newEndings(index storage.Index) *endings {
	ends, _ := index.(Ends)
	return &endings{ends: ends, late: make(map[claybot.AgentID]ending)}
}

// of returns what is known of the end of a history; zero for nothing.
func (e *endings) of(ctx context.Context, id claybot.AgentID) (ending, error) {
	e.mu.Lock()
	end, ok := e.late[id]
	e.mu.Unlock()
	if ok || e.ends == nil {
		return end, nil
	}
	value, err := e.ends.Checkpoint(ctx, endKey(id))
	if err != nil || value == "" {
		return ending{}, err
	}
	err = json.Unmarshal([]byte(value), &end)
	return end, err
}

// note keeps the end of a history until it is saved.
func (e *endings) note(id claybot.AgentID, end ending) {
	if e.ends == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.late[id] = end
}

// save writes what was noted, in one transaction.
func (e *endings) save(ctx context.Context) error {
	e.mu.Lock()
	late := e.late
	e.late = make(map[claybot.AgentID]ending)
	e.mu.Unlock()
	if len(late) == 0 {
		return nil
	}
	values := make(map[string]string, len(late))
	for id, end := range late {
		values[endKey(id)] = end.String()
	}
	err := e.ends.SetCheckpoints(ctx, values)
	if err == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for id, end := range late {
		if _, newer := e.late[id]; !newer {
			e.late[id] = end
		}
	}
	return fmt.Errorf("save the ends of histories: %w", err)
}

// forget removes what is known of a history that was deleted.
func (e *endings) forget(ctx context.Context, id claybot.AgentID) error {
	e.mu.Lock()
	delete(e.late, id)
	e.mu.Unlock()
	if e.ends == nil {
		return nil
	}
	return e.ends.SetCheckpoints(ctx, map[string]string{endKey(id): ""})
}

// SaveEnds records where histories end and where their conversations begin. Damage of a
// file is noticed as far as its end was recorded. The end of each run commits it, see
// storage.Ending. Call SaveEnds now and then for what is written without one; Close does
// it as well.
func (s *Store) SaveEnds(ctx context.Context) error {
	s.saveStamp(ctx)
	return s.endings.save(ctx)
}

// gone records that the agent of d disappeared without being deleted, so that the user
// of its successor is notified.
func (e *endings) gone(ctx context.Context, d claybot.Descriptor) error {
	if e.ends == nil || !d.Foreground() {
		return nil
	}
	return e.ends.SetCheckpoints(ctx, map[string]string{goneKey(d): "1"})
}

// wasGone reports, once, whether gone was called for d.
func (e *endings) wasGone(ctx context.Context, d claybot.Descriptor) bool {
	if e.ends == nil || !d.Foreground() {
		return false
	}
	value, err := e.ends.Checkpoint(ctx, goneKey(d))
	return err == nil && value != "" && e.ends.SetCheckpoints(ctx, map[string]string{goneKey(d): ""}) == nil
}

// recorded returns what is recorded of the history of r. It needs the gate.
func (s *Store) recorded(ctx context.Context, r *resident) (ending, error) {
	// A canceled run opens its history as well, to record its end.
	end, err := s.endings.of(context.WithoutCancel(ctx), r.id)
	if err != nil {
		return end, fmt.Errorf("recorded end of history: %w", err)
	}
	return end.with(r.marker), nil
}

// mark records a marker that is durable in the history of r. Its failure costs the
// second copy alone, which the next write of state.json makes. It needs the gate.
func (s *Store) mark(r *resident, m marker) {
	m.Seq, m.Base = r.marker.Seq+1, r.marker.Base
	r.marker = m
	a := s.residents.agent(r)
	if a == nil {
		return
	}
	if err := s.writeState(r, a.State); err != nil {
		r.unsure = true
		s.log.Warn("failed to record the start of a conversation", "agent", r.id, "err", err)
	}
}

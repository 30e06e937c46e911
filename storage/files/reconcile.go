package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// stampKey is the key of the stamp in Ends.
const stampKey = "agents/stamp"

// stampAge is how long the folder of the agents must have been unchanged before it gets a
// stamp: what changes it at the same tick of the file system's clock would not show. It is
// coarseAge where that clock may advance by whole seconds, which are up to two.
const (
	stampAge  = 100 * time.Millisecond
	coarseAge = 2500 * time.Millisecond
)

// stamps record when the index was in line with the directories of the agents, so that Open
// needs not read all of them: by the identity of their folder and the time of its last
// change, which every agent that is made, moved or removed changes. An older copy of the
// index has an older stamp; a copy of the directory is another folder.
type stamps struct {
	ends Ends // nil: they are always compared

	mu      sync.Mutex
	saved   string // the newest one
	pending int    // changes that are under way
	changes int    // that began
	broken  bool   // a change failed, so the next Open compares
}

func newStamps(index Index) *stamps {
	ends, _ := index.(Ends)
	return &stamps{ends: ends}
}

// change notes that the folder and the index may differ until the function that it returns is
// called, and after an error until the next Open.
func (x *stamps) change() (done func(err *error)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.pending++
	x.changes++
	return func(err *error) {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.pending--
		x.broken = x.broken || *err != nil
	}
}

// quiet returns how many changes have begun; false: one is under way, or has failed.
func (x *stamps) quiet() (changes int, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.changes, x.pending == 0 && !x.broken
}

func (x *stamps) matches(ctx context.Context, stamp string) bool {
	if x.ends == nil || stamp == "" {
		return false
	}
	saved, err := x.ends.Checkpoint(ctx, stampKey)
	return err == nil && x.note(saved) == stamp
}

// save saves a stamp. A failure costs a comparison.
func (x *stamps) save(ctx context.Context, stamp string) {
	x.mu.Lock()
	known := stamp == x.saved
	x.mu.Unlock()
	if x.ends != nil && stamp != "" && !known && x.ends.SetCheckpoints(ctx, map[string]string{stampKey: stamp}) == nil {
		x.note(stamp)
	}
}

// note notes what is saved, and returns it.
func (x *stamps) note(stamp string) string {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.saved = stamp
	return stamp
}

// stamp is that of the folder; empty if it cannot be told, or has just been changed.
func (s *Store) stamp() string {
	f, err := s.fs.Open(s.root, os.O_RDONLY)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // nothing was written
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	folder, changed, ok := folderOf(info)
	if !ok || !settled(changed, time.Now()) {
		return ""
	}
	return fmt.Sprintf("%d/%d", folder, changed.UnixNano())
}

// settled reports whether a folder that was changed at a time has been unchanged for so long
// that its next change gets another time.
func settled(changed, now time.Time) bool {
	age := stampAge
	if changed.Nanosecond() == 0 {
		age = coarseAge
	}
	return now.Sub(changed) >= age
}

// saveStamp saves a stamp, if the index is in line with the directories now.
func (s *Store) saveStamp(ctx context.Context) {
	before, ok := s.stamps.quiet()
	s.mu.Lock()
	ok = ok && len(s.orphans) == 0
	s.mu.Unlock()
	if !ok {
		return
	}
	stamp := s.stamp()
	if after, ok := s.stamps.quiet(); ok && after == before {
		s.stamps.save(ctx, stamp)
	}
}

// reconcile brings the index in line with the directories, unless the stamp says that it
// is.
func (s *Store) reconcile(ctx context.Context) error {
	stamp := s.stamp()
	if s.stamps.matches(ctx, stamp) {
		return nil
	}
	if err := s.compare(ctx); err != nil {
		return err
	}
	s.stamps.save(ctx, stamp) // of before: what came since shows
	return nil
}

// compare brings the index in line with the directories.
func (s *Store) compare(ctx context.Context) error {
	entries, err := s.fs.ReadDir(s.root)
	if err != nil {
		return err
	}
	unindexed := make(map[claybot.AgentID]bool, len(entries))
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), newPrefix) {
			if err := s.fs.Remove(s.root + "/" + e.Name()); err != nil {
				return err
			}
			continue
		}
		if id := claybot.AgentID(e.Name()); id.Validate() == nil && e.IsDir() {
			unindexed[id] = true
		} else {
			s.log.Warn("not an agent, ignored", "name", e.Name())
		}
	}
	var gone []storage.IndexEntry
	for e, err := range s.index.IndexedAgents(ctx) {
		if err != nil {
			return err
		}
		if !unindexed[e.ID] {
			gone = append(gone, e)
		}
		delete(unindexed, e.ID)
	}
	for _, e := range gone {
		if err := s.lost(ctx, e.ID, e.Descriptor); err != nil {
			return err
		}
	}
	return s.adopt(ctx, unindexed)
}

// adopt indexes agents that exist only as directories.
func (s *Store) adopt(ctx context.Context, ids map[claybot.AgentID]bool) error {
	found := make(map[claybot.Descriptor]claybot.Agent)
	own := make(map[claybot.AgentID]claybot.Settings)
	for id := range ids {
		d, _, _, damage, err := s.parseDescriptor(id)
		if err = errors.Join(damage, err); err != nil {
			s.log.Error("unreadable agent left unchanged", "agent", id, "error", err)
			continue
		}
		taken, err := s.index.IndexedAgent(ctx, d.Descriptor)
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			return err
		}
		if twin, ok := found[d.Descriptor.Identity()]; ok {
			taken = twin.ID
		}
		if taken != "" {
			s.log.Error("duplicate agent of the same user left unchanged", "agent", id, "other", taken)
			continue
		}
		f, err := s.peekState(id)
		st := f.AgentState
		if err != nil {
			st = storage.NewState(d.CreatedAt) // repaired when the agent is loaded
		}
		if d.Foreground() {
			st.LastUserAt = max(st.LastUserAt, s.lastHeard(ctx, id))
		}
		if set, ok := readSettings(f.Settings); ok && err == nil {
			own[id] = set
		}
		found[d.Descriptor.Identity()] = claybot.Agent{ID: id, Descriptor: d.Descriptor, CreatedAt: d.CreatedAt, State: st}
	}
	agents := make([]claybot.Agent, 0, len(found))
	for _, a := range found {
		agents = append(agents, a)
	}
	if len(agents) == 0 {
		return nil
	}
	s.log.Info("agents indexed from their directories", "agents", len(agents))
	err := s.index.IndexAgents(ctx, agents...)
	for id, set := range own {
		if err == nil && !bytes.Equal(settingsBody(set), noSettings) {
			err = s.own.copy(ctx, id, set)
			s.own.set(id, set)
		}
	}
	return err
}

// lastHeard is when the newest message of a person was accepted that a history has; 0 when
// there is none, or none that can be read.
func (s *Store) lastHeard(ctx context.Context, id claybot.AgentID) (at claybot.Time) {
	records, err := s.Records(ctx, id)
	if err != nil {
		s.log.Warn("failed to read the time of an agent's last message", "agent", id, "err", err)
	}
	for i, r := range records {
		if r.Type != claybot.RecordUser {
			continue
		}
		at = max(at, r.At)
		if r.At%1000 == 0 && i+1 < len(records) { // of a platform that counts in seconds
			at = max(at, min(records[i+1].At, r.At+999))
		}
	}
	return at
}

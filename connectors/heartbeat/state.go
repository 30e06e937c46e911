package heartbeat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors/schedule"
	"github.com/claybot/claybot/storage"
)

const (
	// keepGone is how long the state of a task is kept after its file is gone: an
	// editor or a backup may restore it.
	keepGone = 24 * time.Hour
	// skew is the tolerated difference between the clocks of members.
	skew = 5 * time.Second
)

// A state is the durable state of the heartbeat.
type state struct {
	Tasks   map[string]past `json:"tasks,omitempty"` // by id
	Pending *pending        `json:"pending,omitempty"`
	Tick    claybot.Time    `json:"tick,omitempty"` // in the id of the newest message
	// Unattended counts the ticks since the last user message, which has the time Word:
	// a different Word means a new message.
	Unattended int          `json:"beats,omitempty"`
	Word       claybot.Time `json:"word,omitempty"`
	Paused     *paused      `json:"rest,omitempty"`
}

// A past is the last run of a task: its tick and its end. Asked is when its
// gate last stopped it since.
type past struct {
	Last  claybot.Time `json:"last,omitempty"`
	Ended claybot.Time `json:"ended,omitempty"`
	Asked claybot.Time `json:"asked,omitempty"`
}

// A pending is a message that is about to be posted, is pending, or runs.
type pending struct {
	ID    claybot.MessageID `json:"id"`
	At    claybot.Time      `json:"at"`
	Tasks []string          `json:"tasks"`
}

// A paused is the reason of a pause.
type paused struct {
	At       claybot.Time `json:"at"`
	Why      string       `json:"why"`             // part of a sentence
	Ticks    int          `json:"ticks,omitempty"` // during which no user wrote; 0: the model refused to work
	Notified bool         `json:"told"`            // a person
}

func decode(body []byte) (m state, err error) {
	if len(body) > 0 {
		err = json.Unmarshal(body, &m)
	}
	if err != nil {
		m = state{}
	}
	if m.Tasks == nil {
		m.Tasks = make(map[string]past)
	}
	if m.Pending != nil && m.Pending.ID == "" {
		m.Pending = nil
	}
	return m, err
}

// clone returns a deep copy.
func (m *state) clone() state {
	c := *m
	if c.Tasks = maps.Clone(m.Tasks); c.Tasks == nil {
		c.Tasks = make(map[string]past)
	}
	if m.Pending != nil {
		c.Pending = &pending{m.Pending.ID, m.Pending.At, slices.Clone(m.Pending.Tasks)}
	}
	if m.Paused != nil {
		p := *m.Paused
		c.Paused = &p
	}
	return c
}

func (m *state) encode() []byte {
	b, _ := json.Marshal(m) // texts and numbers always marshal
	return b
}

// turnBack handles a clock that was set back: it changes times in the future to
// now. No time counts as passed, so nothing runs twice, and nothing waits for a
// time that may be years away.
func (m *state) turnBack(now claybot.Time) {
	fit := func(t claybot.Time) claybot.Time {
		if t.Time().Sub(now.Time()) > skew {
			return now
		}
		return max(0, t)
	}
	for id, p := range m.Tasks {
		m.Tasks[id] = past{fit(p.Last), fit(p.Ended), fit(p.Asked)}
	}
	if m.Paused != nil {
		m.Paused.At = fit(m.Paused.At)
	}
}

// conclude records the end of the pending message. here are the existing tasks.
func (m *state) conclude(run claybot.Run, here []*task, now claybot.Time) {
	ended := run.Ended
	if ended == 0 {
		ended = now
	}
	for _, id := range m.Pending.Tasks {
		m.Tasks[id] = past{Last: m.Pending.At, Ended: ended}
	}
	m.Pending = nil
	m.Unattended++
	for id, p := range m.Tasks {
		known := slices.ContainsFunc(here, func(t *task) bool { return t.id == id })
		if !known && now.Time().Sub(max(p.Last, p.Ended, p.Asked).Time()) > keepGone {
			delete(m.Tasks, id)
		}
	}
	if run.State == claybot.RunFailed && run.Error != nil && run.Error.Code == codeRefused && m.Paused == nil {
		m.Paused = &paused{At: now, Why: "the model refused to work, which is mostly about the account or its bill (run " + string(run.ID) + ")"}
	}
}

// next returns when a task is due, not before now; the zero time for never.
func (m *state) next(t *task, s Settings, now time.Time) time.Time {
	if !t.enabled {
		return time.Time{}
	}
	every := t.every
	if every == 0 {
		every = s.Every
	}
	at := now
	p := m.Tasks[t.id]
	if p.Last != 0 {
		// Ticks during the run are skipped.
		run := max(0, p.Ended.Time().Sub(p.Last.Time()))
		at = schedule.Later(at, p.Last.Time().Add(every*(1+run/every)))
	}
	if p.Asked != 0 {
		at = schedule.Later(at, p.Asked.Time().Add(every))
	}
	at = at.In(s.Zone)
	if t.hours != nil {
		return t.hours.next(at)
	}
	return s.hours.next(at)
}

// A memory is the state as last read by this member. The lock of the files
// guards it; the lock of the scheduler also guards state, for readers.
type memory struct {
	tree    *storage.Mirror
	sched   *schedule.Scheduler
	version int64
	state   state
}

// read reads changes of other members.
func (k *memory) read(ctx context.Context) error {
	f, err := storage.ReadFile(ctx, k.tree, stateFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the state of the heartbeat: %w", err)
	}
	m, err := decode(f.Body)
	if err != nil {
		k.sched.Log.Warn("invalid heartbeat state; starting with an empty one", "err", err)
	}
	k.set(m, f.Version)
	return nil
}

func (k *memory) set(m state, version int64) {
	k.sched.Mu.Lock()
	defer k.sched.Mu.Unlock()
	k.state, k.version = m, version
}

// pull reads the state if it has changed. It bypasses the cache of the tree.
func (k *memory) pull(ctx context.Context) error {
	err := k.tree.Look(ctx)
	var e storage.TreeFile
	if err == nil {
		e, err = k.tree.Entry(ctx, stateFile)
	}
	if err != nil {
		return fmt.Errorf("read the state of the heartbeat: %w", err)
	}
	return k.update(ctx, []storage.TreeFile{e})
}

// update reads the state if a listing of the folder shows that it has changed.
func (k *memory) update(ctx context.Context, listing []storage.TreeFile) error {
	var version int64 // 0 while there is no state
	for _, f := range listing {
		if f.Path == stateFile {
			version = f.Version
		}
	}
	if version == k.version {
		return nil
	}
	return k.read(ctx)
}

// edit changes the current shared state by compare-and-set. change may be called
// several times. If it changes nothing, nothing is written.
func (k *memory) edit(ctx context.Context, change func(*state)) error {
	next := k.state.clone()
	if change(&next); reflect.DeepEqual(next, k.state) {
		return nil
	}
	f, err := storage.EditFile(ctx, k.tree, stateFile, func(old storage.TreeFile) ([]byte, error) {
		next, _ = decode(old.Body)
		change(&next)
		if b := next.encode(); string(b) != string(old.Body) {
			return b, nil
		}
		return nil, nil
	})
	if err != nil {
		return fmt.Errorf("write the state of the heartbeat: %w", err)
	}
	k.set(next, f.Version)
	return nil
}

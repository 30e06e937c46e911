package people

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// Moves know which chats got a new id from their platform. Settings, tasks and messages that
// wait go on to name a chat by an id that it had; Current says which one it has. The mapping is
// stored before anything follows it, and is never removed. A nil *Moves knows none.
type Moves struct {
	store storage.CheckpointSet // nil: in memory alone

	mu  sync.RWMutex
	now map[subject]string // by a former id, the id that followed it
}

// NewMoves returns the Moves that a store has. They are empty before Load.
func NewMoves(store storage.CheckpointSet) *Moves {
	return &Moves{store: store, now: make(map[subject]string)}
}

// Load reads the new ids that are stored, those that other members learned included. An id is
// never forgotten, so what is known stays.
func (m *Moves) Load(ctx context.Context) error {
	if m == nil || m.store == nil {
		return nil
	}
	all, err := m.store.ListCheckpoints(ctx, storage.CheckpointMoved)
	if err != nil {
		return fmt.Errorf("read the new ids of chats: %w", err)
	}
	for _, c := range all {
		m.add(c.Value)
	}
	return nil
}

// MovesOf returns the Moves that the values of checkpoints below storage.CheckpointMoved say. They
// store none.
func MovesOf(marks []string) *Moves {
	m := NewMoves(nil)
	for _, mark := range marks {
		m.add(mark)
	}
	return m
}

// A move is the value of a checkpoint.
type move struct {
	Connector string `json:"connector"`
	From      string `json:"from"`
	To        string `json:"to"`
}

// add learns what a checkpoint says; a damaged one says nothing.
func (m *Moves) add(mark string) {
	var x move
	if json.Unmarshal([]byte(mark), &x) != nil || x.From == "" || x.To == "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now[subject{x.Connector, x.From}] = x.To
}

// Note stores that a chat has a new id, and follows it from then on. To note it again changes
// nothing.
func (m *Moves) Note(ctx context.Context, connector, from, to string) error {
	if m == nil || from == "" || to == "" || m.Current(connector, from) == m.Current(connector, to) {
		return nil
	}
	mark, _ := json.Marshal(move{connector, from, to}) // strings always encode
	if m.store != nil {
		if err := m.store.SetCheckpoint(ctx, storage.CheckpointMoved+connector+"/"+from, string(mark)); err != nil {
			return fmt.Errorf("store the new id of %s:%s: %w", connector, from, err)
		}
	}
	m.add(string(mark))
	return nil
}

// Current returns the id that a chat has now, by an id that it has or had. If members stored
// opposite moves at once, which form a ring, each id stays itself.
func (m *Moves) Current(connector, channel string) string {
	if m == nil {
		return channel
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.current(connector, channel)
}

// current is Current. The caller holds the lock.
func (m *Moves) current(connector, channel string) string {
	now := channel
	for range len(m.now) + 1 { // more steps than there are moves only in a ring
		next, ok := m.now[subject{connector, now}]
		if !ok {
			return now
		}
		now = next
	}
	return channel
}

// Route returns a route with the id that its chat has now.
func (m *Moves) Route(r claybot.Route) claybot.Route {
	r.ChannelID = m.Current(r.Connector, r.ChannelID)
	return r
}

// Named returns connector:id with the id that the chat has now.
func (m *Moves) Named(name string) string {
	connector, channel, _ := strings.Cut(name, ":")
	if now := m.Current(connector, channel); now != channel {
		return connector + ":" + now
	}
	return name
}

// Former returns the ids that a chat had before the one that it has, sorted.
func (m *Moves) Former(connector, channel string) (all []string) {
	if m == nil {
		return nil
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	for from := range m.now {
		if from.connector == connector && from.id != channel && m.current(connector, from.id) == channel {
			all = append(all, from.id)
		}
	}
	slices.Sort(all)
	return all
}

// A Renamed is a chat that settings name by an id that it has no more, as connector:id.
type Renamed struct{ Was, Now string }

// Renamed returns those of names, connector:id, whose chats have a new id, sorted. A Slack
// channel may be named without its workspace.
func (m *Moves) Renamed(names []string) (all []Renamed) {
	if m == nil {
		return nil
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	for from := range m.now {
		now := m.current(from.connector, from.id)
		if now == from.id {
			continue
		}
		was, is := []string{from.id}, []string{now}
		if short := withoutTeam(from.id); short != "" {
			was, is = append(was, short), append(is, cmp.Or(withoutTeam(now), now))
		}
		for i := range was {
			if name := from.connector + ":" + was[i]; slices.Contains(names, name) {
				all = append(all, Renamed{name, from.connector + ":" + is[i]})
			}
		}
	}
	slices.SortFunc(all, func(a, b Renamed) int { return cmp.Compare(a.Was, b.Was) })
	return all
}

// withoutTeam returns a channel named <team>/<channel> as lists may name it: without the team.
// It returns nothing for any other id.
func withoutTeam(channel string) string {
	_, short, _ := strings.Cut(channel, "/")
	return short
}

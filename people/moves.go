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
// stored before anything follows it, and is never removed. A chat that gets an id back which it,
// or another one, had before has that id from then on. A nil *Moves knows none.
type Moves struct {
	store storage.CheckpointSet // nil: in memory alone

	mu      sync.RWMutex
	all     map[subject]move // by a former id
	changes int              // of all
	// now and former are what all amounts to: by a former id, the present one; by a present
	// id, the former ones, sorted.
	now    map[subject]string
	former map[subject][]string
}

// NewMoves returns the Moves that a store has. They are empty before Load.
func NewMoves(store storage.CheckpointSet) *Moves {
	return &Moves{store: store, all: make(map[subject]move)}
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
	marks := make([]string, len(all))
	for i, c := range all {
		marks[i] = c.Value
	}
	m.add(marks...)
	return nil
}

// MovesOf returns the Moves that the values of checkpoints below storage.CheckpointMoved say. They
// store none.
func MovesOf(marks []string) *Moves {
	m := NewMoves(nil)
	m.add(marks...)
	return m
}

// A move is the value of a checkpoint.
type move struct {
	Connector string       `json:"connector"`
	From      string       `json:"from"`
	To        string       `json:"to"`
	At        claybot.Time `json:"at,omitempty"` // by the platform; members before this field store none
}

// add learns what checkpoints say; a damaged one says nothing. Of two moves from one id, the later
// one holds.
func (m *Moves) add(marks ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	changed := false
	for _, mark := range marks {
		var x move
		if json.Unmarshal([]byte(mark), &x) != nil || x.From == "" || x.To == "" {
			continue
		}
		from := subject{x.Connector, x.From}
		if was, ok := m.all[from]; ok && (was == x || was.At > x.At) {
			continue
		}
		m.all[from], changed = x, true
	}
	if changed {
		m.changes++
		m.index()
	}
}

// index derives the present ids. The caller holds the lock.
func (m *Moves) index() {
	given := make(map[subject]claybot.Time, len(m.all)) // when a chat last got an id
	for _, x := range m.all {
		to := subject{x.Connector, x.To}
		given[to] = max(given[to], x.At)
	}
	m.now, m.former = make(map[subject]string, len(m.all)), make(map[subject][]string, len(m.all))
	for from := range m.all {
		now, since := from, given[from]
		for range len(m.all) + 1 { // more steps than there are moves only in a ring
			x, ok := m.all[now]
			if !ok || since > x.At { // the chat got this id after the one that left it then
				if now != from {
					m.now[from] = now.id
					m.former[now] = append(m.former[now], from.id)
				}
				break
			}
			now.id, since = x.To, x.At
		}
	}
	for _, ids := range m.former {
		slices.Sort(ids)
	}
}

// movedAt starts the keys of when chats last left an id, by connector/id: of two members that store
// moves from one id, the later move wins.
const movedAt = "moved at/"

// Note stores that a chat has a new id since a time of its platform, and follows it from then on.
// To note it again, or after a later move from that id, changes nothing; if another member stored
// the later one, this one knows it then.
func (m *Moves) Note(ctx context.Context, connector, from, to string, at claybot.Time) error {
	if m == nil || from == "" || to == "" || from == to || m.isNoted(connector, from, to, at) {
		return nil
	}
	mark, _ := json.Marshal(move{connector, from, to, at}) // strings and a number always encode
	if m.store != nil {
		chat := connector + "/" + from
		stored, err := m.store.AdvanceCheckpoint(ctx, movedAt+chat, int64(at), map[string]string{storage.CheckpointMoved + chat: string(mark)})
		if err != nil {
			return fmt.Errorf("store the new id of %s:%s: %w", connector, from, err)
		}
		if !stored {
			return m.Load(ctx)
		}
	}
	m.add(string(mark))
	return nil
}

// isNoted reports whether a move, or a later one from the same id, is known.
func (m *Moves) isNoted(connector, from, to string, at claybot.Time) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	was, ok := m.all[subject{connector, from}]
	return ok && (was.At >= at || was.To == to && m.current(connector, from) != from)
}

// Changes counts the moves that were learned: while it stays, so does every present id.
func (m *Moves) Changes() int {
	if m == nil {
		return 0
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.changes
}

// Current returns the id that a chat has now, by an id that it has or had. Moves of one moment
// that form a ring, as two members that store opposite ones at once may leave, leave each id
// itself.
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
	return cmp.Or(m.now[subject{connector, channel}], channel)
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
func (m *Moves) Former(connector, channel string) []string {
	if m == nil {
		return nil
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.Clone(m.former[subject{connector, channel}])
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
	for from, now := range m.now {
		if name := from.connector + ":" + from.id; slices.Contains(names, name) {
			all = append(all, Renamed{name, from.connector + ":" + now})
		}
		if short := withoutTeam(from.id); short != "" && slices.Contains(names, from.connector+":"+short) {
			all = append(all, Renamed{from.connector + ":" + short, from.connector + ":" + cmp.Or(withoutTeam(now), now)})
		}
	}
	slices.SortFunc(all, func(a, b Renamed) int { return cmp.Compare(a.Was, b.Was) })
	return all
}

// IsNamed reports whether a chat is one of names, connector:id. A Slack channel may be named
// without its workspace.
func IsNamed(names []string, connector, channel string) bool {
	short := withoutTeam(channel)
	return slices.Contains(names, connector+":"+channel) || short != "" && slices.Contains(names, connector+":"+short)
}

// withoutTeam returns a channel named <team>/<channel> as lists may name it: without the team.
// It returns nothing for any other id.
func withoutTeam(channel string) string {
	_, short, _ := strings.Cut(channel, "/")
	return short
}

package relational

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

var (
	_ storage.Agents    = (*Agents)(nil)
	_ storage.Histories = (*Agents)(nil)
	_ storage.Files     = (*Agents)(nil)
)

// An Agents stores agents in the tables of a Store: their identity in agents, their
// history in records, their files in attachments. Every write with a lease locks the
// agent's row and checks the lease, so the writes of one holder are complete before
// another one reads.
type Agents struct {
	*core
	blobs     storage.Blobs
	maxInline int64
	recent    *storage.Recent[claybot.AgentID, recall] // histories that were closed a moment ago
}

// NewAgents returns the agents in the tables of db. blobs stores the bytes of files;
// with nil, the table chunks does, for files of at most maxInline bytes; 0 means any
// size.
func NewAgents(db *Store, blobs storage.Blobs, maxInline int64) *Agents {
	return &Agents{db.core, blobs, maxInline, storage.NewRecent[claybot.AgentID, recall](recentHistories, recentIdle)}
}

// Release drops most of what is in memory for speed alone; it is read again when it is needed.
func (s *Agents) Release() { s.recent.Shrink(releasedRecent, releasedAgents) }

// AgentFor implements storage.Agents.
func (s *Agents) AgentFor(ctx context.Context, d claybot.Descriptor) (claybot.Agent, error) {
	return s.agentFor(ctx, d, nil)
}

// NewAgent implements storage.Agents.
func (s *Agents) NewAgent(ctx context.Context, d claybot.Descriptor, b claybot.Background) (claybot.Agent, error) {
	return s.agentFor(ctx, d, &b)
}

func (s *Agents) agentFor(ctx context.Context, d claybot.Descriptor, b *claybot.Background) (claybot.Agent, error) {
	if err := storage.CheckDescriptor(d); err != nil {
		return claybot.Agent{}, err
	}
	what := "agent for " + d.Key()
	var a claybot.Agent
	err := s.read(ctx, func(c *Conn) (err error) { a, err = loadAgent(c, "key", d.Key()); return err })
	if err == nil && storage.Renamed(a.Descriptor, d) == a.Descriptor {
		return a, nil
	}
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return claybot.Agent{}, fmt.Errorf("%s: %w", what, err)
	}
	a, err = write(ctx, s.core, func(c *Conn) (claybot.Agent, error) { return makeAgent(c, d, b) })
	return result(a, err, "%s", what)
}

// makeAgent finds the agent of d and updates its name, or creates it.
func makeAgent(c *Conn, d claybot.Descriptor, b *claybot.Background) (claybot.Agent, error) {
	if err := c.lock("agent/" + d.Key()); err != nil {
		return claybot.Agent{}, err
	}
	a, err := loadAgent(c, "key", d.Key())
	if err == nil {
		if d = storage.Renamed(a.Descriptor, d); d == a.Descriptor {
			return a, nil
		}
		a.Descriptor = d
		return a, indexAgent(c, a)
	}
	if !errors.Is(err, storage.ErrNotFound) {
		return a, err
	}
	at := claybot.Time(c.now())
	a = claybot.Agent{ID: claybot.NewID(), Descriptor: d, CreatedAt: at, State: storage.NewState(at)}
	a.State.Background = b
	if err := indexAgent(c, a); err != nil {
		return a, err
	}
	if err := saveState(c, a.ID, a.State); err != nil {
		return a, err
	}
	if err := addRecords(c, a.ID, 0, claybot.Record{Type: claybot.RecordStart, V: 1, At: at}); err != nil {
		return a, err
	}
	return loadAgent(c, "id", string(a.ID)) // do not keep b, which belongs to the caller
}

// loadAgent loads an agent by its id or key. It replaces a damaged state with
// the initial one.
func loadAgent(c *Conn, column, value string) (a claybot.Agent, err error) {
	err = need(c.first("SELECT "+agentColumns+" FROM agents WHERE "+column+" = ?"+c.locked(),
		func(r Row) (err error) { a, err = decodeAgent(r); return err }, value))
	return a, err
}

// agentColumns are what decodeAgent reads.
const agentColumns = "id, descriptor, created_at, state"

func decodeAgent(r Row) (claybot.Agent, error) {
	a := claybot.Agent{ID: claybot.AgentID(r.Str(0)), CreatedAt: claybot.Time(r.Int(2))}
	a.State = storage.NewState(a.CreatedAt)
	if !r.Null(3) {
		var st claybot.AgentState
		if unmarshal(r.Str(3), &st) == nil {
			a.State = st
		}
		if a.State.Engine == "" {
			a.State.Engine = storage.DefaultEngine
		}
	}
	return a, unmarshal(r.Str(1), &a.Descriptor)
}

// Agent implements storage.Agents.
func (s *Agents) Agent(ctx context.Context, id claybot.AgentID) (a claybot.Agent, err error) {
	err = s.read(ctx, func(c *Conn) (err error) { a, err = loadAgent(c, "id", string(id)); return err })
	return result(a, err, "agent %s", id)
}

// SaveState implements storage.Agents. It keeps unknown JSON members.
func (s *Agents) SaveState(ctx context.Context, l storage.Lease, st claybot.AgentState) error {
	err := s.core.update(ctx, func(c *Conn) error {
		if _, err := leased(c, l); err != nil {
			return err
		}
		return saveState(c, l.Agent, st)
	})
	return failed(err, "save state of agent %s", l.Agent)
}

func saveState(c *Conn, id claybot.AgentID, st claybot.AgentState) error {
	var before string
	_, err := c.first("SELECT state FROM agents WHERE id = ?", func(r Row) error { before = r.Str(0); return nil }, id)
	if err != nil {
		return err
	}
	b, err := overlaid(before, st)
	if err != nil {
		return err
	}
	return c.do("UPDATE agents SET state = ? WHERE id = ?", b, id)
}

// overlaid returns st as JSON with the members of before that claybot.AgentState
// does not know: a later version in the same cluster may have written them.
func overlaid(before string, st claybot.AgentState) ([]byte, error) {
	b, err := json.Marshal(st)
	if err != nil || before == "" {
		return b, err
	}
	var old, known map[string]json.RawMessage
	var was claybot.AgentState
	if json.Unmarshal([]byte(before), &old) != nil || json.Unmarshal([]byte(before), &was) != nil {
		return b, nil
	}
	reread, err := json.Marshal(was)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(json.Unmarshal(reread, &known), json.Unmarshal(b, &known)); err != nil { // the members of both
		return nil, err
	}
	maps.DeleteFunc(old, func(name string, _ json.RawMessage) bool {
		for k := range known {
			if strings.EqualFold(k, name) {
				return true
			}
		}
		return false
	})
	if len(old) == 0 {
		return b, nil
	}
	all := make(map[string]json.RawMessage)
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, err
	}
	maps.Copy(all, old)
	return json.Marshal(all)
}

// MoveChannel implements storage.Agents. An agent whose new descriptor is taken
// is not moved.
func (s *Agents) MoveChannel(ctx context.Context, connector, from, to string) error {
	if from == to {
		return nil
	}
	entries, err := index{s.core}.ChannelAgents(ctx, connector, from)
	if err != nil {
		return fmt.Errorf("move channel of %s: %w", connector, err)
	}
	for _, e := range entries {
		err := s.core.update(ctx, func(c *Conn) error { return s.move(c, e.ID, to) })
		if class := storage.ClassOf(err); class == storage.ClassAgent || class == storage.ClassMember {
			s.log.Error("agent of a moved channel left unchanged", "agent", e.ID, "err", err)
			continue // continue with the others
		}
		if err != nil {
			return fmt.Errorf("move channel of agent %s: %w", e.ID, err)
		}
	}
	return nil
}

func (s *Agents) move(c *Conn, id claybot.AgentID, to string) error {
	a, err := loadAgent(c, "id", string(id))
	if err != nil {
		return ignoreNotFound(err)
	}
	a.Descriptor.ChannelID = to
	if err := c.lock("agent/" + a.Descriptor.Key()); err != nil {
		return err
	}
	taken, err := c.first("SELECT 1 FROM agents WHERE key = ?", func(Row) error { return nil }, a.Descriptor.Key())
	if err != nil {
		return err
	}
	if taken {
		s.log.Warn("channel moved, but a different agent exists there", "agent", id)
		return nil
	}
	return indexAgent(c, a)
}

// Delete implements storage.Agents. The history and the files stay for 30 days,
// see PruneFiles.
func (s *Agents) Delete(ctx context.Context, id claybot.AgentID) error {
	err := s.core.update(ctx, func(c *Conn) error {
		a, err := loadInbox(c, id)
		if err != nil {
			return err
		}
		err = c.do("INSERT INTO quarantine (agent, at, descriptor, state) SELECT id, CAST(? AS BIGINT), descriptor, state FROM agents WHERE id = ?", c.now(), id)
		if err != nil {
			return err
		}
		return unindex(c, a)
	})
	return failed(err, "delete agent %s", id)
}

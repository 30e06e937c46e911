package relational

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// IndexedAgent implements storage.Index.
func (db index) IndexedAgent(ctx context.Context, d claybot.Descriptor) (claybot.AgentID, error) {
	var id claybot.AgentID
	err := db.read(ctx, func(c *Conn) error {
		return need(c.first("SELECT id FROM agents WHERE key = ?",
			func(r Row) error { id = claybot.AgentID(r.Str(0)); return nil }, d.Key()))
	})
	if err != nil {
		return "", fmt.Errorf("index of %s: %w", d.Key(), err)
	}
	return id, nil
}

// IndexedDescriptor implements storage.Index.
func (db index) IndexedDescriptor(ctx context.Context, id claybot.AgentID) (claybot.Descriptor, error) {
	var d claybot.Descriptor
	err := db.read(ctx, func(c *Conn) error {
		return need(c.first("SELECT descriptor FROM agents WHERE id = ?",
			func(r Row) error { return unmarshal(r.Str(0), &d) }, id))
	})
	if err != nil {
		return claybot.Descriptor{}, fmt.Errorf("index of agent %s: %w", id, err)
	}
	return d, nil
}

// entryColumns are what decodeEntry reads.
const (
	entryColumns = "id, descriptor, last_user_at, usage, waiting, created_at, run, first_n"
	entryWidth   = 8
)

// noUsage is the usage of an agent that has none yet.
const noUsage = "{}"

func decodeEntry(r Row) (storage.IndexEntry, error) {
	e := storage.IndexEntry{
		ID: claybot.AgentID(r.Str(0)), LastUserAt: claybot.Time(r.Int(2)), Waiting: int(r.Int(4)),
		CreatedAt: claybot.Time(r.Int(5)), Run: claybot.RunID(r.Str(6)),
	}
	e.Busy = e.Run != "" || r.Int(7) > 0
	err := unmarshal(r.Str(1), &e.Descriptor)
	if u := r.Str(3); u != noUsage {
		err = errors.Join(err, unmarshal(u, &e.Usage))
	}
	if err != nil {
		return e, fmt.Errorf("agent %s: %w", e.ID, err)
	}
	return e, nil
}

// IndexedAgentByID implements storage.Index.
func (db index) IndexedAgentByID(ctx context.Context, id claybot.AgentID) (storage.IndexEntry, error) {
	var e storage.IndexEntry
	err := db.read(ctx, func(c *Conn) error {
		return need(c.first("SELECT "+entryColumns+" FROM agents WHERE id = ?",
			func(r Row) (err error) { e, err = decodeEntry(r); return err }, id))
	})
	if err != nil {
		return storage.IndexEntry{}, fmt.Errorf("index of agent %s: %w", id, err)
	}
	return e, nil
}

// IndexAgents implements storage.Index. A new agent brings its figures; a
// descriptor that another agent has is refused, and then nothing is stored.
func (db index) IndexAgents(ctx context.Context, agents ...claybot.Agent) error {
	if len(agents) == 0 {
		return nil
	}
	_, err := write(ctx, db, func(c *Conn) (struct{}, error) {
		for _, a := range agents {
			if err := indexAgent(c, a); err != nil {
				return struct{}{}, fmt.Errorf("index agent %s: %w", a.ID, err)
			}
		}
		return struct{}{}, nil
	})
	return err
}

func indexAgent(c *Conn, a claybot.Agent) error {
	d, err := json.Marshal(a.Descriptor)
	if err != nil {
		return err
	}
	kind, owner, parent, root := kinColumns(a.Descriptor)
	n, err := c.exec(`UPDATE agents SET key = ?, descriptor = ?, type = ?, owner = ?, parent = ?, root = ?,
		created_at = CASE created_at WHEN 0 THEN ? ELSE created_at END WHERE id = ?`,
		a.Descriptor.Key(), d, kind, owner, parent, root, a.CreatedAt, a.ID)
	if err != nil || n > 0 {
		return err
	}
	u := []byte(noUsage)
	if a.State.Usage != (claybot.Usage{}) {
		if u, err = json.Marshal(a.State.Usage); err != nil {
			return err
		}
	}
	err = c.do(`INSERT INTO agents (id, key, descriptor, type, owner, parent, root, created_at, last_user_at, usage)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		a.ID, a.Descriptor.Key(), d, kind, owner, parent, root, a.CreatedAt, a.State.LastUserAt, u)
	if err != nil {
		return err
	}
	c.tally[countAgents]++
	return nil
}

// reasonRemoved is why messages and runs of an agent that was removed ended.
const reasonRemoved = "agent_removed"

// UnindexAgent implements storage.Index. What still waits for the agent is
// dropped, and its unfinished run fails, as nothing can work on them any more;
// those who wait for it, and the parent of a subagent, are told. Its reminders
// and documents go with it. An unknown id changes nothing.
func (db index) UnindexAgent(ctx context.Context, id claybot.AgentID) error {
	_, err := write(ctx, db, func(c *Conn) (struct{}, error) {
		a, err := loadInbox(c, id)
		if err != nil {
			return struct{}{}, ignoreNotFound(err)
		}
		return struct{}{}, unindex(c, a)
	})
	if err != nil {
		return fmt.Errorf("remove agent %s from the index: %w", id, err)
	}
	return nil
}

func unindex(c *Conn, a *inboxRow) error {
	if _, err := dropWaiting(c, a, reasonRemoved, nil); err != nil {
		return err
	}
	var notice *storage.Posting
	if a.run != "" {
		why := claybot.RunError{Code: reasonRemoved, Text: "the agent was deleted"}
		run, err := failRun(c, a, why)
		if err = ignoreNotFound(err); err != nil {
			return err
		}
		if run.ID != "" {
			if notice, err = tellOfFailure(c, a, run, why); err != nil {
				return err
			}
		}
	}
	for _, q := range []string{
		"DELETE FROM agents WHERE id = ?1", "DELETE FROM reminders WHERE agent = ?1", "DELETE FROM settings WHERE agent = ?1",
	} {
		if err := c.do(q, a.id); err != nil {
			return err
		}
	}
	// An agent without an owner keeps its store in a scope of its own below, and
	// what runs have replaced lies there, too.
	if err := c.do("DELETE FROM documents WHERE scope IN (?1, ?1 || '/store', ?1 || '/undo', ?1 || '/undo/store')", agentScope(a.id)); err != nil {
		return err
	}
	for _, q := range [...]string{"DELETE FROM memories WHERE scope = ?1", "DELETE FROM memory_versions WHERE scope = ?1"} {
		if err := c.do(q, agentScope(a.id)); err != nil {
			return err
		}
	}
	c.tally[countAgents]--
	if err := refuseAll(c, a); err != nil {
		return err
	}
	return postNotice(c, notice)
}

// IndexedAgents implements storage.Index. It reads in pages, so that the
// caller may use the store between two agents.
func (db index) IndexedAgents(ctx context.Context) iter.Seq2[storage.IndexEntry, error] {
	const page = 500
	return func(yield func(storage.IndexEntry, error) bool) {
		entries := make([]storage.IndexEntry, 0, page)
		last := claybot.AgentID("")
		for {
			entries = entries[:0]
			err := db.read(ctx, func(c *Conn) error {
				return c.each("SELECT "+entryColumns+" FROM agents WHERE id > ? ORDER BY id LIMIT 0+?", func(r Row) error {
					e, err := decodeEntry(r)
					entries = append(entries, e)
					return err
				}, last, page)
			})
			if err != nil {
				yield(storage.IndexEntry{}, fmt.Errorf("list agents: %w", err))
				return
			}
			for _, e := range entries {
				if !yield(e, nil) {
					return
				}
			}
			if len(entries) < page {
				return
			}
			last = entries[page-1].ID
		}
	}
}

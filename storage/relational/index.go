package relational

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

func (db index) IndexedAgent(ctx context.Context, d claybot.Descriptor) (claybot.AgentID, error) {
	var id claybot.AgentID
	err := db.read(ctx, func(c *Conn) error {
		return need(c.first("SELECT id FROM agents WHERE key = ?",
			func(r Row) error { id = claybot.AgentID(r.Str(0)); return nil }, d.Key()))
	})
	return result(id, err, "index of %s", d.Key())
}

func (db index) IndexedDescriptor(ctx context.Context, id claybot.AgentID) (claybot.Descriptor, error) {
	var d claybot.Descriptor
	err := db.read(ctx, func(c *Conn) error {
		return need(c.first("SELECT descriptor FROM agents WHERE id = ?",
			func(r Row) error { return unmarshal(r.Str(0), &d) }, id))
	})
	return result(d, err, "index of agent %s", id)
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
	return e, failed(err, "agent %s", e.ID)
}

func (db index) IndexedAgentByID(ctx context.Context, id claybot.AgentID) (storage.IndexEntry, error) {
	var e storage.IndexEntry
	err := db.read(ctx, func(c *Conn) error {
		return need(c.first("SELECT "+entryColumns+" FROM agents WHERE id = ?",
			func(r Row) (err error) { e, err = decodeEntry(r); return err }, id))
	})
	return result(e, err, "index of agent %s", id)
}

// IndexAgents implements storage.Index. New agents are stored with their usage.
// If another agent has one of the descriptors, it returns an error and stores
// nothing.
func (db index) IndexAgents(ctx context.Context, agents ...claybot.Agent) error {
	if len(agents) == 0 {
		return nil
	}
	err := db.update(ctx, func(c *Conn) error {
		for _, a := range agents {
			if err := indexAgent(c, a); err != nil {
				return fmt.Errorf("index agent %s: %w", a.ID, err)
			}
		}
		return nil
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

// reasonRemoved is the reason with which messages and runs of a removed agent
// end.
const reasonRemoved = "agent_removed"

// UnindexAgent implements storage.Index. It drops the agent's pending messages
// and fails its unfinished run; waiting runs, and the parent of a subagent, are
// notified. It deletes the agent's reminders and documents. An unknown id
// changes nothing.
func (db index) UnindexAgent(ctx context.Context, id claybot.AgentID) error {
	err := db.update(ctx, func(c *Conn) error {
		a, err := loadInbox(c, id)
		if err != nil {
			return ignoreNotFound(err)
		}
		return unindex(c, a)
	})
	return failed(err, "remove agent %s from the index", id)
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
	// An agent without an owner has its store in a scope below its own, with the
	// versions that runs have replaced.
	if err := c.do("DELETE FROM documents WHERE scope IN (?1, ?1 || '/store', ?1 || '/undo', ?1 || '/undo/store')", agentScope(a.id)); err != nil {
		return err
	}
	c.touched.notes = true
	for _, q := range [...]string{"DELETE FROM memories WHERE scope = ?1", "DELETE FROM memory_versions WHERE scope = ?1"} {
		if err := c.do(q, agentScope(a.id)); err != nil {
			return err
		}
	}
	c.tally[countAgents]--
	a.countFlow(c, storage.FlowLoad{})
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

// AgentSettings implements storage.Settings. It omits damaged settings: their
// agents use their profile.
func (db index) AgentSettings(ctx context.Context) (map[claybot.AgentID]claybot.Settings, error) {
	all := make(map[claybot.AgentID]claybot.Settings)
	err := db.read(ctx, func(c *Conn) error {
		return c.each("SELECT agent, body FROM settings", func(r Row) error {
			var s claybot.Settings
			if err := unmarshal(r.Str(1), &s); err != nil {
				db.log.Error("damaged agent settings", "agent", r.Str(0), "err", err)
				return nil
			}
			all[claybot.AgentID(r.Str(0))] = s
			return nil
		})
	})
	return result(all, err, "settings of agents")
}

func (db index) SaveAgentSettings(ctx context.Context, id claybot.AgentID, s claybot.Settings) error {
	body, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("settings of agent %s: %w", id, err)
	}
	err = db.update(ctx, func(c *Conn) error {
		err := need(c.first("SELECT 1 FROM agents WHERE id = ?", func(Row) error { return nil }, id))
		if err != nil {
			return err
		}
		if err := changedBy(c, versionSettings); err != nil {
			return err
		}
		if string(body) == "{}" {
			return c.do("DELETE FROM settings WHERE agent = ?", id)
		}
		return c.do("INSERT INTO settings (agent, body) VALUES (?1, ?2) ON CONFLICT (agent) DO UPDATE SET body = ?2", id, body)
	})
	return failed(err, "settings of agent %s", id)
}

// Foreground implements storage.AgentReader. It reads in pages, so that the caller
// may use the store between two agents; an agent that gets a message meanwhile may
// be yielded twice.
func (db index) Foreground(ctx context.Context, owners []string) iter.Seq2[storage.IndexEntry, error] {
	const page = 50
	return func(yield func(storage.IndexEntry, error) bool) {
		q := "SELECT " + entryColumns + ", last_user_n FROM agents INDEXED BY %s WHERE type = 'user' AND last_user_at > 0"
		index := "agents_listed"
		var filter []any
		if owners != nil {
			b, err := json.Marshal(owners)
			if err != nil {
				yield(storage.IndexEntry{}, fmt.Errorf("foreground agents: %w", err))
				return
			}
			q += " AND owner IN (SELECT value FROM json_each(?))"
			filter, index = []any{b}, "agents_owned"
		}
		q = fmt.Sprintf(q, index)
		q += ` AND (last_user_at, last_user_n, created_at, id) < (?, ?, ?, ?)
			ORDER BY last_user_at DESC, last_user_n DESC, created_at DESC, id DESC LIMIT 0+?`
		p := firstPlace
		for {
			var entries []storage.IndexEntry
			rows := 0
			err := db.read(ctx, func(c *Conn) error {
				return c.each(q, func(r Row) error {
					e, err := decodeEntry(r)
					p = place{e.LastUserAt, r.Int(entryWidth), e.CreatedAt, e.ID}
					rows++
					if err != nil {
						db.log.Error("damaged index row of an agent", "agent", e.ID, "err", err)
						return nil
					}
					entries = append(entries, e)
					return nil
				}, append(filter[:len(filter):len(filter)], p.userAt, p.userN, p.created, p.id, page)...)
			})
			if err != nil {
				yield(storage.IndexEntry{}, fmt.Errorf("foreground agents: %w", err))
				return
			}
			for _, e := range entries {
				if !yield(e, nil) {
					return
				}
			}
			if rows < page {
				return
			}
		}
	}
}

func (db index) Children(ctx context.Context, parent claybot.AgentID) ([]storage.IndexEntry, error) {
	entries, err := db.entries(ctx, "parent = ? ORDER BY created_at, id", parent)
	return result(entries, err, "children of agent %s", parent)
}

func (db index) OwnedAgents(ctx context.Context, owner string) ([]storage.IndexEntry, error) {
	entries, err := db.entries(ctx, "owner = ?", owner)
	return result(entries, err, "agents of owner %s", owner)
}

// ChannelAgents implements storage.AgentReader. Their keys have the channel in front.
func (db index) ChannelAgents(ctx context.Context, connector, channel string) ([]storage.IndexEntry, error) {
	from, to := channelKeys(connector, channel)
	entries, err := db.entries(ctx, "key >= ? AND key < ?", from, to)
	return result(entries, err, "agents of channel %s of %s", channel, connector)
}

// channelKeys are the bounds of the keys of the user agents of a channel: the key of one
// up to the user, and the next string of that length.
func channelKeys(connector, channel string) (from, to string) {
	const end = `""]` // the user
	from = strings.TrimSuffix(claybot.User(connector, channel, "").Key(), end)
	return from, from[:len(from)-1] + "-" // after the comma
}

// entries returns the undamaged entries of a condition.
func (db index) entries(ctx context.Context, where string, args ...any) (entries []storage.IndexEntry, err error) {
	err = db.read(ctx, func(c *Conn) error {
		return c.each("SELECT "+entryColumns+" FROM agents WHERE "+where, func(r Row) error {
			e, err := decodeEntry(r)
			if err != nil {
				db.log.Error("damaged index row of an agent", "agent", e.ID, "err", err)
				return nil
			}
			entries = append(entries, e)
			return nil
		}, args...)
	})
	return entries, err
}

func (db index) Started(ctx context.Context, root claybot.AgentID, since claybot.Time) (int, error) {
	var n int64
	err := db.read(ctx, func(c *Conn) error {
		return need(c.first("SELECT count(*) FROM agents WHERE root = ? AND created_at >= ?",
			func(r Row) error { n = r.Int(0); return nil }, root, since))
	})
	return result(int(n), err, "subagents started below %s", root)
}

// kinColumns are the columns of d by which agents find each other.
func kinColumns(d claybot.Descriptor) (kind claybot.AgentType, owner, parent, root any) {
	return d.Type, text(d.OwnerID()), text(string(d.Parent)), text(string(d.Root))
}

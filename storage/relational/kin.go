package relational

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// Foreground implements storage.AgentReader. It reads in pages, so that the caller
// may use the store between two agents; one that is written to meanwhile may
// come twice.
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
						db.log.Error("the index of an agent is damaged", "agent", e.ID, "err", err)
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

// Children implements storage.AgentReader.
func (db index) Children(ctx context.Context, parent claybot.AgentID) ([]storage.IndexEntry, error) {
	var entries []storage.IndexEntry
	err := db.read(ctx, func(c *Conn) error {
		return c.each("SELECT "+entryColumns+" FROM agents WHERE parent = ? ORDER BY created_at, id", func(r Row) error {
			e, err := decodeEntry(r)
			if err != nil {
				db.log.Error("the index of an agent is damaged", "agent", e.ID, "err", err)
				return nil
			}
			entries = append(entries, e)
			return nil
		}, parent)
	})
	if err != nil {
		return nil, fmt.Errorf("children of agent %s: %w", parent, err)
	}
	return entries, nil
}

// Started implements storage.AgentReader.
func (db index) Started(ctx context.Context, root claybot.AgentID, since claybot.Time) (int, error) {
	var n int64
	err := db.read(ctx, func(c *Conn) error {
		return need(c.first("SELECT count(*) FROM agents WHERE root = ? AND created_at >= ?",
			func(r Row) error { n = r.Int(0); return nil }, root, since))
	})
	if err != nil {
		return 0, fmt.Errorf("subagents started below %s: %w", root, err)
	}
	return int(n), nil
}

// kinColumns are the columns of d by which agents find each other.
func kinColumns(d claybot.Descriptor) (kind claybot.AgentType, owner, parent, root any) {
	return d.Type, text(d.OwnerID()), text(string(d.Parent)), text(string(d.Root))
}

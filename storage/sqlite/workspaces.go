package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/workspace"
)

var _ workspace.Ledger = (*DB)(nil)

// errNoIdentity refuses an entry that nobody could find.
var errNoIdentity = errors.New("it has no provider, or no key")

const workspaceColumns = "node, provider, key, agent, state, image, platform, last_used, ttl, data, tries, next_try, problem, changed, version"

func decodeWorkspace(r row) workspace.Entry {
	return workspace.Entry{
		Node: r.str(0), Provider: r.str(1), Key: workspace.Key(r.str(2)), Agent: claybot.AgentID(r.str(3)),
		State: workspace.State(r.str(4)), Image: r.str(5), Platform: r.str(6), LastUsed: fromMillis(r.int(7)),
		TTL: time.Duration(r.int(8)) * time.Millisecond, Data: r.int(9) != 0, Tries: int(r.int(10)),
		NextTry: fromMillis(r.int(11)), Problem: r.str(12), Changed: fromMillis(r.int(13)), Version: r.int(14),
	}
}

// millis is a time as it is stored; 0 for none.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMillis(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMilli(n).UTC()
}

// WorkspaceEntry implements workspace.Ledger.
func (db *DB) WorkspaceEntry(ctx context.Context, node, provider string, key workspace.Key) (e workspace.Entry, ok bool, err error) {
	err = db.read(ctx, func(c *conn) error {
		var err error
		ok, err = c.first("SELECT "+workspaceColumns+" FROM workspaces WHERE node = ? AND provider = ? AND key = ?",
			func(r row) error { e = decodeWorkspace(r); return nil }, node, provider, string(key))
		return err
	})
	if err != nil {
		return workspace.Entry{}, false, fmt.Errorf("workspace %s: %w", key, err)
	}
	return e, ok, nil
}

// WorkspaceEntries implements workspace.Ledger.
func (db *DB) WorkspaceEntries(ctx context.Context, node string) ([]workspace.Entry, error) {
	var list []workspace.Entry
	err := db.read(ctx, func(c *conn) error {
		return c.each("SELECT "+workspaceColumns+" FROM workspaces WHERE ?1 = '' OR node = ?1 ORDER BY node, provider, key",
			func(r row) error { list = append(list, decodeWorkspace(r)); return nil }, node)
	})
	if err != nil {
		return nil, fmt.Errorf("workspaces: %w", err)
	}
	return list, nil
}

// SaveWorkspaceEntry implements workspace.Ledger. Times are kept to the
// millisecond.
func (db *DB) SaveWorkspaceEntry(ctx context.Context, e workspace.Entry) (bool, error) {
	saved, err := write(ctx, db, func(c *conn) (bool, error) {
		if e.Provider == "" || e.Key == "" {
			return false, errNoIdentity
		}
		data := 0
		if e.Data {
			data = 1
		}
		n, err := c.exec(`INSERT INTO workspaces (`+workspaceColumns+`)
			SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15 + 1
			WHERE ?15 = 0 OR EXISTS (SELECT 1 FROM workspaces WHERE node = ?1 AND provider = ?2 AND key = ?3)
			ON CONFLICT (node, provider, key) DO UPDATE SET agent = excluded.agent, state = excluded.state, image = excluded.image,
				platform = excluded.platform, last_used = excluded.last_used, ttl = excluded.ttl, data = excluded.data, tries = excluded.tries,
				next_try = excluded.next_try, problem = excluded.problem, changed = excluded.changed, version = excluded.version
				WHERE workspaces.version = ?15`,
			e.Node, e.Provider, string(e.Key), string(e.Agent), string(e.State), e.Image, e.Platform, millis(e.LastUsed), e.TTL.Milliseconds(),
			data, e.Tries, millis(e.NextTry), e.Problem, millis(e.Changed), e.Version)
		return n == 1, err
	})
	if err != nil {
		return false, fmt.Errorf("save workspace %s: %w", e.Key, err)
	}
	return saved, nil
}

// DropWorkspaceEntries implements workspace.Ledger.
func (db *DB) DropWorkspaceEntries(ctx context.Context, before time.Time) error {
	_, err := write(ctx, db, func(c *conn) (int64, error) {
		return c.exec("DELETE FROM workspaces WHERE state = ? AND changed < ?", string(workspace.Removed), before.UnixMilli())
	})
	if err != nil {
		return fmt.Errorf("drop entries of workspaces: %w", err)
	}
	return nil
}

package relational

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/workspace"
)

var _ workspace.Ledger = (*Store)(nil)

// errNoIdentity means that an entry has no provider or key to find it by.
var errNoIdentity = errors.New("it has no provider, or no key")

const workspaceColumns = "node, provider, key, agent, state, image, platform, last_used, ttl, data, tries, next_try, problem, changed, version"

func decodeWorkspace(r Row) workspace.Entry {
	return workspace.Entry{
		Node: r.Str(0), Provider: r.Str(1), Key: workspace.Key(r.Str(2)), Agent: claybot.AgentID(r.Str(3)),
		State: workspace.State(r.Str(4)), Image: r.Str(5), Platform: r.Str(6), LastUsed: fromMillis(r.Int(7)),
		TTL: time.Duration(r.Int(8)) * time.Millisecond, Data: r.Int(9) != 0, Tries: int(r.Int(10)),
		NextTry: fromMillis(r.Int(11)), Problem: r.Str(12), Changed: fromMillis(r.Int(13)), Version: r.Int(14),
	}
}

// millis returns t in Unix milliseconds; 0 for the zero time.
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

func (db workspaces) WorkspaceEntry(ctx context.Context, node, provider string, key workspace.Key) (e workspace.Entry, ok bool, err error) {
	err = db.read(ctx, func(c *Conn) error {
		var err error
		ok, err = c.first("SELECT "+workspaceColumns+" FROM workspaces WHERE node = ? AND provider = ? AND key = ?",
			func(r Row) error { e = decodeWorkspace(r); return nil }, node, provider, string(key))
		return err
	})
	if err != nil {
		return workspace.Entry{}, false, fmt.Errorf("workspace %s: %w", key, err)
	}
	return e, ok, nil
}

func (db workspaces) WorkspaceEntries(ctx context.Context, node string) ([]workspace.Entry, error) {
	list, err := selectAll(ctx, db, decodeWorkspace, "SELECT "+workspaceColumns+" FROM workspaces WHERE CAST(?1 AS TEXT) = '' OR node = ?1 ORDER BY node, provider, key", node)
	return result(list, err, "workspaces")
}

// SaveWorkspaceEntry implements workspace.Ledger. Times are kept to the
// millisecond.
func (db workspaces) SaveWorkspaceEntry(ctx context.Context, e workspace.Entry) (bool, error) {
	saved, err := write(ctx, db, func(c *Conn) (bool, error) {
		if e.Provider == "" || e.Key == "" {
			return false, errNoIdentity
		}
		data := 0
		if e.Data {
			data = 1
		}
		n, err := c.exec(`INSERT INTO workspaces (`+workspaceColumns+`)
			SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, CAST(?8 AS BIGINT), CAST(?9 AS BIGINT), CAST(?10 AS BIGINT), CAST(?11 AS BIGINT),
				CAST(?12 AS BIGINT), ?13, CAST(?14 AS BIGINT), CAST(?15 AS BIGINT) + 1
			WHERE CAST(?15 AS BIGINT) = 0 OR EXISTS (SELECT 1 FROM workspaces WHERE node = ?1 AND provider = ?2 AND key = ?3)
			ON CONFLICT (node, provider, key) DO UPDATE SET agent = excluded.agent, state = excluded.state, image = excluded.image,
				platform = excluded.platform, last_used = excluded.last_used, ttl = excluded.ttl, data = excluded.data, tries = excluded.tries,
				next_try = excluded.next_try, problem = excluded.problem, changed = excluded.changed, version = excluded.version
				WHERE workspaces.version = CAST(?15 AS BIGINT)`,
			e.Node, e.Provider, string(e.Key), string(e.Agent), string(e.State), e.Image, e.Platform, millis(e.LastUsed), e.TTL.Milliseconds(),
			data, e.Tries, millis(e.NextTry), e.Problem, millis(e.Changed), e.Version)
		return n == 1, err
	})
	return result(saved, err, "save workspace %s", e.Key)
}

func (db workspaces) DropWorkspaceEntries(ctx context.Context, before time.Time) error {
	_, err := write(ctx, db, func(c *Conn) (int64, error) {
		return c.exec("DELETE FROM workspaces WHERE state = ? AND changed < ?", string(workspace.Removed), before.UnixMilli())
	})
	return failed(err, "drop entries of workspaces")
}

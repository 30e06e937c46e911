package relational

import (
	"context"
	"fmt"

	"github.com/claybot/claybot"
)

// HeldBy implements storage.Members. In a store that one process uses alone it is that
// process, for an agent whose lease it has.
func (db leases) HeldBy(ctx context.Context, id claybot.AgentID) (node string, err error) {
	held := "SELECT node FROM agents WHERE id = ?1 AND node IS NOT NULL AND wake_at > ?2"
	if !db.dialect.Alone {
		held += " AND EXISTS (SELECT 1 FROM nodes n WHERE n.id = agents.node AND n.until > ?2)"
	}
	err = db.read(ctx, func(c *Conn) error {
		_, err := c.first(held, func(r Row) error { node = r.Str(0); return nil }, id, c.now())
		return err
	})
	if err != nil {
		return "", fmt.Errorf("who holds agent %s: %w", id, err)
	}
	return node, nil
}

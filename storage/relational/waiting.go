package relational

import (
	"context"
	"fmt"

	"github.com/claybot/claybot"
)

// Waiting implements storage.Receipts. Damaged messages are left out; they are
// ended when the agent is next acquired.
func (db inbox) Waiting(ctx context.Context, agent claybot.AgentID, limit int) ([]claybot.AgentMessage, error) {
	var waiting []claybot.AgentMessage
	err := db.read(ctx, func(c *Conn) error {
		return c.each(`SELECT body, crc FROM messages INDEXED BY messages_waiting WHERE agent = ? AND run IS NULL AND skipped IS NULL
			ORDER BY n LIMIT 0+?`, func(r Row) error {
			if m, err := decodeMessage(r, 0); err == nil {
				waiting = append(waiting, m)
			}
			return nil
		}, agent, limit)
	})
	if err != nil {
		return nil, fmt.Errorf("messages that wait for agent %s: %w", agent, err)
	}
	return waiting, nil
}

package relational

import (
	"context"
	"fmt"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// rescheduleChunk is how many agents one transaction reschedules, so that
// posting goes on meanwhile.
const rescheduleChunk = 200

// A target is an agent with waiting messages.
type target struct {
	id         claybot.AgentID
	descriptor claybot.Descriptor
}

// Reschedule implements storage.Inbox. It is not one transaction: each agent is
// moved on its own, and a second call changes nothing.
func (db inbox) Reschedule(ctx context.Context, agent claybot.AgentID, wait func(claybot.AgentID, claybot.Descriptor) storage.Wait) error {
	targets, err := db.waitingAgents(ctx, agent)
	if err != nil {
		return fmt.Errorf("reschedule: %w", err)
	}
	for chunk := range slices.Chunk(targets, rescheduleChunk) {
		waits := make([]storage.Wait, len(chunk))
		for i, t := range chunk {
			waits[i] = wait(t.id, t.descriptor) // not in the writer: it is the caller's code
		}
		_, err := write(ctx, db, func(c *Conn) (struct{}, error) {
			for i, t := range chunk {
				if err := reschedule(c, t.id, waits[i]); err != nil {
					return struct{}{}, fmt.Errorf("agent %s: %w", t.id, err)
				}
			}
			return struct{}{}, nil
		})
		if err != nil {
			return fmt.Errorf("reschedule: %w", err)
		}
	}
	return nil
}

func reschedule(c *Conn, id claybot.AgentID, w storage.Wait) error {
	a, err := loadInbox(c, id)
	if err != nil {
		return ignoreNotFound(err)
	}
	due := a.due(w, c.now())
	if due == a.dueAt {
		return nil
	}
	a.dueAt = due
	a.wake()
	return saveInbox(c, a)
}

// waitingAgents lists the agents with waiting messages, or the one named if it
// is such.
func (db inbox) waitingAgents(ctx context.Context, agent claybot.AgentID) (targets []target, err error) {
	q, args := `SELECT id, descriptor FROM agents WHERE id IN
		(SELECT DISTINCT agent FROM messages INDEXED BY messages_waiting WHERE run IS NULL AND skipped IS NULL)`, []any(nil)
	if agent != "" {
		q, args = "SELECT id, descriptor FROM agents WHERE id = ? AND waiting > 0", []any{agent}
	}
	err = db.read(ctx, func(c *Conn) error {
		return c.each(q, func(r Row) error {
			t := target{id: claybot.AgentID(r.Str(0))}
			if err := unmarshal(r.Str(1), &t.descriptor); err != nil {
				return fmt.Errorf("agent %s: %w", t.id, err)
			}
			targets = append(targets, t)
			return nil
		}, args...)
	})
	return targets, err
}

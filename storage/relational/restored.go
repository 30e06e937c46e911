package relational

import (
	"context"
	"errors"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// reasonRestored is why work that an older copy of the store knew of has ended.
const reasonRestored = "restored"

// EndRestored ends all work that was unfinished when a copy of the store was made: it has
// most likely ended since, and to do it again would answer and act twice. Waiting
// messages are skipped, runs fail, and outgoing messages fail, which an operator can
// retry. It returns how many of each. A second call changes nothing.
func (db *Store) EndRestored(ctx context.Context) (messages, runs, sends int, err error) {
	const passes = 10 // an agent that is told of the end of another has a message more
	for range passes {
		var ids []claybot.AgentID
		err := db.read(ctx, func(c *Conn) error {
			return c.each("SELECT id FROM agents WHERE waiting > 0 OR run IS NOT NULL", func(r Row) error {
				ids = append(ids, claybot.AgentID(r.Str(0)))
				return nil
			})
		})
		if err != nil {
			return messages, runs, sends, fmt.Errorf("end restored work: %w", err)
		}
		if len(ids) == 0 {
			break
		}
		for _, id := range ids {
			m, r, err := db.endRestored(ctx, id)
			if err != nil {
				return messages, runs, sends, fmt.Errorf("end restored work of agent %s: %w", id, err)
			}
			messages, runs = messages+m, runs+r
		}
	}
	open, err := db.openOutgoing(ctx)
	for _, id := range open {
		if err == nil {
			err = db.Resolve(ctx, storage.Claim{}, id, storage.Resolution{State: claybot.SendFailed, Cause: "the database was restored from a copy"})
		}
	}
	if err != nil {
		return messages, runs, sends, fmt.Errorf("end restored sends: %w", err)
	}
	return messages, runs, len(open), nil
}

// endRestored ends the unfinished work of one agent.
func (db *Store) endRestored(ctx context.Context, id claybot.AgentID) (messages, runs int, err error) {
	_, err = write(ctx, db, func(c *Conn) (struct{}, error) {
		messages, runs = 0, 0
		a, err := c.loadInbox(id)
		if err != nil {
			return struct{}{}, ignoreNotFound(err)
		}
		dropped, err := c.drop(a, reasonRestored, nil)
		if err != nil {
			return struct{}{}, err
		}
		messages = len(dropped)
		if a.run != "" {
			why := claybot.RunError{Code: "internal/restored", Text: "the database was restored from a copy that was made during this run"}
			if _, err := c.failRun(a, why); err != nil && !errors.Is(err, storage.ErrNotFound) {
				return struct{}{}, err
			}
			a.run, a.resumeAt, runs = "", never, 1
		}
		a.free(storage.Wait{}, c.now())
		return struct{}{}, c.saveInbox(a)
	})
	return messages, runs, err
}

// openOutgoing are the ids of outgoing messages that were neither sent nor failed.
func (db *Store) openOutgoing(ctx context.Context) (ids []string, err error) {
	err = db.read(ctx, func(c *Conn) error {
		return c.each("SELECT id FROM outbox WHERE open = 1 ORDER BY n", func(r Row) error { ids = append(ids, r.Str(0)); return nil })
	})
	return ids, err
}

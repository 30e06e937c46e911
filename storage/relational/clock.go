package relational

import (
	"context"
	"fmt"
	"time"
)

// clockSlack is how far a moment may lie in the future without a clock that was set
// back, in milliseconds: members of a cluster estimate the clock of the database.
const clockSlack = 1000

// HeedClock notices that the clock of the store was set back since it was last called,
// or before this process began. Messages that arrived later than now are due at once,
// because how long they were meant to wait is not known, and no lease or membership
// lasts longer than ttl. Otherwise it costs no statement.
func (db leases) HeedClock(ctx context.Context, ttl time.Duration) error {
	now := db.now()
	if last := db.looked.Swap(now); last != 0 && now > last-clockSlack {
		return nil
	}
	n, err := lightly(ctx, db, func(c *Conn) (int64, error) { return heedClock(c, now, now+ttl.Milliseconds()) })
	if err != nil {
		db.looked.Store(0) // to be tried again
		return fmt.Errorf("heed the clock: %w", err)
	}
	if n > 0 {
		db.log.Warn("clock was set back; agents are due as if it had not been", "agents", n)
	}
	return nil
}

// heedClock is HeedClock at now; leases and memberships end at until at the latest. An
// agent that another transaction has locked gets new times there.
func heedClock(c *Conn, now, until int64) (agents int64, err error) {
	agents, err = c.exec(`UPDATE agents SET due_at = CAST(?1 AS BIGINT), wake_at = CASE WHEN node IS NULL AND run IS NULL THEN CAST(?1 AS BIGINT) ELSE wake_at END
		WHERE id IN (SELECT id FROM agents WHERE wake_at IS NOT NULL AND due_at > ?1 AND last_at > ?2 ORDER BY id`+c.skipping()+`)`, now, now+clockSlack)
	if err != nil || c.dialect.Alone { // Recover has ended the leases of the process before
		return agents, err
	}
	err = c.do(`UPDATE agents SET wake_at = ? WHERE id IN (SELECT id FROM agents WHERE wake_at > ? AND node IS NOT NULL ORDER BY id`+c.skipping()+`)`,
		until, until+clockSlack)
	if err != nil {
		return agents, err
	}
	return agents, c.do("UPDATE nodes SET until = ? WHERE id IN (SELECT id FROM nodes WHERE until > ? ORDER BY id"+c.skipping()+")", until, until+clockSlack)
}

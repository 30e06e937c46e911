package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/claybot/claybot"
)

// What Prune keeps.
const (
	keepEvents = 7 * 24 * time.Hour
	keepKeys   = 7 * 24 * time.Hour
	keepRuns   = 90 * 24 * time.Hour
	keepLedger = 90 * 24 * time.Hour // CR-42
	// keepKeyCount keys are kept whatever their age: a quiet bot's source may
	// repeat itself after weeks.
	keepKeyCount = 100_000
	pruneChunk   = 200 // runs or tens of keys per transaction
)

// Prune removes the events of runs that ended a week before at, by whole runs,
// the runs themselves after 90 days, old rows of the ledger but the newest
// scheduled one of each task, and old further keys of messages. Call it once a day. It works in small
// transactions, so that others go on meanwhile, and may be cut short at any
// time: the next call goes on.
func (db *DB) Prune(ctx context.Context, at time.Time) error {
	steps := []func(c *conn) (int, error){
		func(c *conn) (int, error) { return c.pruneEvents(claybot.At(at.Add(-keepEvents))) },
		func(c *conn) (int, error) { return c.pruneRuns(claybot.At(at.Add(-keepRuns))) },
		func(c *conn) (int, error) { return c.pruneLedger(claybot.At(at.Add(-keepLedger))) },
		func(c *conn) (int, error) { return c.pruneKeys(claybot.At(at.Add(-keepKeys)), keepKeyCount) },
	}
	for _, step := range steps {
		for more := true; more; {
			n, err := write(ctx, db, step)
			if err != nil {
				return fmt.Errorf("prune: %w", err)
			}
			more = n > 0
		}
	}
	return nil
}

// pruneEvents removes the events of some runs that ended before t and returns
// of how many.
func (c *conn) pruneEvents(t claybot.Time) (int, error) {
	var ids []claybot.RunID
	err := c.each("SELECT id FROM runs WHERE ended > 0 AND pruned = 0 AND ended < ? ORDER BY ended LIMIT 0+?", func(r row) error {
		ids = append(ids, claybot.RunID(r.str(0)))
		return nil
	}, t, pruneChunk)
	if err != nil {
		return 0, err
	}
	for _, id := range ids {
		if _, err := c.exec("DELETE FROM events WHERE run = ?", id); err != nil {
			return 0, err
		}
		if _, err := c.exec("UPDATE runs SET pruned = 1 WHERE id = ?", id); err != nil {
			return 0, err
		}
	}
	return len(ids), nil
}

// pruneRuns removes some runs that ended before t, whose events are gone.
func (c *conn) pruneRuns(t claybot.Time) (int, error) {
	states := make(map[claybot.RunID]claybot.RunState)
	err := c.each("SELECT id, state FROM runs WHERE pruned = 1 AND ended < ? ORDER BY ended LIMIT 0+?", func(r row) error {
		states[claybot.RunID(r.str(0))] = claybot.RunState(r.str(1))
		return nil
	}, t, pruneChunk)
	if err != nil {
		return 0, err
	}
	for id, s := range states {
		if _, err := c.exec("DELETE FROM runs WHERE id = ?", id); err != nil {
			return 0, err
		}
		c.tally[countRun+string(s)]--
	}
	return len(states), nil
}

// pruneLedger removes some rows entered before t. The newest scheduled one of a
// task stays: it says from when on the task may have missed its time.
func (c *conn) pruneLedger(t claybot.Time) (int, error) {
	n, err := c.exec(`DELETE FROM ledger WHERE n IN (SELECT n FROM ledger l WHERE entered < ? AND (manual = 1
		OR EXISTS (SELECT 1 FROM ledger k WHERE k.task = l.task AND k.manual = 0 AND k.n > l.n)) ORDER BY entered LIMIT 0+?)`,
		t, 10*pruneChunk)
	return int(n), err
}

// pruneKeys removes some keys older than t that are not among the newest keep.
func (c *conn) pruneKeys(t claybot.Time, keep int) (int, error) {
	n, err := c.exec(`DELETE FROM keys WHERE n IN (SELECT n FROM keys
		WHERE n <= (SELECT max(n) FROM keys) - ? AND at < ? ORDER BY n LIMIT 0+?)`, keep, t, 10*pruneChunk)
	return int(n), err
}

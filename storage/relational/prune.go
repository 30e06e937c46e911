package relational

import (
	"context"
	"fmt"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// Retention periods.
const (
	keepEvents = 7 * 24 * time.Hour
	keepKeys   = 7 * 24 * time.Hour
	keepRuns   = 90 * 24 * time.Hour
	keepLedger = 90 * 24 * time.Hour // CR-42
	keepUsage  = 400 * 24 * time.Hour
	// keepRepeats is how long retries of an HTTP request are recognized, at least.
	keepRepeats = 24 * time.Hour
	// keepUnpublished is how long the events of an ended run are kept for an
	// unavailable sink.
	keepUnpublished = 30 * 24 * time.Hour
	// keepKeyCount is the number of newest keys that are kept regardless of
	// age, because a quiet source may redeliver after weeks.
	keepKeyCount = 100_000
	pruneChunk   = 200 // runs or tens of keys per transaction
)

// Prune removes the events of runs that ended a week before at, by whole runs,
// but those that a sink was not told of only after 30 days; the runs themselves
// with their questions after 90 days, old rows of the ledger but the newest
// scheduled one of each task, old further keys of messages, and what was spent
// more than 400 days ago, with the budgets of that time. Call it once a day. It works in small transactions,
// so that others go on meanwhile, and may be cut short at any time: the next
// call goes on.
func (db upkeep) Prune(ctx context.Context, at time.Time) error {
	var lost unheard
	defer func() {
		if lost.runs > 0 {
			db.log.Warn("events were removed of which a sink was never told", "runs", lost.runs, "events", lost.events)
		}
	}()
	steps := []func(ctx context.Context) (int, error){
		func(ctx context.Context) (int, error) {
			p, err := write(ctx, db, func(c *Conn) (prunedEvents, error) {
				return pruneEvents(c, claybot.At(at.Add(-keepEvents)), claybot.At(at.Add(-keepUnpublished)))
			})
			lost.runs, lost.events = lost.runs+p.unheard.runs, lost.events+p.unheard.events
			return p.runs, err
		},
		db.chunk(func(c *Conn) (int, error) { return pruneRuns(c, claybot.At(at.Add(-keepRuns))) }),
		db.chunk(func(c *Conn) (int, error) { return pruneLedger(c, claybot.At(at.Add(-keepLedger))) }),
		db.chunk(func(c *Conn) (int, error) { return pruneKeys(c, claybot.At(at.Add(-keepKeys)), keepKeyCount) }),
		db.chunk(func(c *Conn) (int, error) { return pruneRepeats(c, claybot.At(at.Add(-keepRepeats))) }),
		db.chunk(func(c *Conn) (int, error) { return pruneUsage(c, dayOf(at.Add(-keepUsage).UnixMilli())) }),
		db.chunk(func(c *Conn) (int, error) { return pruneBudgets(c, claybot.At(at.Add(-keepUsage))) }),
		db.chunk(func(c *Conn) (int, error) { return pruneMembers(c, claybot.At(at)) }),
	}
	for _, step := range steps {
		for more := true; more; {
			n, err := step(ctx)
			if err != nil {
				return fmt.Errorf("prune: %w", err)
			}
			more = n > 0
		}
	}
	return nil
}

// chunk makes a step of Prune of one transaction.
func (db upkeep) chunk(fn func(c *Conn) (int, error)) func(ctx context.Context) (int, error) {
	return func(ctx context.Context) (int, error) { return write(ctx, db, fn) }
}

// unheard counts what was removed before it was published to all sinks.
type unheard struct{ runs, events int64 }

type prunedEvents struct {
	runs    int
	unheard unheard
}

// pruneEvents removes the events of some runs that ended before t and of which
// all sinks know all, or that ended before limit.
func pruneEvents(c *Conn, t, limit claybot.Time) (done prunedEvents, err error) {
	var ids []claybot.RunID
	err = c.each(`SELECT id FROM runs WHERE ended > 0 AND pruned = 0 AND ended < ?1
		AND (ended < ?2 OR NOT EXISTS (SELECT 1 FROM relays WHERE run = runs.id AND since IS NOT NULL))
		ORDER BY ended LIMIT 0+?3`, func(r Row) error {
		ids = append(ids, claybot.RunID(r.Str(0)))
		return nil
	}, t, limit, pruneChunk)
	if err != nil {
		return done, err
	}
	for _, id := range ids {
		known := int64(-1)
		err := c.each("SELECT min(seq) FROM relays WHERE run = ? AND since IS NOT NULL HAVING count(*) > 0", func(r Row) error { known = r.Int(0); return nil }, id)
		if err != nil {
			return done, err
		}
		if known >= 0 {
			err := c.each("SELECT count(*) FROM events WHERE run = ? AND seq > ?", func(r Row) error { done.unheard.events += r.Int(0); return nil }, id, known)
			if err != nil {
				return done, err
			}
			done.unheard.runs++
		}
		for _, q := range []string{
			"DELETE FROM events WHERE run = ?", "DELETE FROM relays WHERE run = ?", "UPDATE runs SET pruned = 1 WHERE id = ?",
		} {
			if err := c.do(q, id); err != nil {
				return done, err
			}
		}
	}
	done.runs = len(ids)
	return done, nil
}

// pruneRuns removes some runs that ended before t, whose events are gone, and
// what they asked.
func pruneRuns(c *Conn, t claybot.Time) (int, error) {
	states := make(map[claybot.RunID]claybot.RunState)
	err := c.each("SELECT id, state FROM runs WHERE pruned = 1 AND ended < ? ORDER BY ended LIMIT 0+?", func(r Row) error {
		states[claybot.RunID(r.Str(0))] = claybot.RunState(r.Str(1))
		return nil
	}, t, pruneChunk)
	if err != nil {
		return 0, err
	}
	for id, s := range states {
		n, err := c.exec("DELETE FROM runs WHERE id = ?", id)
		if err != nil {
			return 0, err
		}
		if err := c.do("DELETE FROM questions WHERE run = ?", id); err != nil {
			return 0, err
		}
		c.tally[countRun+string(s)] -= n // 0 when another node was first
	}
	return len(states), nil
}

// pruneUsage removes one day of usage before day.
func pruneUsage(c *Conn, day string) (int, error) {
	total := 0
	for _, q := range []string{
		"DELETE FROM spent WHERE day = (SELECT min(day) FROM spent WHERE day < ?)",
		"DELETE FROM spent_days WHERE day = (SELECT min(day) FROM spent_days WHERE day < ?)",
		"DELETE FROM latencies WHERE day = (SELECT min(day) FROM latencies WHERE day < ?)",
	} {
		n, err := c.exec(q, day)
		if err != nil {
			return 0, err
		}
		total += int(n)
	}
	return total, nil
}

// pruneLedger removes some rows entered before t. The newest scheduled one of a
// task stays: it says from when on the task may have missed its time.
func pruneLedger(c *Conn, t claybot.Time) (int, error) {
	n, err := c.exec(`DELETE FROM ledger WHERE n IN (SELECT n FROM ledger l WHERE entered < ? AND (manual = 1
		OR EXISTS (SELECT 1 FROM ledger k WHERE k.task = l.task AND k.manual = 0 AND k.n > l.n)) ORDER BY entered LIMIT 0+?)`,
		t, 10*pruneChunk)
	return int(n), err
}

// pruneRepeats removes some marks of repeats that were written before t.
func pruneRepeats(c *Conn, t claybot.Time) (int, error) {
	n, err := c.exec(`DELETE FROM marks WHERE key IN (SELECT key FROM marks
		WHERE substr(key, 1, 8) = ? AND value < ? LIMIT 0+?)`, storage.CheckpointRepeats, fmt.Sprintf("%013d", t), 10*pruneChunk)
	return int(n), err
}

// pruneKeys removes some keys older than t that are not among the newest keep.
func pruneKeys(c *Conn, t claybot.Time, keep int) (int, error) {
	n, err := c.exec(`DELETE FROM keys WHERE n IN (SELECT n FROM keys
		WHERE n <= (SELECT max(n) FROM keys) - ? AND at < ? ORDER BY n LIMIT 0+?)`, keep, t, 10*pruneChunk)
	return int(n), err
}

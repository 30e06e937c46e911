package relational

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

const (
	keepKeys = 7 * 24 * time.Hour
	// keepRepeats is how long retries of an HTTP request are recognized, at least.
	keepRepeats = 24 * time.Hour
	// keepKeyCount is the number of newest keys that are kept regardless of
	// age, because a quiet source may redeliver after weeks.
	keepKeyCount = 100_000
	pruneChunk   = 200 // runs or tens of other rows per transaction
)

// Prune implements storage.Pruner. It also removes old further keys of messages, old marks
// of repeated requests, old messages of groups, and members that ended long ago.
func (db upkeep) Prune(ctx context.Context, at time.Time, keep storage.Retention) error {
	var lost unheard
	defer func() {
		if lost.runs > 0 {
			db.log.Warn("events were removed of which a relay was never told", "runs", lost.runs, "events", lost.events)
		}
	}()
	before := func(d time.Duration) claybot.Time { return claybot.At(at.Add(-d)) }
	events := keep.Events
	if keep.Runs > 0 && (events <= 0 || keep.Runs < events) {
		events = keep.Runs
	}
	steps := []struct {
		keep time.Duration
		step func(ctx context.Context) (int, error)
	}{
		{events, func(ctx context.Context) (int, error) {
			p, err := write(ctx, db, func(c *Conn) (prunedEvents, error) {
				return pruneEvents(c, before(events), before(max(events, storage.KeepUnpublished)))
			})
			lost.runs, lost.events = lost.runs+p.unheard.runs, lost.events+p.unheard.events
			return p.runs, err
		}},
		{keep.Ledger, db.chunk(func(c *Conn) (int, error) { return pruneLedger(c, before(keep.Ledger)) })},
		{keep.Runs, db.chunk(func(c *Conn) (int, error) { return pruneRuns(c, before(keep.Runs)) })},
		{keep.Runs, db.inOrder(age{before(keep.Runs), claybot.At(at)}, pruneMessages)},
		{keep.Outgoing, db.inOrder(age{before(keep.Outgoing), claybot.At(at)}, pruneOutgoing)},
		{keepKeys, db.chunk(func(c *Conn) (int, error) { return pruneKeys(c, before(keepKeys), keepKeyCount) })},
		{keepRepeats, db.chunk(func(c *Conn) (int, error) { return pruneRepeats(c, before(keepRepeats)) })},
		{storage.KeepSaid, db.chunk(func(c *Conn) (int, error) { return pruneSaid(c, before(storage.KeepSaid)) })},
		{keep.Usage, db.chunk(func(c *Conn) (int, error) { return pruneUsage(c, dayOf(int64(before(keep.Usage)))) })},
		{keep.Usage, db.chunk(func(c *Conn) (int, error) { return pruneBudgets(c, before(keep.Usage)) })},
		{keepRepeats, db.chunk(func(c *Conn) (int, error) { return pruneMembers(c, claybot.At(at)) })},
	}
	for _, x := range steps {
		for more := x.keep > 0; more; {
			n, err := x.step(ctx)
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

// A cursor is a place in a table whose rows are looked at in the order in which they came; over:
// all others are too young.
type cursor struct {
	at   int64
	over bool
}

// An age is the time before which rows are removed. Rows from after now say nothing about
// those behind them: the clock was wrong when they came.
type age struct{ before, now claybot.Time }

// inOrder makes a step of Prune of one transaction, which goes on where the one before
// ended.
func (db upkeep) inOrder(old age, fn func(c *Conn, after int64, old age) (cursor, error)) func(ctx context.Context) (int, error) {
	var at cursor
	return func(ctx context.Context) (int, error) {
		if at.over {
			return 0, nil
		}
		next, err := write(ctx, db, func(c *Conn) (cursor, error) { return fn(c, at.at, old) })
		if err == nil {
			at = next
		}
		return 1, err
	}
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
	if len(ids) == 0 {
		return done, nil
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return done, err
	}
	if done.unheard, err = countUnheard(c, list); err != nil {
		return done, err
	}
	for _, q := range []string{
		"DELETE FROM events WHERE run IN (SELECT value FROM json_each(?))",
		"DELETE FROM relays WHERE run IN (SELECT value FROM json_each(?))",
		"UPDATE runs SET pruned = 1 WHERE id IN (SELECT value FROM json_each(?))",
	} {
		if err := c.do(q, list); err != nil {
			return done, err
		}
	}
	done.runs = len(ids)
	return done, nil
}

// countUnheard counts the events of some runs, a list in JSON, that a sink does not know.
func countUnheard(c *Conn, runs []byte) (lost unheard, err error) {
	known := make(map[string]int64)
	err = c.each("SELECT run, min(seq) FROM relays WHERE run IN (SELECT value FROM json_each(?)) AND since IS NOT NULL GROUP BY run", func(r Row) error {
		known[r.Str(0)] = r.Int(1)
		return nil
	}, runs)
	for id, seq := range known {
		if err == nil {
			lost.runs++
			err = c.each("SELECT count(*) FROM events WHERE run = ? AND seq > ?", func(r Row) error { lost.events += r.Int(0); return nil }, id, seq)
		}
	}
	return lost, err
}

// pruneRuns removes some runs that ended before t, whose events are gone, and
// what they asked.
func pruneRuns(c *Conn, t claybot.Time) (int, error) {
	ids, rows := make(map[string][]string), 0 // by state
	err := c.each("SELECT id, state FROM runs WHERE pruned = 1 AND ended < ? ORDER BY ended LIMIT 0+?", func(r Row) error {
		rows++
		ids[r.Str(1)] = append(ids[r.Str(1)], r.Str(0))
		return nil
	}, t, pruneChunk)
	for state, all := range ids {
		var list []byte
		if err == nil {
			list, err = json.Marshal(all)
		}
		c.touched.arrivals = true
		var n int64
		if err == nil {
			n, err = c.exec("DELETE FROM runs WHERE id IN (SELECT value FROM json_each(?))", list)
			c.tally[countRun+state] -= n // fewer when another node was first
		}
		if err == nil {
			err = c.do("DELETE FROM questions WHERE run IN (SELECT value FROM json_each(?))", list)
		}
	}
	return rows, err
}

// pruneMessages removes old messages that were skipped or whose run is gone, but those that
// the ledger names, and the newest of each agent's user, which says where to reach them, with
// its edits and deletions.
func pruneMessages(c *Conn, after int64, old age) (cursor, error) {
	lists, next, err := oldRows(c, `SELECT rowid, at, id, '', CASE WHEN (skipped IS NOT NULL
		OR run IS NOT NULL AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = messages.run))
		AND NOT EXISTS (SELECT 1 FROM ledger WHERE message = messages.id)
		AND NOT EXISTS (SELECT 1 FROM agents WHERE agents.id = messages.agent
			AND (last_user_n = messages.rowid OR last_user_n < messages.rowid AND (messages.type IN ('edit', 'delete')
				OR `+isNote+`))) THEN 1 ELSE 0 END
		FROM messages WHERE rowid > ? ORDER BY rowid LIMIT 0+?`, after, old)
	for _, ids := range lists {
		if err == nil {
			err = c.do("DELETE FROM messages WHERE id IN (SELECT value FROM json_each(?))", ids)
		}
	}
	return next, err
}

// pruneOutgoing removes old messages that were sent or given up, but those of runs that have
// not ended, whose questions may still be edited, failed ones of runs that are kept, because
// the ledger shows them, and warnings of budgets, which are sent once.
func pruneOutgoing(c *Conn, after int64, old age) (cursor, error) {
	lists, next, err := oldRows(c, `SELECT n, at, id, state, CASE WHEN open = 0 AND id NOT LIKE 'budget/%'
		AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = outbox.origin AND (ended = 0 OR outbox.state = 'failed')) THEN 1 ELSE 0 END
		FROM outbox WHERE n > ? ORDER BY n LIMIT 0+?`, after, old)
	for state, ids := range lists {
		var n int64
		if err == nil { // an operator may have opened it again
			n, err = c.exec("DELETE FROM outbox WHERE id IN (SELECT value FROM json_each(?)) AND open = 0 AND state = ?", ids, state)
			c.tally[countSend+state] -= n
		}
	}
	return next, err
}

// oldRows reads some rows: a place, a time, an id, a state and whether they can go. It
// returns the ids of the old ones that can, as lists in JSON by their state.
func oldRows(c *Conn, q string, after int64, old age) (lists map[string][]byte, next cursor, err error) {
	const limit = 10 * pruneChunk
	next = cursor{at: after}
	ids := make(map[string][]string)
	rows := 0
	err = c.each(q, func(r Row) error {
		rows++
		at := claybot.Time(r.Int(1))
		if next.over = next.over || at >= old.before && at <= old.now; next.over {
			return nil
		}
		next.at = r.Int(0)
		if r.Int(4) == 1 && at < old.before {
			ids[r.Str(3)] = append(ids[r.Str(3)], r.Str(2))
		}
		return nil
	}, after, limit)
	next.over = next.over || rows < limit
	lists = make(map[string][]byte)
	for state, all := range ids {
		if err == nil {
			lists[state], err = json.Marshal(all)
		}
	}
	return lists, next, err
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
// task stays: it says from when on the task may have missed its time. Their messages go
// with their runs.
func pruneLedger(c *Conn, t claybot.Time) (int, error) {
	n, err := c.exec(`DELETE FROM ledger WHERE n IN (SELECT n FROM ledger l WHERE entered < ? AND (manual = 1
		OR EXISTS (SELECT 1 FROM ledger k WHERE k.task = l.task AND k.manual = 0 AND k.n > l.n)) ORDER BY entered LIMIT 0+?)`,
		t, 10*pruneChunk)
	return int(n), err
}

// pruneRepeats removes some marks of repeats that were written before t.
func pruneRepeats(c *Conn, t claybot.Time) (int, error) {
	n, err := c.exec(`DELETE FROM marks WHERE key IN (SELECT key FROM marks
		WHERE key >= ? AND key < ? AND value < ? LIMIT 0+?)`,
		storage.CheckpointRepeats, afterAll(storage.CheckpointRepeats), fmt.Sprintf("%013d", t), 10*pruneChunk)
	return int(n), err
}

// pruneKeys removes some keys older than t that are not among the newest keep.
func pruneKeys(c *Conn, t claybot.Time, keep int) (int, error) {
	n, err := c.exec(`DELETE FROM keys WHERE n IN (SELECT n FROM keys
		WHERE n <= (SELECT max(n) FROM keys) - ? AND at < ? ORDER BY n LIMIT 0+?)`, keep, t, 10*pruneChunk)
	return int(n), err
}

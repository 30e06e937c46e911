package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// stateWaiting and stateSkipped are the states of a ledger row without a run.
const (
	stateWaiting = "waiting"
	stateSkipped = "skipped"
)

// manualPrefix begins the instants that nobody scheduled.
const manualPrefix = "manual/"

// entered reports whether the ledger has the instant of f, at its attempt or a
// later one.
func (c *conn) entered(f claybot.Firing) (bool, error) {
	return c.first("SELECT 1 FROM ledger WHERE task = ? AND instant = ? AND attempt >= ?",
		func(row) error { return nil }, f.Task, f.Instant, max(f.Attempt, 1))
}

// enter adds the row of f: of the message that it is, with what is to be said of
// it, or of the reason why it does not run.
func (c *conn) enter(f claybot.Firing, m claybot.MessageID, reason string, at int64) error {
	_, err := c.exec(`INSERT INTO ledger (task, instant, attempt, manual, planned, quiet, recovered, entered, message, reason)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		f.Task, f.Instant, max(f.Attempt, 1), strings.HasPrefix(f.Instant, manualPrefix), f.Planned, f.Quiet, f.Recovered,
		at, text(string(m)), text(reason))
	return err
}

// settleLedger writes how a run ended into the rows of its messages: the ledger
// keeps it for longer than the run is kept.
func (c *conn) settleLedger(run *claybot.Run, o storage.Outcome, at int64) error {
	ids, err := json.Marshal(run.Messages)
	if err != nil {
		return err
	}
	var failure any
	if o.Error != nil {
		if failure, err = json.Marshal(o.Error); err != nil {
			return err
		}
	}
	_, err = c.exec(`UPDATE ledger SET state = ?, started = ?, ended = ?, cost = ?, error = ?
		WHERE message IN (SELECT value FROM json_each(?)) AND state IS NULL`,
		o.State, run.Started, at, o.Usage.CostMicroUSD, failure, ids)
	return err
}

// Skip implements storage.Ledger.
func (db *DB) Skip(ctx context.Context, f claybot.Firing, reason string) error {
	_, err := write(ctx, db, func(c *conn) (struct{}, error) {
		known, err := c.entered(f)
		if err != nil || known {
			return struct{}{}, err
		}
		return struct{}{}, c.enter(f, "", reason, now())
	})
	if err != nil {
		return fmt.Errorf("skip %s of task %s: %w", f.Instant, f.Task, err)
	}
	return nil
}

// ledgerColumns are what decodeLedger reads; they need ledger l, messages m and
// runs r.
const ledgerColumns = `l.task, l.instant, l.attempt, l.planned, l.quiet, l.recovered, l.entered, l.message, l.reason,
	l.state, l.started, l.ended, l.cost, l.error, m.skipped, m.run, r.state, r.started,
	(SELECT coalesce(cause, 'failed') FROM outbox WHERE origin = m.run AND state = 'failed' ORDER BY n LIMIT 1)`

const ledgerJoins = " LEFT JOIN messages m ON m.id = l.message LEFT JOIN runs r ON r.id = m.run "

func decodeLedger(r row) (storage.LedgerRow, error) {
	l := storage.LedgerRow{
		Firing: claybot.Firing{
			Task: r.str(0), Instant: r.str(1), Attempt: int(r.int(2)), Planned: claybot.Time(r.int(3)),
			Quiet: r.int(4) != 0, Recovered: r.int(5) != 0,
		},
		Entered: claybot.Time(r.int(6)), State: stateWaiting, Run: claybot.RunID(r.str(15)), Undelivered: r.str(18),
	}
	l.Reason = r.str(8)
	switch {
	case r.null(7): // it was never to run
		l.State = stateSkipped
	case !r.null(14):
		l.State, l.Reason = stateSkipped, r.str(14)
	case !r.null(9):
		l.State, l.Started, l.Ended, l.Cost = r.str(9), claybot.Time(r.int(10)), claybot.Time(r.int(11)), r.int(12)
		if !r.null(13) {
			return l, unmarshal(r.str(13), &l.Error)
		}
	case !r.null(16):
		l.State, l.Started = r.str(16), claybot.Time(r.int(17))
	}
	return l, nil
}

// Firings implements storage.Ledger.
func (db *DB) Firings(ctx context.Context, task string, limit int) ([]storage.LedgerRow, error) {
	rows, err := db.ledger(ctx, "SELECT "+ledgerColumns+" FROM ledger l"+ledgerJoins+
		"WHERE l.task = ? ORDER BY l.n DESC LIMIT 0+?", task, limit)
	if err != nil {
		return nil, fmt.Errorf("firings of task %s: %w", task, err)
	}
	return rows, nil
}

// LastFirings implements storage.Ledger. It steps from task to task, so its
// cost does not grow with the ledger.
func (db *DB) LastFirings(ctx context.Context) (map[string]storage.LedgerRow, error) {
	rows, err := db.ledger(ctx, `WITH RECURSIVE tasks (task) AS (
			SELECT min(task) FROM ledger WHERE manual = 0
			UNION ALL SELECT (SELECT min(task) FROM ledger WHERE manual = 0 AND task > tasks.task) FROM tasks WHERE task IS NOT NULL)
		SELECT `+ledgerColumns+` FROM tasks JOIN ledger l ON l.n =
			(SELECT max(n) FROM ledger WHERE task = tasks.task AND manual = 0)`+ledgerJoins)
	if err != nil {
		return nil, fmt.Errorf("last firings: %w", err)
	}
	last := make(map[string]storage.LedgerRow, len(rows))
	for _, l := range rows {
		last[l.Task] = l
	}
	return last, nil
}

func (db *DB) ledger(ctx context.Context, q string, args ...any) (rows []storage.LedgerRow, err error) {
	err = db.read(ctx, func(c *conn) error {
		return c.each(q, func(r row) error {
			l, err := decodeLedger(r)
			rows = append(rows, l)
			return err
		}, args...)
	})
	return rows, err
}

package relational

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// stateWaiting and stateSkipped are the states of a ledger Row without a run.
const (
	stateWaiting = "waiting"
	stateSkipped = "skipped"
)

// manualPrefix begins the instants that nobody scheduled.
const manualPrefix = "manual/"

// inLedger reports whether the ledger has the instant of f, at its attempt or a
// later one.
func inLedger(c *Conn, f claybot.Firing) (bool, error) {
	return c.first("SELECT 1 FROM ledger WHERE task = ? AND instant = ? AND attempt >= ?",
		func(Row) error { return nil }, f.Task, f.Instant, max(f.Attempt, 1))
}

// addToLedger adds the row of f: of the message that it is, with what is to be said of
// it, or of the reason why it does not run.
func addToLedger(c *Conn, f claybot.Firing, m claybot.MessageID, reason string, at int64) error {
	err := c.do(`INSERT INTO ledger (task, instant, attempt, manual, planned, quiet, recovered, entered, message, reason)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		f.Task, f.Instant, max(f.Attempt, 1), strings.HasPrefix(f.Instant, manualPrefix), f.Planned, f.Quiet, f.Recovered,
		at, text(string(m)), text(reason))
	return err
}

// settleLedger writes how a run ended into the rows of its messages: the ledger
// keeps it for longer than the run is kept.
func settleLedger(c *Conn, run *claybot.Run, o storage.Outcome, at int64) error {
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
	err = c.do(`UPDATE ledger SET state = ?, started = ?, ended = ?, cost = ?, error = ?
		WHERE message IN (SELECT value FROM json_each(?)) AND state IS NULL`,
		o.State, run.Started, at, o.Usage.CostMicroUSD, failure, ids)
	return err
}

// Skip implements storage.Ledger.
func (db schedule) Skip(ctx context.Context, f claybot.Firing, reason string) error {
	_, err := write(ctx, db, func(c *Conn) (struct{}, error) {
		known, err := inLedger(c, f)
		if err != nil || known {
			return struct{}{}, err
		}
		return struct{}{}, addToLedger(c, f, "", reason, c.now())
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

func decodeLedger(r Row) (storage.LedgerRow, error) {
	l := storage.LedgerRow{
		Firing: claybot.Firing{
			Task: r.Str(0), Instant: r.Str(1), Attempt: int(r.Int(2)), Planned: claybot.Time(r.Int(3)),
			Quiet: r.Int(4) != 0, Recovered: r.Int(5) != 0,
		},
		Entered: claybot.Time(r.Int(6)), State: stateWaiting, Run: claybot.RunID(r.Str(15)), Undelivered: r.Str(18),
	}
	l.Reason = r.Str(8)
	switch {
	case r.Null(7): // it was never to run
		l.State = stateSkipped
	case !r.Null(14):
		l.State, l.Reason = stateSkipped, r.Str(14)
	case !r.Null(9):
		l.State, l.Started, l.Ended, l.Cost = r.Str(9), claybot.Time(r.Int(10)), claybot.Time(r.Int(11)), r.Int(12)
		if !r.Null(13) {
			return l, unmarshal(r.Str(13), &l.Error)
		}
	case !r.Null(16):
		l.State, l.Started = r.Str(16), claybot.Time(r.Int(17))
	}
	return l, nil
}

// Firings implements storage.Ledger.
func (db schedule) Firings(ctx context.Context, task string, limit int) ([]storage.LedgerRow, error) {
	rows, err := db.ledger(ctx, "SELECT "+ledgerColumns+" FROM ledger l"+ledgerJoins+
		"WHERE l.task = ? ORDER BY l.n DESC LIMIT 0+?", task, limit)
	if err != nil {
		return nil, fmt.Errorf("firings of task %s: %w", task, err)
	}
	return rows, nil
}

// LastFirings implements storage.Ledger. It steps from task to task, so its
// cost does not grow with the ledger.
func (db schedule) LastFirings(ctx context.Context) (map[string]storage.LedgerRow, error) {
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

func (db schedule) ledger(ctx context.Context, q string, args ...any) (rows []storage.LedgerRow, err error) {
	err = db.read(ctx, func(c *Conn) error {
		return c.each(q, func(r Row) error {
			l, err := decodeLedger(r)
			rows = append(rows, l)
			return err
		}, args...)
	})
	return rows, err
}

package relational

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// remindAtOnce is how many reminders one call of Remind posts at most.
const remindAtOnce = 100

// maxRemindFaults is how many reminders of one agent one call of Remind tries in vain.
const maxRemindFaults = 10

const reminderColumns = "id, agent, due, note, made, context, route"

func decodeReminder(r Row) (storage.Reminder, error) {
	m := storage.Reminder{
		ID: r.Str(0), Agent: claybot.AgentID(r.Str(1)), Due: claybot.Time(r.Int(2)), Note: r.Str(3), Made: claybot.Time(r.Int(4)),
	}
	err := unmarshal(r.Str(5), &m.Context)
	if !r.Null(6) {
		err = errors.Join(err, unmarshal(r.Str(6), &m.Route))
	}
	return m, failed(err, "reminder %s", m.ID)
}

// AddReminder implements storage.Reminders. An unknown agent is refused with
// storage.ErrNotFound.
func (db schedule) AddReminder(ctx context.Context, r storage.Reminder, limit int) error {
	err := db.update(ctx, func(c *Conn) error { return addReminder(c, r, limit) })
	return failed(err, "add reminder %s", r.ID)
}

func addReminder(c *Conn, r storage.Reminder, limit int) error {
	if r.ID == "" {
		return errNoID
	}
	known, err := c.first("SELECT 1 FROM reminders WHERE agent = ? AND id = ?", func(Row) error { return nil }, r.Agent, r.ID)
	if err != nil || known {
		return err
	}
	if _, err := loadInbox(c, r.Agent); err != nil {
		return err
	}
	var n int64
	_, err = c.first("SELECT count(*) FROM reminders WHERE agent = ?", func(r Row) error { n = r.Int(0); return nil }, r.Agent)
	if err != nil {
		return err
	}
	if n >= int64(limit) {
		return fmt.Errorf("%w: %d of %d", storage.ErrTooMany, n, limit)
	}
	at, err := json.Marshal(r.Context)
	if err != nil {
		return err
	}
	var route any
	if r.Route != nil {
		if route, err = json.Marshal(r.Route); err != nil {
			return err
		}
	}
	if r.Made == 0 {
		r.Made = claybot.Time(c.now())
	}
	return c.do("INSERT INTO reminders ("+reminderColumns+") VALUES (?, ?, ?, ?, ?, ?, ?)",
		r.ID, r.Agent, r.Due, r.Note, r.Made, at, route)
}

func (db schedule) Reminders(ctx context.Context, agent claybot.AgentID) ([]storage.Reminder, error) {
	list, err := db.reminders(ctx, "SELECT "+reminderColumns+" FROM reminders WHERE agent = ? ORDER BY due, made, id", agent)
	return result(list, err, "reminders of agent %s", agent)
}

func (db schedule) NextReminders(ctx context.Context, limit int) ([]storage.Reminder, error) {
	list, err := db.reminders(ctx, "SELECT "+reminderColumns+" FROM reminders INDEXED BY reminders_due ORDER BY due LIMIT 0+?", limit)
	return result(list, err, "next reminders")
}

func (db schedule) reminders(ctx context.Context, q string, args ...any) (list []storage.Reminder, err error) {
	err = db.read(ctx, func(c *Conn) error {
		return c.each(q, func(r Row) error {
			m, err := decodeReminder(r)
			if err != nil { // it must not hold up the others
				db.log.Error("damaged reminder", "agent", m.Agent, "reminder", m.ID, "err", err)
				m.Context, m.Route = claybot.MessageContext{}, nil
			}
			list = append(list, m)
			return nil
		}, args...)
	})
	return list, err
}

func (db schedule) CancelReminder(ctx context.Context, agent claybot.AgentID, id string) error {
	if err := db.deleteOne(ctx, "DELETE FROM reminders WHERE agent = ? AND id = ?", agent, id); err != nil {
		return fmt.Errorf("cancel reminder %s: %w", id, err)
	}
	return nil
}

// Remind implements storage.Reminders. Each reminder is a transaction of its
// own, so that one which cannot be posted holds up no other, however many of its agent
// are due; next is not after now when more are due. That of an agent that is gone is removed.
func (db schedule) Remind(ctx context.Context, at claybot.Time, posting func(storage.Reminder) (storage.Posting, error)) (posted int, next claybot.Time, err error) {
	var errs []error
	failed := make(map[claybot.AgentID]int)
	for left := 0; ; { // so many stay
		due, err := db.reminders(ctx, "SELECT "+reminderColumns+" FROM reminders WHERE due <= ? ORDER BY due, made, id LIMIT 0+? OFFSET 0+?", at, remindAtOnce, left)
		if err != nil {
			return posted, 0, fmt.Errorf("remind: %w", errors.Join(append(errs, err)...))
		}
		for _, r := range due {
			if failed[r.Agent] >= maxRemindFaults {
				left++
				continue
			}
			added, err := db.remindOf(ctx, r, posting)
			if err != nil {
				errs = append(errs, fmt.Errorf("remind agent %s of %s: %w", r.Agent, r.ID, err))
				failed[r.Agent]++
				left++
			}
			if added {
				posted++
			}
		}
		if posted > 0 || len(due) < remindAtOnce || ctx.Err() != nil {
			break
		}
	}
	err = db.read(ctx, func(c *Conn) error {
		_, err := c.first("SELECT min(due) FROM reminders", func(r Row) error { next = claybot.Time(r.Int(0)); return nil })
		return err
	})
	if err != nil {
		errs = append(errs, fmt.Errorf("remind: %w", err))
	}
	return posted, next, errors.Join(errs...)
}

// remindOf posts one reminder that is due.
func (db schedule) remindOf(ctx context.Context, r storage.Reminder, posting func(storage.Reminder) (storage.Posting, error)) (added bool, err error) {
	p, err := posting(r)                                   // not in the writer: it is the caller's code
	if err == nil || errors.Is(err, storage.ErrNotFound) { // of an agent that is gone, it is removed only
		p.To = r.Agent
		added, err = write(ctx, db, func(c *Conn) (bool, error) { return postReminder(c, r, p) })
	}
	return added, err
}

// postReminder posts a reminder that was not canceled meanwhile.
func postReminder(c *Conn, r storage.Reminder, p storage.Posting) (added bool, err error) {
	n, err := c.exec("DELETE FROM reminders WHERE agent = ? AND id = ?", r.Agent, r.ID)
	if err != nil || n == 0 {
		return false, err
	}
	done, err := postMessage(c, p)
	return done.Added, ignoreNotFound(err)
}

// stateWaiting and stateSkipped are the states of a ledger Row without a run.
const (
	stateWaiting = "waiting"
	stateSkipped = "skipped"
)

// manualPrefix begins the instants of runs that a user started.
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

// firingPrefix begins the ids of the messages that are firings.
var firingPrefix = strings.TrimRight(string(claybot.Firing{}.MessageID()), "/") + "/"

// settleLedger writes how a run ended into the rows of its messages: the ledger
// keeps it for longer than the run is kept.
func settleLedger(c *Conn, run *claybot.Run, o storage.Outcome, at int64) error {
	fired := slices.DeleteFunc(slices.Clone(run.Messages), func(id claybot.MessageID) bool { return !strings.HasPrefix(string(id), firingPrefix) })
	if len(fired) == 0 {
		return nil
	}
	ids, err := json.Marshal(fired)
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

func (db schedule) Skip(ctx context.Context, f claybot.Firing, reason string) error {
	err := db.update(ctx, func(c *Conn) error {
		known, err := inLedger(c, f)
		if err != nil || known {
			return err
		}
		return addToLedger(c, f, "", reason, c.now())
	})
	return failed(err, "skip %s of task %s", f.Instant, f.Task)
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

func (db schedule) Firings(ctx context.Context, task string, limit int) ([]storage.LedgerRow, error) {
	rows, err := db.ledger(ctx, "SELECT "+ledgerColumns+" FROM ledger l"+ledgerJoins+
		"WHERE l.task = ? ORDER BY l.n DESC LIMIT 0+?", task, limit)
	return result(rows, err, "firings of task %s", task)
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

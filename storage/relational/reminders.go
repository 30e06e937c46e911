package relational

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

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
	if err != nil {
		return m, fmt.Errorf("reminder %s: %w", m.ID, err)
	}
	return m, nil
}

// AddReminder implements storage.Reminders. An unknown agent is refused with
// storage.ErrNotFound.
func (db schedule) AddReminder(ctx context.Context, r storage.Reminder, limit int) error {
	_, err := write(ctx, db, func(c *Conn) (struct{}, error) { return struct{}{}, addReminder(c, r, limit) })
	if err != nil {
		return fmt.Errorf("add reminder %s: %w", r.ID, err)
	}
	return nil
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
	err = c.do("INSERT INTO reminders ("+reminderColumns+") VALUES (?, ?, ?, ?, ?, ?, ?)",
		r.ID, r.Agent, r.Due, r.Note, r.Made, at, route)
	return err
}

// Reminders implements storage.Reminders.
func (db schedule) Reminders(ctx context.Context, agent claybot.AgentID) ([]storage.Reminder, error) {
	list, err := db.reminders(ctx, "SELECT "+reminderColumns+" FROM reminders WHERE agent = ? ORDER BY due, made, id", agent)
	if err != nil {
		return nil, fmt.Errorf("reminders of agent %s: %w", agent, err)
	}
	return list, nil
}

// NextReminders implements storage.Reminders.
func (db schedule) NextReminders(ctx context.Context, limit int) ([]storage.Reminder, error) {
	list, err := db.reminders(ctx, "SELECT "+reminderColumns+" FROM reminders INDEXED BY reminders_due ORDER BY due LIMIT 0+?", limit)
	if err != nil {
		return nil, fmt.Errorf("next reminders: %w", err)
	}
	return list, nil
}

func (db schedule) reminders(ctx context.Context, q string, args ...any) (list []storage.Reminder, err error) {
	err = db.read(ctx, func(c *Conn) error {
		return c.each(q, func(r Row) error {
			m, err := decodeReminder(r)
			if err != nil { // it must not hold up the others
				db.log.Error("a reminder is damaged", "agent", m.Agent, "reminder", m.ID, "err", err)
				m.Context, m.Route = claybot.MessageContext{}, nil
			}
			list = append(list, m)
			return nil
		}, args...)
	})
	return list, err
}

// CancelReminder implements storage.Reminders.
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

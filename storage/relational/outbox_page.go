package relational

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// OutgoingPage implements storage.OutboxReader. Damaged messages are in it, with that
// as their cause.
func (db outbox) OutgoingPage(ctx context.Context, q storage.OutgoingQuery) ([]claybot.Outgoing, error) {
	if q.Open && q.State != "" && !open(q.State) {
		return nil, nil
	}
	var out []claybot.Outgoing
	err := db.read(ctx, func(c *Conn) error {
		l := outgoingListing(q, limitOf(q.Limit))
		return c.each(l.query, func(r Row) error {
			out = append(out, db.shownOutgoing(r))
			return nil
		}, l.args...)
	})
	if err != nil {
		return nil, fmt.Errorf("list outgoing messages: %w", err)
	}
	return out, nil
}

// shownOutgoing reads a row of outgoingColumns for somebody to look at.
func (db outbox) shownOutgoing(r Row) claybot.Outgoing {
	o, err := decodeOutgoing(r)
	if err != nil {
		db.log.Error("an outgoing message is damaged", "outgoing", o.ID, "err", err)
		o.Cause = causeDamaged
	}
	return o
}

func outgoingListing(q storage.OutgoingQuery, limit int) listing {
	// Few are open or have failed, so each of these has an index of its own.
	from := " WHERE n < ?"
	switch unfinished := q.Open || q.State != "" && open(q.State); {
	case unfinished && q.Dest != "":
		from = " INDEXED BY outbox_open WHERE open = 1 AND n < ?"
	case unfinished:
		from = " INDEXED BY outbox_unsent WHERE open = 1 AND n < ?"
	case q.State == claybot.SendFailed && q.Dest != "":
		from = " INDEXED BY outbox_failed_dest WHERE state = 'failed' AND n < ?"
	case q.State == claybot.SendFailed:
		from = " INDEXED BY outbox_failed WHERE state = 'failed' AND n < ?"
	case q.Dest != "":
		from = " INDEXED BY outbox_dest WHERE n < ?"
	}
	last := q.Before
	if last <= 0 {
		last = math.MaxInt64
	}
	args := []any{last}
	if q.Dest != "" {
		from += " AND dest = ?"
		args = append(args, q.Dest)
	}
	if q.State != "" && q.State != claybot.SendFailed {
		from += " AND state = ?"
		args = append(args, q.State)
	}
	return listing{"SELECT " + outgoingColumns + " FROM outbox" + from + " ORDER BY n DESC LIMIT 0+?", append(args, limit)}
}

// OutgoingByID implements storage.Outbox. A damaged message says so in its
// cause.
func (db outbox) OutgoingByID(ctx context.Context, id string) (o claybot.Outgoing, err error) {
	err = db.read(ctx, func(c *Conn) error {
		return need(c.first("SELECT "+outgoingColumns+" FROM outbox WHERE id = ?",
			func(r Row) error { o = db.shownOutgoing(r); return nil }, id))
	})
	if err != nil {
		return claybot.Outgoing{}, fmt.Errorf("outgoing message %s: %w", id, err)
	}
	return o, nil
}

// Retry implements storage.OutboxControl. A failed message gets all its attempts anew
// and keeps its place. A damaged one cannot be sent and is refused.
func (db outbox) Retry(ctx context.Context, id string) (claybot.Outgoing, error) {
	return db.operate(ctx, "retry", id, func(c *Conn, s claybot.SendState) error {
		switch s {
		case claybot.SendFailed:
			c.tally.send(s, claybot.SendWaiting)
			err := c.do("UPDATE outbox SET state = ?, open = 1, attempts = 0, due_at = 0 WHERE id = ?", claybot.SendWaiting, id)
			return err
		case claybot.SendWaiting:
			err := c.do("UPDATE outbox SET due_at = 0 WHERE id = ?", id)
			return err
		default:
			return fmt.Errorf("it is %s: %w", s, storage.ErrState)
		}
	})
}

// Discard implements storage.OutboxControl. One that has failed already keeps its
// cause.
func (db outbox) Discard(ctx context.Context, id, cause string) (claybot.Outgoing, error) {
	return db.operate(ctx, "discard", id, func(c *Conn, s claybot.SendState) error {
		switch s {
		case claybot.SendFailed:
			return nil
		case claybot.SendWaiting:
			return resolveSend(c, storage.Claim{}, id, storage.Resolution{State: claybot.SendFailed, Cause: cause})
		default:
			return fmt.Errorf("it is %s: %w", s, storage.ErrState)
		}
	})
}

// operate lets do change an outgoing message by its state, and returns it as it
// is then.
func (db outbox) operate(ctx context.Context, verb, id string, do func(c *Conn, s claybot.SendState) error) (claybot.Outgoing, error) {
	o, err := write(ctx, db, func(c *Conn) (o claybot.Outgoing, err error) {
		s, _, err := claimedOutgoing(c, storage.Claim{}, id)
		if err != nil {
			return o, err
		}
		if err := do(c, s); err != nil {
			return o, err
		}
		err = need(c.first("SELECT "+outgoingColumns+" FROM outbox WHERE id = ?",
			func(r Row) (err error) { o, err = decodeOutgoing(r); return err }, id))
		if errors.Is(err, storage.ErrDamaged) && o.State == claybot.SendFailed {
			o.Cause, err = causeDamaged, nil // it can be given up all the same
		}
		return o, err
	})
	if err != nil {
		return claybot.Outgoing{}, fmt.Errorf("%s outgoing message %s: %w", verb, id, err)
	}
	return o, nil
}

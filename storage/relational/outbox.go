package relational

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// causeDamaged is why an outgoing message with a broken text is not sent.
const causeDamaged = "the stored text is damaged"

func (db outbox) Enqueue(ctx context.Context, o ...claybot.Outgoing) ([]claybot.Outgoing, error) {
	added, err := write(ctx, db, func(c *Conn) ([]claybot.Outgoing, error) { return enqueue(c, c.now(), "", o) })
	return result(added, err, "enqueue")
}

// Unsent implements storage.Outbox. A message whose stored text is damaged is
// marked failed, so that it does not hold up those behind it.
func (db outbox) Unsent(ctx context.Context, dest string, after int64, limit int) ([]claybot.Outgoing, error) {
	for {
		out, damaged, err := db.outgoings(ctx, "SELECT "+outgoingColumns+
			" FROM outbox WHERE open = 1 AND dest = ? AND n > ? ORDER BY n LIMIT 0+?", dest, after, limit)
		if err != nil {
			return nil, fmt.Errorf("unsent messages: %w", err)
		}
		for _, id := range damaged {
			if err := db.Resolve(ctx, storage.Claim{}, id, storage.Resolution{State: claybot.SendFailed, Cause: causeDamaged}); err != nil {
				return nil, err
			}
		}
		if len(out) > 0 || len(damaged) == 0 {
			return out, nil
		}
	}
}

// outgoings reads rows of outgoingColumns. Those with a damaged body are
// returned separately and logged.
func (db outbox) outgoings(ctx context.Context, q string, args ...any) (out []claybot.Outgoing, damaged []string, err error) {
	err = db.read(ctx, func(c *Conn) error {
		return c.each(q, func(r Row) error {
			o, err := decodeOutgoing(r)
			if err != nil {
				db.log.Error("damaged outgoing message", "outgoing", o.ID, "err", err)
				damaged = append(damaged, o.ID)
				return nil
			}
			out = append(out, o)
			return nil
		}, args...)
	})
	return out, damaged, err
}

func (db outbox) UnsentDests(ctx context.Context) ([]string, error) {
	dests, err := selectAll(ctx, db, func(r Row) string { return r.Str(0) }, "SELECT DISTINCT dest FROM outbox WHERE open = 1 ORDER BY dest")
	return result(dests, err, "unsent destinations")
}

// errEnded means that the outgoing message was already sent or has failed.
var errEnded = errors.New("has ended already")

func open(s claybot.SendState) bool { return s != claybot.SendSent && s != claybot.SendFailed }

// Attempt implements storage.Outbox. One that was sent or failed is refused.
func (db outbox) Attempt(ctx context.Context, claim storage.Claim, id string) error {
	err := db.update(ctx, func(c *Conn) error {
		var alive bool
		s, _, err := claimedOutgoing(c, claim, id, askLive(c, claim.Member, &alive)...)
		if err != nil {
			return err
		}
		if !alive {
			return fmt.Errorf("the lease of member %s: %w", claim.Member, storage.ErrLeaseLost)
		}
		if !open(s) {
			return errEnded
		}
		c.tally.send(s, claybot.SendAttempted)
		return c.do("UPDATE outbox SET state = ?, attempts = attempts + 1, tried_at = ? WHERE id = ?",
			claybot.SendAttempted, c.now(), id)
	})
	return failed(err, "attempt %s", id)
}

// Resolve implements storage.Outbox. Recording the same final state again
// changes nothing; a different one is refused.
func (db outbox) Resolve(ctx context.Context, claim storage.Claim, id string, res storage.Resolution) error {
	err := db.update(ctx, func(c *Conn) error {
		if sent, ok := SentBy(claim, id, res); ok && c.dialect.Alone {
			n, err := c.exec("UPDATE outbox SET state = 'sent', open = 0, due_at = 0, receipt = coalesce(?, receipt) WHERE id = ? AND dest = ? AND state = 'attempted'",
				text(sent.Receipt), sent.ID, sent.Dest)
			if n > 0 {
				noteSent(c, sent.Dest)
			}
			if n > 0 || err != nil {
				return err
			}
		}
		return resolveSend(c, claim, id, res)
	})
	return failed(err, "resolve %s", id)
}

// A Sent is a message whose first attempt reached the platform.
type Sent struct {
	Claim    storage.Claim
	ID, Dest string
	Receipt  string
}

// SentBy returns the message that a resolution marks as sent; false if the resolution does
// more than that.
func SentBy(claim storage.Claim, id string, res storage.Resolution) (Sent, bool) {
	dest, ok := storage.ClaimedDest(claim.Name)
	return Sent{claim, id, dest, res.Receipt}, ok && res.SentOnly()
}

// MarkSent marks messages as sent in one transaction, and returns the ids of those that
// it marked. Resolve decides about the others.
func (db outbox) MarkSent(ctx context.Context, list []Sent) (map[string]bool, error) {
	marked, err := write(ctx, db, func(c *Conn) (map[string]bool, error) {
		marked := make(map[string]bool, len(list))
		return marked, markAllSent(c, list, marked)
	})
	return result(marked, err, "mark %d messages as sent", len(list))
}

func markAllSent(c *Conn, list []Sent, marked map[string]bool) error {
	dests := make(map[string]string, len(list))
	for _, s := range list {
		dests[s.ID] = s.Dest
	}
	q, args := c.dialect.MarkSent(list)
	err := c.each(q, func(r Row) error {
		id := r.Str(0)
		marked[id] = true
		noteSent(c, dests[id])
		return nil
	}, args...)
	c.wrote = c.wrote || len(marked) > 0 || err != nil
	return err
}

// noteSent counts an attempted message that became sent.
func noteSent(c *Conn, dest string) {
	c.tally.send(claybot.SendAttempted, claybot.SendSent)
	c.journal.notification.Sent = append(c.journal.notification.Sent, dest)
}

func resolveSend(c *Conn, claim storage.Claim, id string, res storage.Resolution) error {
	switch res.State {
	case claybot.SendSent, claybot.SendFailed, claybot.SendAmbiguous, claybot.SendWaiting:
	default:
		return fmt.Errorf("an attempt cannot end as %q", res.State)
	}
	s, dest, err := claimedOutgoing(c, claim, id)
	switch {
	case err != nil:
		return err
	case !open(s) && s == res.State:
		return nil
	case !open(s):
		return errEnded
	}
	// A message that fails after an ambiguous send carries the resend mark, in
	// case an operator retries it.
	lost := s == claybot.SendAmbiguous && res.State == claybot.SendFailed
	if lost || res.Resent || res.NoEdit || res.Edit != "" || res.Copies > 0 {
		marked := res
		marked.Resent = res.Resent || lost
		if err := amendOutgoing(c, id, marked); err != nil && !(lost && errors.Is(err, storage.ErrDamaged)) {
			return err
		}
	}
	free := 0
	if res.Free {
		free = 1
	}
	isOpen := 0
	if open(res.State) {
		isOpen = 1
	}
	c.tally.send(s, res.State)
	if res.State == claybot.SendSent {
		c.journal.notification.Sent = append(c.journal.notification.Sent, dest)
	}
	err = c.do(`UPDATE outbox SET state = ?1, open = ?2, attempts = CASE WHEN attempts > ?3 THEN attempts - ?3 ELSE 0 END, due_at = ?4,
		receipt = coalesce(?5, receipt), cause = coalesce(?6, cause) WHERE id = ?7`,
		res.State, isOpen, free, claybot.At(res.Due), text(res.Receipt), text(res.Cause), id)
	if err != nil {
		return err
	}
	if len(res.Notices) > 0 {
		if _, err := enqueue(c, c.now(), "", res.Notices); err != nil {
			return err
		}
	}
	if err := setCheckpoint(c, res.Mark); err != nil {
		return err
	}
	return deadChanged(c, res.Mark.Key)
}

// amendOutgoing changes the stored message for its next send.
func amendOutgoing(c *Conn, id string, res storage.Resolution) error {
	var o claybot.Outgoing
	err := need(c.first("SELECT body, crc FROM outbox WHERE id = ?",
		func(r Row) error { return decode(r.Str(0), r.Int(1), &o) }, id))
	if err != nil {
		return err
	}
	o.Resent, o.Copies = o.Resent || res.Resent, max(o.Copies, res.Copies)
	if res.NoEdit {
		o.Edit, o.EditOf = "", ""
	}
	if res.Edit != "" {
		o.Edit = res.Edit
	}
	body, crc, err := encode(o)
	if err != nil {
		return err
	}
	return c.do("UPDATE outbox SET body = ?, crc = ? WHERE id = ?", body, crc, id)
}

// SentAfter implements storage.OutboxReader. Damaged messages are left out.
func (db outbox) SentAfter(ctx context.Context, dest string, n int64, limit int) ([]claybot.Outgoing, error) {
	out, _, err := db.outgoings(ctx, "SELECT "+outgoingColumns+
		" FROM outbox WHERE dest = ? AND n > ? ORDER BY n LIMIT 0+?", dest, n, limit)
	return result(out, err, "sent messages")
}

// SentAs implements storage.OutboxReader. Damaged messages are left out.
func (db outbox) SentAs(ctx context.Context, dest, receipt string) ([]claybot.Outgoing, error) {
	out, _, err := db.outgoings(ctx, "SELECT "+outgoingColumns+
		" FROM outbox INDEXED BY outbox_dest WHERE dest = ? AND receipt = ? ORDER BY n DESC LIMIT 0+?", dest, receipt, 20)
	return result(out, err, "messages sent as %s", receipt)
}

// LastN implements storage.OutboxReader. Damaged messages count.
func (db outbox) LastN(ctx context.Context, dest string) (n int64, err error) {
	err = db.read(ctx, func(c *Conn) error {
		return need(c.first("SELECT coalesce(max(n), 0) FROM outbox WHERE dest = ?", func(r Row) error { n = r.Int(0); return nil }, dest))
	})
	return result(n, err, "last position")
}

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
	return result(out, err, "list outgoing messages")
}

// shownOutgoing decodes a row of outgoingColumns for display.
func (db outbox) shownOutgoing(r Row) claybot.Outgoing {
	o, err := decodeOutgoing(r)
	if err != nil {
		db.log.Error("damaged outgoing message", "outgoing", o.ID, "err", err)
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
	return result(o, err, "outgoing message %s", id)
}

// Retry implements storage.OutboxControl. A failed message gets a new set of attempts
// and keeps its position. A damaged one cannot be sent and is refused.
func (db outbox) Retry(ctx context.Context, id string) (claybot.Outgoing, error) {
	return db.operate(ctx, "retry", id, func(c *Conn, s claybot.SendState) error {
		switch s {
		case claybot.SendFailed:
			c.tally.send(s, claybot.SendWaiting)
			return c.do("UPDATE outbox SET state = ?, open = 1, attempts = 0, due_at = 0 WHERE id = ?", claybot.SendWaiting, id)
		case claybot.SendWaiting:
			return c.do("UPDATE outbox SET due_at = 0 WHERE id = ?", id)
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

// operate calls do with the state of an outgoing message and returns the
// changed message.
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
			o.Cause, err = causeDamaged, nil // it can still be discarded
		}
		return o, err
	})
	return result(o, err, "%s outgoing message %s", verb, id)
}

package relational

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// causeDamaged is why an outgoing message with a broken text is not sent.
const causeDamaged = "the stored text is damaged"

// stored are the ids of outgoing messages that exist already.
type stored map[string]bool

// ask returns the queries that find the existing ones.
func (s stored) ask(out []claybot.Outgoing) []Ask {
	asks := make([]Ask, len(out))
	for i, o := range out {
		asks[i] = Ask{Query: "SELECT 1 FROM outbox WHERE id = ?", Args: []any{o.ID}, Row: func(Row) error { s[o.ID] = true; return nil }}
	}
	return asks
}

// enqueue adds outgoing messages with the run or message they answer, and returns
// those that were new, as stored. Their N is set after the commit; they must not
// be copied before.
func enqueue(c *Conn, at int64, origin string, out []claybot.Outgoing) ([]claybot.Outgoing, error) {
	if len(out) == 0 {
		return nil, nil
	}
	known := make(stored)
	if err := c.ask(known.ask(out)...); err != nil {
		return nil, err
	}
	return enqueueNew(c, at, origin, out, known, storage.Claim{})
}

// enqueueNew is enqueue with known existing ids. If another transaction adds one
// concurrently, this one is retried. A state other than waiting is only taken for a
// send whose fate is unknown already: the beginning of an answer. For sending, see
// storage.Outcome.
func enqueueNew(c *Conn, at int64, origin string, out []claybot.Outgoing, known stored, sending storage.Claim) ([]claybot.Outgoing, error) {
	attempt, err := holdsClaim(c, sending, out)
	if err == nil {
		err = lockDests(c, out)
	}
	if err == nil && attempt {
		attempt, err = isOldest(c, out[0])
	}
	if err != nil {
		return nil, err
	}
	added := make([]claybot.Outgoing, 0, len(out)) // it does not move: rows are told to it later
	for _, o := range out {
		if o.ID == "" {
			return nil, fmt.Errorf("outgoing message: %w", errNoID)
		}
		if o.State == "" {
			o.State = claybot.SendWaiting
		}
		if o.State != claybot.SendWaiting && o.State != claybot.SendAmbiguous {
			return nil, fmt.Errorf("outgoing message %s cannot begin as %q", o.ID, o.State)
		}
		if o.At == 0 {
			o.At = claybot.Time(at)
		}
		o.Receipt, o.Cause = "", ""
		now := attempt && o.State == claybot.SendWaiting && o.Due == 0
		attempt = false // of the first alone
		if known[o.ID] {
			continue
		}
		if now {
			o.State, o.Attempts, o.Tried = claybot.SendAttempted, o.Attempts+1, claybot.Time(at)
		}
		known[o.ID] = true
		added = append(added, o)
		if err := insertOutgoing(c, at, origin, &added[len(added)-1]); err != nil {
			return nil, err
		}
	}
	return added, nil
}

// holdsClaim reports whether a claim is that of the destination of the first message,
// and valid.
func holdsClaim(c *Conn, claim storage.Claim, out []claybot.Outgoing) (bool, error) {
	if claim == (storage.Claim{}) || len(out) == 0 || claim.Name != storage.DestClaim(out[0].Route.Dest()) {
		return false, nil
	}
	if c.dialect.Alone {
		return true, nil
	}
	var found, alive bool
	err := c.ask(append([]Ask{askClaim(c, claim, &found)}, askLive(c, claim.Member, &alive)...)...)
	return found && alive, err
}

// isOldest reports whether no message is unfinished that o would have to wait for.
func isOldest(c *Conn, o claybot.Outgoing) (bool, error) {
	waits, err := c.first("SELECT 1 FROM outbox INDEXED BY outbox_open WHERE open = 1 AND dest = ? LIMIT 1",
		func(Row) error { return nil }, o.Route.Dest())
	return !waits, err
}

// lockDests locks destinations, so that the order of their messages is that of the
// commits. It locks in a fixed order to avoid deadlocks.
func lockDests(c *Conn, out []claybot.Outgoing) error {
	if c.dialect.LockName == "" {
		return nil
	}
	dests := make([]string, len(out))
	for i, o := range out {
		dests[i] = o.Route.Dest()
	}
	slices.Sort(dests)
	for _, dest := range slices.Compact(dests) {
		if err := c.lock("out/" + dest); err != nil {
			return err
		}
	}
	return nil
}

// insertOutgoing adds o and sets its N, at the latest when the transaction commits.
func insertOutgoing(c *Conn, at int64, origin string, o *claybot.Outgoing) error {
	body, crc, err := encode(o)
	if err != nil {
		return err
	}
	if origin == "" {
		origin = string(o.Run)
	}
	dest := o.Route.Dest()
	c.tally.send("", o.State)
	c.journal.notification.Dests = append(c.journal.notification.Dests, dest)
	c.wrote = true
	return c.later(`INSERT INTO outbox (id, dest, origin, state, open, at, attempts, tried_at, due_at, body, crc)
		VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?) RETURNING n`,
		func(r Row) { o.N = r.Int(0) },
		o.ID, dest, text(origin), o.State, at, o.Attempts, o.Tried, o.Due, body, crc)
}

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
	err := db.update(ctx, func(c *Conn) error { return resolveSend(c, claim, id, res) })
	return failed(err, "resolve %s", id)
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
	if err != nil || res.Notice == nil {
		return err
	}
	_, err = enqueue(c, c.now(), "", []claybot.Outgoing{*res.Notice})
	return err
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

package relational

import (
	"fmt"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

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
	q := queueing{out: out}
	if err := c.ask(q.asks(c, false)...); err != nil {
		return nil, err
	}
	return q.enqueue(c, at, origin)
}

// A queueing adds outgoing messages to the outbox: asks before, then enqueue.
type queueing struct {
	out   []claybot.Outgoing
	claim storage.Claim // of who sends the first at once, see storage.Outcome; zero: no one
	known stored
	// What asks has found out with more queries; the others are made by enqueue.
	locked bool
	claimed
	waits bool // an older message of the destination of the first one is unfinished
}

// asks returns the queries of what exists already. With all, they also lock the
// destination, if there is just one, and the claim; then the caller must lock no row
// afterwards.
func (q *queueing) asks(c *Conn, all bool) []Ask {
	q.known = make(stored)
	if !all || len(q.out) != 1 {
		return q.known.ask(q.out)
	}
	q.locked = true
	o := &q.out[0]
	dest := o.Route.Dest()
	var asks []Ask
	if q.ofFirst() && !c.dialect.Alone {
		asks = append(asks, q.claimed.ask(c, q.claim))
	}
	if c.dialect.LockName != "" {
		asks = append(asks, Ask{Query: c.dialect.LockName, Args: []any{"out/" + dest}, Row: func(Row) error { return nil }})
	}
	return append(asks, Ask{
		Query: "SELECT EXISTS (SELECT 1 FROM outbox WHERE id = ?), EXISTS (SELECT 1 FROM outbox INDEXED BY outbox_open WHERE open = 1 AND dest = ?)",
		Args:  []any{o.ID, dest},
		Row: func(r Row) error {
			if r.Int(0) != 0 {
				q.known[o.ID] = true
			}
			q.waits = r.Int(1) != 0
			return nil
		},
	})
}

// ofFirst reports whether the claim is that of the destination of the first message.
func (q *queueing) ofFirst() bool {
	return q.claim != (storage.Claim{}) && len(q.out) > 0 && q.claim.Name == storage.DestClaim(q.out[0].Route.Dest())
}

// ready locks the destinations and reports whether the first message is sent at once: its
// sender holds the claim, and it has to wait for no other one.
func (q *queueing) ready(c *Conn) (bool, error) {
	attempt := q.ofFirst()
	if attempt && !c.dialect.Alone {
		if !q.locked {
			if err := c.ask(q.claimed.ask(c, q.claim)); err != nil {
				return false, err
			}
		}
		attempt = q.live(c)
	}
	if q.locked {
		return attempt && !q.waits, nil
	}
	if err := lockDests(c, q.out); err != nil || !attempt {
		return false, err
	}
	waits, err := c.first("SELECT 1 FROM outbox INDEXED BY outbox_open WHERE open = 1 AND dest = ? LIMIT 1",
		func(Row) error { return nil }, q.out[0].Route.Dest())
	return !waits, err
}

// enqueue adds the messages, see the function enqueue. If another transaction adds one of
// them concurrently, this one is retried. A state other than waiting is only taken for a
// send whose fate is unknown already: the beginning of an answer.
func (q *queueing) enqueue(c *Conn, at int64, origin string) ([]claybot.Outgoing, error) {
	if len(q.out) == 0 {
		return nil, nil
	}
	attempt, err := q.ready(c)
	if err != nil {
		return nil, err
	}
	known, out := q.known, q.out
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

package relational

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// parkedColumns are what decodeParked reads, in its order.
const parkedColumns = "id, key, episode, at, cause, descriptor, body, crc"

// parkedSum returns the checksum of a parked message and its recipient.
func parkedSum(body, descriptor string) uint32 {
	return crc32.Update(crc32.Checksum([]byte(body), castagnoli), castagnoli, []byte(descriptor))
}

// decodeParked reads a row of parkedColumns. Damage is part of the result, because
// later messages must not wait for a damaged one. A descriptor whose key differs
// from that of its row counts as damaged. The checksum of a row of an earlier
// version covers the body alone.
func decodeParked(r Row) storage.Parked {
	p := storage.Parked{Key: r.Str(1), Episode: claybot.MessageID(r.Str(2)), At: claybot.Time(r.Int(3)), Cause: r.Str(4)}
	descriptor, body, crc := r.Str(5), r.Str(6), r.Int(7)
	if int64(parkedSum(body, descriptor)) == crc {
		p.Damaged = unmarshal(body, &p.Message)
	} else {
		p.Damaged = decode(body, crc, &p.Message)
	}
	if p.Damaged != nil {
		p.Message = claybot.AgentMessage{}
	}
	p.Message.ID = claybot.MessageID(r.Str(0))
	err := unmarshal(descriptor, &p.To)
	if err == nil && p.To.Key() != p.Key {
		err = fmt.Errorf("%w: the descriptor belongs to another agent", storage.ErrDamaged)
	}
	if err != nil {
		p.To, p.Damaged = claybot.Descriptor{}, errors.Join(err, p.Damaged)
	}
	return p
}

func (db parking) Park(ctx context.Context, p storage.Parked, rules storage.ParkRules) (bool, error) {
	added, err := write(ctx, db, func(c *Conn) (bool, error) { return parkMessage(c, p, rules) })
	if err != nil {
		return false, fmt.Errorf("park %s: %w", p.Message.ID, err)
	}
	if !added {
		db.duplicates.Add(1)
	}
	return added, nil
}

func parkMessage(c *Conn, p storage.Parked, rules storage.ParkRules) (bool, error) {
	m, key := p.Message, p.To.Key()
	if m.ID == "" {
		return false, errNoID
	}
	if err := c.lock("parked/" + key); err != nil { // the order is that of the commits
		return false, err
	}
	if repeat, err := nameParked(c, &m, rules.Posted); err != nil || repeat {
		return false, err
	}
	episode := m.ID
	others, err := c.first("SELECT episode, cause FROM parked WHERE key = ? ORDER BY n LIMIT 1", func(r Row) error {
		if episode = claybot.MessageID(r.Str(0)); rules.Behind && r.Str(1) != storage.ParkedUnapproved {
			p.Cause = r.Str(1)
		}
		return nil
	}, key)
	if err != nil {
		return false, err
	}
	if rules.Behind && !others {
		return false, storage.ErrNotFound
	}
	var all, own int64
	err = c.ask(
		Ask{Query: "SELECT count(*) FROM parked", Row: func(r Row) error { all = r.Int(0); return nil }},
		Ask{Query: "SELECT count(*) FROM parked WHERE key = ?", Args: []any{key}, Row: func(r Row) error { own = r.Int(0); return nil }},
	)
	switch {
	case err != nil:
		return false, err
	case rules.Agent > 0 && own >= int64(rules.Agent):
		return false, fmt.Errorf("%w: %d of %d", storage.ErrTooMany, own, rules.Agent)
	case rules.All > 0 && all >= int64(rules.All):
		return false, &storage.Fault{Class: storage.ClassStore, Err: fmt.Errorf("%w: %d of %d", storage.ErrParkingFull, all, rules.All)}
	}
	if err := withinPerson(c, p, rules); err != nil {
		return false, err
	}
	at := c.now()
	if m.At == 0 {
		m.At = claybot.Time(at)
	}
	body, _, err := encode(m)
	if err != nil {
		return false, err
	}
	to, _, err := encode(p.To)
	if err != nil {
		return false, err
	}
	c.touched.arrivals = true
	return true, c.do("INSERT INTO parked (id, key, episode, at, cause, descriptor, body, crc) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
		m.ID, key, episode, at, p.Cause, to, body, parkedSum(body, to))
}

// withinPerson checks the limits of the person who wrote p.
func withinPerson(c *Conn, p storage.Parked, rules storage.ParkRules) error {
	if rules.Person == 0 {
		return nil
	}
	owner, n, size := p.To.OwnerID(), 1, len(p.Message.Text)
	if err := c.lock("parked by/" + owner); err != nil {
		return err
	}
	err := c.each("SELECT "+parkedColumns+" FROM parked WHERE cause = ?", func(r Row) error {
		if x := decodeParked(r); x.To.OwnerID() == owner {
			n, size = n+1, size+len(x.Message.Text)
		}
		return nil
	}, p.Cause)
	if err == nil && (n > rules.Person || size > rules.PersonBytes) {
		err = fmt.Errorf("%w: %d messages of a person, %d bytes", storage.ErrTooMany, n, size)
	}
	return err
}

// nameParked determines the id under which m is parked, or that it is a duplicate of a
// posted or parked message. Further keys of parked messages are compared when they are
// posted.
func nameParked(c *Conn, m *claybot.AgentMessage, posted bool) (repeat bool, err error) {
	if !posted {
		if repeat, err := nameMessage(c, m); err != nil || repeat {
			return repeat, err
		}
	}
	var stored []string
	known, err := parkedKeys(c, m.ID, &stored)
	if err != nil || !known {
		return false, err
	}
	if len(m.Keys) == 0 || len(stored) == 0 || slices.ContainsFunc(m.Keys, func(k string) bool { return slices.Contains(stored, k) }) {
		return true, nil
	}
	m.ID += claybot.MessageID("#" + m.Keys[0])
	return parkedKeys(c, m.ID, &stored)
}

// parkedKeys finds the keys of a parked message.
func parkedKeys(c *Conn, id claybot.MessageID, keys *[]string) (known bool, err error) {
	return c.first("SELECT "+parkedColumns+" FROM parked WHERE id = ?", func(r Row) error {
		*keys = decodeParked(r).Message.Keys // a damaged message is still a known one
		return nil
	}, id)
}

func (db parking) Arrival(ctx context.Context, d claybot.Descriptor) (a storage.Arrival, err error) {
	q := `SELECT EXISTS (SELECT 1 FROM parked WHERE key = ?1),
		EXISTS (SELECT 1 FROM agents a JOIN questions q ON q.agent = a.id AND q.open = 1 WHERE a.key = ?1),
		EXISTS (SELECT 1 FROM questions WHERE open = 1)`
	if db.dialect.Agents {
		q += ", " + agentColumns + " FROM (SELECT 1) AS one LEFT JOIN agents ON key = ?1"
	}
	changes := db.unchanged.arrivals.Load()
	if db.dialect.Alone && db.unchanged.quiet.Load() == changes+1 {
		return a, nil
	}
	err = db.read(ctx, func(c *Conn) error {
		if db.dialect.Alone {
			busy, err := c.first("SELECT 1 WHERE EXISTS (SELECT 1 FROM parked) OR EXISTS (SELECT 1 FROM questions WHERE open = 1)",
				func(Row) error { return nil })
			if err == nil && !busy {
				db.unchanged.quiet.Store(changes + 1)
			}
			if err != nil || !busy {
				return err
			}
		}
		return c.each(q, func(r Row) error {
			a = storage.Arrival{Parked: r.Int(0) != 0, Asked: r.Int(1) != 0, Open: r.Int(2) != 0}
			if db.dialect.Agents && !r.Null(3) {
				if found, err := decodeAgent(r[3:]); err == nil && storage.Renamed(found.Descriptor, d) == found.Descriptor {
					a.Agent = &found
				}
			}
			return nil
		}, d.Key())
	})
	return result(a, err, "look for parked messages of %s", d.Key())
}

func (db parking) ParkedAgents(ctx context.Context, limit int) (list []storage.ParkedAgent, err error) {
	err = db.read(ctx, func(c *Conn) error {
		return c.each("SELECT key, count(*) FROM parked GROUP BY key ORDER BY min(n) LIMIT 0+?", func(r Row) error {
			list = append(list, storage.ParkedAgent{Key: r.Str(0), Messages: int(r.Int(1))})
			return nil
		}, limit)
	})
	return result(list, err, "list agents with parked messages")
}

func (db parking) ParkedOf(ctx context.Context, key string, limit int) (list []storage.Parked, err error) {
	err = db.read(ctx, func(c *Conn) error {
		return c.each("SELECT "+parkedColumns+" FROM parked WHERE key = ? ORDER BY n LIMIT 0+?",
			func(r Row) error { list = append(list, decodeParked(r)); return nil }, key, limit)
	})
	return result(list, err, "list parked messages of %s", key)
}

func (db parking) Repark(ctx context.Context, p storage.Parked) error {
	err := db.update(ctx, func(c *Conn) error {
		if err := c.lock("parked/" + p.To.Key()); err != nil {
			return err
		}
		body, _, err := encode(p.Message)
		if err != nil {
			return err
		}
		to, _, err := encode(p.To)
		if err != nil {
			return err
		}
		n, err := c.exec("UPDATE parked SET cause = ?, descriptor = ?, body = ?, crc = ? WHERE id = ? AND key = ?",
			p.Cause, to, body, parkedSum(body, to), p.Message.ID, p.To.Key())
		return need(n > 0, err)
	})
	return failed(err, "park %s again", p.Message.ID)
}

func (db parking) Unpark(ctx context.Context, id claybot.MessageID) error {
	err := db.update(ctx, func(c *Conn) error {
		c.touched.arrivals = true
		return c.do("DELETE FROM parked WHERE id = ?", id)
	})
	return failed(err, "unpark %s", id)
}

func (db parking) EndParked(ctx context.Context, p storage.Parked, reason string) (bool, error) {
	ended, err := write(ctx, db, func(c *Conn) (bool, error) { return endParkedMessage(c, p, reason) })
	return result(ended, err, "end parked message %s", p.Message.ID)
}

func endParkedMessage(c *Conn, p storage.Parked, reason string) (bool, error) {
	m, key := p.Message, cmp.Or(p.Key, p.To.Key())
	if m.ID == "" {
		return false, errNoID
	}
	if err := c.lock("parked/" + key); err != nil {
		return false, err
	}
	c.touched.arrivals = true
	if err := c.do("DELETE FROM parked WHERE id = ?", m.ID); err != nil {
		return false, err
	}
	a := &inboxRow{} // of no agent, until there is one
	known, err := c.first("SELECT id FROM agents WHERE key = ?", func(r Row) error { a.id = claybot.AgentID(r.Str(0)); return nil }, key)
	if err == nil && known {
		a, err = loadInbox(c, a.id)
	}
	if err != nil {
		return false, err
	}
	if repeat, err := nameMessage(c, &m); err != nil || repeat {
		return false, err
	}
	at := c.now()
	m.Type, m.At = cmp.Or(m.Type, claybot.MessageUser), cmp.Or(m.At, p.At, claybot.Time(at)) // a damaged one has none
	if err := insertMessage(c, a, m, at, reason, ""); err != nil || !known {
		return err == nil, err
	}
	return true, saveInbox(c, a)
}

func (db parking) ParkedTotals(ctx context.Context) (t storage.ParkedTotals, err error) {
	err = db.read(ctx, func(c *Conn) error {
		return c.each("SELECT count(*), count(DISTINCT key), coalesce((SELECT at FROM parked WHERE cause <> ?1 ORDER BY n LIMIT 1), 0) FROM parked WHERE cause <> ?1", func(r Row) error {
			t = storage.ParkedTotals{Messages: int(r.Int(0)), Agents: int(r.Int(1)), Oldest: claybot.Time(r.Int(2))}
			return nil
		}, storage.ParkedUnapproved)
	})
	return t, failed(err, "count parked messages")
}

// parkedReceipt returns the receipt of a parked message; storage.ErrNotFound.
func parkedReceipt(c *Conn, id string) (rec storage.Receipt, err error) {
	var n int64
	var key string
	err = need(c.first("SELECT "+parkedColumns+", n FROM parked WHERE id = ?", func(r Row) error {
		p := decodeParked(r)
		rec.Message, rec.Stored, rec.Parked, n, key = p.Message, p.At, p.Cause, r.Int(8), p.Key
		return p.Damaged
	}, id))
	if err != nil {
		return rec, err
	}
	_, err = c.first("SELECT id FROM agents WHERE key = ?", func(r Row) error { rec.Agent = claybot.AgentID(r.Str(0)); return nil }, key)
	if err != nil {
		return rec, err
	}
	return rec, c.each("SELECT id FROM parked WHERE key = ? AND n < ? ORDER BY n", func(r Row) error {
		if rec.Ahead++; rec.Ahead <= firstBefore {
			rec.Before = append(rec.Before, claybot.MessageID(r.Str(0)))
		}
		return nil
	}, key, n)
}

package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// skippedDamaged is the skip reason of a message whose stored text is broken.
const skippedDamaged = "damaged"

// Acquire implements storage.Inbox.
func (db *DB) Acquire(ctx context.Context, node string, ttl time.Duration, limit, batch int) ([]storage.Held, time.Time, error) {
	type acquired struct {
		held []storage.Held
		next time.Time
	}
	a, err := lightly(ctx, db, func(c *conn) (a acquired, err error) {
		at := now()
		a.held, err = db.acquire(c, node, at, ttl, limit, batch)
		if err != nil {
			return a, err
		}
		_, err = c.first(`SELECT wake_at FROM agents WHERE wake_at IS NOT NULL AND (node IS NULL OR node <> ?)
			ORDER BY wake_at LIMIT 1`, func(r row) error {
			a.next = time.UnixMilli(max(r.int(0), 1)) // 0 would be the zero time, which means never
			return nil
		}, node)
		return a, err
	})
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("acquire agents: %w", err)
	}
	return a.held, a.next, nil
}

func (db *DB) acquire(c *conn, node string, at int64, ttl time.Duration, limit, batch int) ([]storage.Held, error) {
	var ids []claybot.AgentID
	err := c.each(`SELECT id FROM agents WHERE wake_at IS NOT NULL AND wake_at <= ? AND (node IS NULL OR node <> ?)
		ORDER BY wake_at LIMIT 0+?`, func(r row) error {
		ids = append(ids, claybot.AgentID(r.str(0)))
		return nil
	}, at, node, limit)
	if err != nil {
		return nil, err
	}
	held := make([]storage.Held, 0, len(ids))
	for _, id := range ids {
		h, err := db.hold(c, id, node, at, ttl, batch)
		if err != nil {
			return nil, err
		}
		if h.Run != nil || len(h.Waiting) > 0 {
			held = append(held, h)
		}
	}
	return held, nil
}

// hold gives one agent to node. When all that made it due was damaged there is
// nothing to hold it for, and it is let go again.
func (db *DB) hold(c *conn, id claybot.AgentID, node string, at int64, ttl time.Duration, batch int) (h storage.Held, err error) {
	a, err := c.loadInbox(id)
	if err != nil {
		return h, err
	}
	a.token++
	a.node, a.wakeAt = node, at+ttl.Milliseconds()
	h.Lease = storage.Lease{Agent: id, Node: node, Token: a.token, Until: time.UnixMilli(a.wakeAt)}
	if a.run != "" {
		if h.Run, err = db.unfinishedRun(c, a); err != nil {
			return h, err
		}
		if h.Run == nil && (a.dueAt == never || a.dueAt > at) {
			a.node = "" // it was due for that run alone
			a.wake()
			return h, c.saveInbox(a)
		}
	}
	if h.Run != nil {
		if h.Bound, err = db.boundMessages(c, *h.Run); err != nil {
			return h, err
		}
	}
	if h.Waiting, err = db.waitingMessages(c, a, batch); err != nil {
		return h, err
	}
	if h.Run == nil && (len(h.Waiting) == 0 || a.firstN == 0) {
		h.Waiting = nil // silent ones wait for company
		a.node = ""
		a.wake()
	}
	return h, c.saveInbox(a)
}

// boundMessages returns the messages of a run in the order they joined it. A
// damaged one is left out: the run goes on with what it has recorded.
func (db *DB) boundMessages(c *conn, run claybot.Run) ([]claybot.Message, error) {
	bound := make([]claybot.Message, 0, len(run.Messages))
	for _, id := range run.Messages {
		_, err := c.first("SELECT body, crc FROM messages WHERE id = ?", func(r row) error {
			m, err := decodeMessage(r, 0)
			if err != nil {
				db.log.Error("a message of a run is damaged", "message", id, "run", run.ID, "err", err)
				return nil
			}
			bound = append(bound, m)
			return nil
		}, id)
		if err != nil {
			return nil, err
		}
	}
	return bound, nil
}

// waitingMessages returns up to limit waiting messages, oldest first. Damaged
// ones are ended, so that they cannot hold up those behind them. The caller
// saves a.
func (db *DB) waitingMessages(c *conn, a *inboxRow, limit int) ([]claybot.Message, error) {
	var (
		waiting []claybot.Message
		damaged []claybot.MessageID
	)
	// Silent messages go with what comes after them, so they do not count.
	err := c.each(`SELECT body, crc, id FROM messages INDEXED BY messages_waiting
		WHERE agent = ?1 AND run IS NULL AND skipped IS NULL AND n <= coalesce(
			(SELECT n FROM messages INDEXED BY messages_waiting
			WHERE agent = ?1 AND run IS NULL AND skipped IS NULL AND silent = 0 ORDER BY n LIMIT 1 OFFSET 0+?2), 9223372036854775807)
		ORDER BY n`, func(r row) error {
		m, err := decodeMessage(r, 0)
		if err != nil {
			db.log.Error("a waiting message is damaged and will not run", "message", r.str(2), "agent", a.id, "err", err)
			damaged = append(damaged, claybot.MessageID(r.str(2)))
			return nil
		}
		waiting = append(waiting, m)
		return nil
	}, a.id, max(limit, 1)-1)
	if err != nil {
		return nil, err
	}
	for _, id := range damaged {
		if err := c.skip(a, id, skippedDamaged); err != nil {
			return nil, err
		}
	}
	return waiting, c.left(a, len(damaged))
}

// Renew implements storage.Inbox.
func (db *DB) Renew(ctx context.Context, l storage.Lease, ttl time.Duration) (storage.Lease, string, error) {
	type renewal struct {
		lease  storage.Lease
		cancel string
	}
	r, err := lightly(ctx, db, func(c *conn) (renewal, error) {
		a, err := c.leased(l)
		if err != nil {
			return renewal{}, err
		}
		a.wakeAt = now() + ttl.Milliseconds()
		var done renewal
		if a.run != "" {
			_, err := c.first("SELECT cancel FROM runs WHERE id = ?", func(r row) error { done.cancel = r.str(0); return nil }, a.run)
			if err != nil {
				return renewal{}, err
			}
		}
		done.lease = l
		done.lease.Until = time.UnixMilli(a.wakeAt)
		_, err = c.exec("UPDATE agents SET wake_at = ? WHERE id = ?", a.wakeAt, a.id)
		return done, err
	})
	if err != nil {
		return storage.Lease{}, "", fmt.Errorf("renew lease: %w", err)
	}
	return r.lease, r.cancel, nil
}

// Release implements storage.Inbox.
func (db *DB) Release(ctx context.Context, l storage.Lease, w storage.Wait, orderly bool) error {
	_, err := write(ctx, db, func(c *conn) (struct{}, error) {
		a, err := c.leased(l)
		if err != nil {
			return struct{}{}, err
		}
		if a.run != "" && orderly {
			if _, err := c.exec("UPDATE runs SET attempts = max(attempts - 1, 0) WHERE id = ?", a.run); err != nil {
				return struct{}{}, err
			}
		}
		a.free(w)
		return struct{}{}, c.saveInbox(a)
	})
	if err != nil {
		return fmt.Errorf("release lease: %w", err)
	}
	return nil
}

// Settle implements storage.Inbox. A message that does not wait is refused with
// storage.ErrNotFound; posts whose ids are known are ignored.
func (db *DB) Settle(ctx context.Context, l storage.Lease, id claybot.MessageID, s storage.Settlement) ([]claybot.Outgoing, error) {
	out, err := write(ctx, db, func(c *conn) ([]claybot.Outgoing, error) {
		a, err := c.leased(l)
		if err != nil {
			return nil, err
		}
		if _, err := c.mustWait(a.id, id); err != nil {
			return nil, err
		}
		return c.settle(a, id, s)
	})
	if err != nil {
		return nil, fmt.Errorf("settle %s: %w", id, err)
	}
	return out, nil
}

func (c *conn) settle(a *inboxRow, id claybot.MessageID, s storage.Settlement) ([]claybot.Outgoing, error) {
	reason := s.Reason
	if reason == "" {
		reason = "settled"
	}
	if err := c.skip(a, id, reason); err != nil {
		return nil, err
	}
	if err := c.left(a, 1); err != nil {
		return nil, err
	}
	at := now()
	if err := c.charge(a.id, s.Usage, s.Calls, 0, at); err != nil {
		return nil, err
	}
	for _, m := range s.Posts {
		repeat, err := c.name(&m)
		if err != nil {
			return nil, err
		}
		if repeat {
			continue
		}
		if m.At == 0 {
			m.At = claybot.Time(at)
		}
		if err := c.insertMessage(a, m, at, "", ""); err != nil {
			return nil, err
		}
		if !silent(m) {
			a.urgentN = a.n
		}
	}
	a.free(s.Wait)
	if err := c.saveInbox(a); err != nil {
		return nil, err
	}
	return c.enqueue(at, string(id), s.Replies)
}

// mustWait refuses a message that is not waiting for agent, and returns the run
// id that it reserved.
func (c *conn) mustWait(agent claybot.AgentID, id claybot.MessageID) (reserved claybot.RunID, err error) {
	found, err := c.first("SELECT reserved FROM messages WHERE id = ? AND agent = ? AND run IS NULL AND skipped IS NULL",
		func(r row) error { reserved = claybot.RunID(r.str(0)); return nil }, id, agent)
	if err == nil && !found {
		return "", fmt.Errorf("message %s does not wait: %w", id, storage.ErrNotFound)
	}
	return reserved, err
}

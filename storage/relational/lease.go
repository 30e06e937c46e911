package relational

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// skippedDamaged is the skip reason of a message whose stored text is broken.
const skippedDamaged = "damaged"

func (db leases) Acquire(ctx context.Context, node string, ttl time.Duration, limit, batch int) ([]storage.Acquired, time.Time, error) {
	if err := db.HeedClock(ctx, ttl); err != nil {
		return nil, time.Time{}, fmt.Errorf("acquire agents: %w", err)
	}
	type acquired struct {
		agents []storage.Acquired
		next   time.Time
	}
	a, err := lightly(ctx, db, func(c *Conn) (a *acquired, err error) {
		a = new(acquired) // told of the next with the commit
		if a.agents, err = db.acquire(c, node, c.now(), ttl, limit, batch); err != nil {
			return nil, err
		}
		err = c.later("SELECT wake_at FROM agents WHERE wake_at IS NOT NULL"+ofOthers(c)+" ORDER BY wake_at LIMIT 1", func(r Row) {
			a.next = time.UnixMilli(max(r.Int(0), 1)) // 0 would be the zero time, which means never
		}, ofOthersArgs(c, node)...)
		return a, err
	})
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("acquire agents: %w", err)
	}
	return a.agents, a.next, nil
}

func (db leases) acquire(c *Conn, node string, at int64, ttl time.Duration, limit, batch int) ([]storage.Acquired, error) {
	var ids []claybot.AgentID
	args := append(append([]any{at}, ofOthersArgs(c, node)...), limit)
	err := c.each("SELECT id FROM agents WHERE wake_at IS NOT NULL AND wake_at <= ?"+ofOthers(c)+" ORDER BY wake_at LIMIT 0+?"+c.skipping(), func(r Row) error {
		ids = append(ids, claybot.AgentID(r.Str(0)))
		return nil
	}, args...)
	if err != nil {
		return nil, err
	}
	acquired := make([]storage.Acquired, 0, len(ids))
	boxes, waiting := make([]inboxRow, len(ids)), make([]waitingList, len(ids))
	asks := make([]Ask, 0, 2*len(ids))
	for i, id := range ids {
		boxes[i].id = id
		asks = append(asks, askInbox(c, &boxes[i]), waiting[i].ask(id, batch))
	}
	if err := c.ask(asks...); err != nil {
		return nil, err
	}
	stale := false // an agent's damage was mended, and others were told of it
	for i, id := range ids {
		if stale {
			boxes[i], waiting[i] = inboxRow{id: id}, waitingList{}
			if err := c.ask(askInbox(c, &boxes[i]), waiting[i].ask(id, batch)); err != nil {
				return nil, err
			}
		}
		before := c.saved
		h, err := db.hold(c, &boxes[i], &waiting[i], node, at, ttl)
		if err != nil {
			return nil, err
		}
		stale = stale || c.saved > before+1
		if h.Run != nil || len(h.Waiting) > 0 {
			acquired = append(acquired, h)
			if h.From != "" {
				c.journal.agentsTaken++
			}
		}
	}
	return acquired, nil
}

// ofOthers excludes the agents that a node holds in a store that one process uses
// alone, where an expired lease is still its own. In a shared store an expired lease
// is free: its holder may not know that it was granted.
func ofOthers(c *Conn) string {
	if c.dialect.Alone {
		return " AND (node IS NULL OR node <> ?)"
	}
	return ""
}

// ofOthersArgs are the parameters of ofOthers.
func ofOthersArgs(c *Conn, node string) []any {
	if c.dialect.Alone {
		return []any{node}
	}
	return nil
}

// hold leases one agent to node, unless everything that made it due was
// damaged.
func (db leases) hold(c *Conn, a *inboxRow, waiting *waitingList, node string, at int64, ttl time.Duration) (h storage.Acquired, err error) {
	if err := a.there(); err != nil {
		return h, err
	}
	if a.node != node {
		h.From = a.node
	}
	h.Lease = a.lease(c, node, at, ttl)
	if a.run != "" {
		if h.Run, err = db.unfinishedRun(c, a); err != nil {
			return h, err
		}
		if h.Run == nil && (a.dueAt == never || a.dueAt > at) {
			a.node = "" // it was due only for that run
			a.wake()
			return h, saveInbox(c, a)
		}
	}
	if h.Run != nil {
		if h.Bound, err = db.boundMessages(c, *h.Run); err != nil {
			return h, err
		}
	}
	if h.Waiting, err = db.sound(c, a, waiting); err != nil {
		return h, err
	}
	if h.Run == nil && (len(h.Waiting) == 0 || a.firstN == 0) {
		h.Waiting = nil // silent messages wait for others
		a.node = ""
		a.wake()
	}
	return h, saveInbox(c, a)
}

// lease grants a new lease of the agent. The caller saves a.
func (a *inboxRow) lease(c *Conn, node string, at int64, ttl time.Duration) storage.Lease {
	before := a.token
	a.token++
	if !c.dialect.Alone {
		// A lease that a power loss undid must not be granted again with the same
		// token, so tokens grow with the time.
		a.token = max(a.token, at)
	}
	a.node, a.wakeAt = node, at+ttl.Milliseconds()
	return storage.Lease{Agent: a.id, Node: node, Token: a.token, Until: time.UnixMilli(a.wakeAt), Before: before}
}

// boundMessages returns the messages of a run in the order they joined it. It
// omits damaged messages: the run continues with its records.
func (db leases) boundMessages(c *Conn, run claybot.Run) ([]claybot.AgentMessage, error) {
	bound := make([]claybot.AgentMessage, 0, len(run.Messages))
	for _, id := range run.Messages {
		_, err := c.first("SELECT body, crc FROM messages WHERE id = ?", func(r Row) error {
			m, err := decodeMessage(r, 0)
			if err != nil {
				db.log.Error("damaged message of a run", "message", id, "run", run.ID, "err", err)
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

// waitingMessages returns up to limit waiting messages, oldest first. It ends
// damaged messages, so that they do not block later ones. The caller saves a.
func (db leases) waitingMessages(c *Conn, a *inboxRow, limit int) ([]claybot.AgentMessage, error) {
	var w waitingList
	if err := c.ask(w.ask(a.id, limit)); err != nil {
		return nil, err
	}
	return db.sound(c, a, &w)
}

// A waitingList is the messages that wait for an agent.
type waitingList struct {
	sound   []claybot.AgentMessage
	damaged []damagedMessage
}

type damagedMessage struct {
	id  claybot.MessageID
	err error
}

func (w *waitingList) ask(agent claybot.AgentID, limit int) Ask {
	// Silent messages go with what comes after them, so they do not count.
	return Ask{Args: []any{agent, max(limit, 1) - 1}, Query: `SELECT body, crc, id FROM messages INDEXED BY messages_waiting
		WHERE agent = ?1 AND run IS NULL AND skipped IS NULL AND n <= coalesce(
			(SELECT n FROM messages INDEXED BY messages_waiting
			WHERE agent = ?1 AND run IS NULL AND skipped IS NULL AND silent = 0 ORDER BY n LIMIT 1 OFFSET 0+?2), 9223372036854775807)
		ORDER BY n`, Row: func(r Row) error {
		m, err := decodeMessage(r, 0)
		if err != nil {
			w.damaged = append(w.damaged, damagedMessage{claybot.MessageID(r.Str(2)), err})
			return nil
		}
		w.sound = append(w.sound, m)
		return nil
	}}
}

// sound returns those of the waiting messages that can be read, and ends the others.
func (db leases) sound(c *Conn, a *inboxRow, w *waitingList) ([]claybot.AgentMessage, error) {
	for _, m := range w.damaged {
		db.log.Error("damaged inbox message will not run", "message", m.id, "agent", a.id, "err", m.err)
		if err := skipMessage(c, a, m.id, skippedDamaged); err != nil {
			return nil, err
		}
	}
	return w.sound, reduceWaiting(c, a, len(w.damaged))
}

func (db leases) Renew(ctx context.Context, l storage.Lease, ttl time.Duration) (storage.Lease, string, error) {
	type renewal struct {
		lease  storage.Lease
		cancel string
	}
	r, err := lightly(ctx, db, func(c *Conn) (renewal, error) {
		a, err := leased(c, l)
		if err != nil {
			return renewal{}, err
		}
		a.wakeAt = c.now() + ttl.Milliseconds()
		var done renewal
		if a.run != "" {
			_, err := c.first("SELECT cancel FROM runs WHERE id = ?", func(r Row) error { done.cancel = r.Str(0); return nil }, a.run)
			if err != nil {
				return renewal{}, err
			}
		}
		done.lease = l
		done.lease.Until = time.UnixMilli(a.wakeAt)
		err = c.do("UPDATE agents SET wake_at = ? WHERE id = ?", a.wakeAt, a.id)
		return done, err
	})
	if err != nil {
		return storage.Lease{}, "", fmt.Errorf("renew lease: %w", err)
	}
	return r.lease, r.cancel, nil
}

func (db leases) Release(ctx context.Context, l storage.Lease, w storage.Wait, orderly bool) error {
	err := db.update(ctx, func(c *Conn) error {
		a, err := leased(c, l)
		if err != nil {
			return err
		}
		if a.run != "" && orderly {
			if err := c.do("UPDATE runs SET attempts = CASE WHEN attempts > 0 THEN attempts - 1 ELSE 0 END WHERE id = ?", a.run); err != nil {
				return err
			}
		}
		a.free(w, c.now())
		return saveInbox(c, a)
	})
	return failed(err, "release lease")
}

// Settle implements storage.Leases. A message that does not wait is refused with
// storage.ErrNotFound; posts whose ids are known are ignored.
func (db leases) Settle(ctx context.Context, l storage.Lease, id claybot.MessageID, s storage.Settlement) ([]claybot.Outgoing, error) {
	out, err := write(ctx, db, func(c *Conn) ([]claybot.Outgoing, error) {
		a, err := leased(c, l)
		if err != nil {
			return nil, err
		}
		if _, err := mustWait(c, a.id, id); err != nil {
			return nil, err
		}
		return settleMessage(c, a, id, s)
	})
	return result(out, err, "settle %s", id)
}

func settleMessage(c *Conn, a *inboxRow, id claybot.MessageID, s storage.Settlement) ([]claybot.Outgoing, error) {
	reason := s.Reason
	if reason == "" {
		reason = "settled"
	}
	if err := errors.Join(skipMessage(c, a, id, reason), setCheckpoint(c, s.End)); err != nil {
		return nil, err
	}
	if err := reduceWaiting(c, a, 1); err != nil {
		return nil, err
	}
	at := c.now()
	if err := chargeAgent(c, a.id, s.Usage, s.Calls, 0, at); err != nil {
		return nil, err
	}
	for _, m := range s.Posts {
		repeat, err := nameMessage(c, &m)
		if err != nil {
			return nil, err
		}
		if repeat {
			continue
		}
		if m.At == 0 {
			m.At = claybot.Time(at)
		}
		if err := insertMessage(c, a, m, at, "", ""); err != nil {
			return nil, err
		}
		if !silent(m) {
			a.urgentN = a.n
		}
	}
	a.free(s.Wait, at)
	if err := saveInbox(c, a); err != nil {
		return nil, err
	}
	return enqueue(c, at, string(id), s.Replies)
}

// mustWait refuses a message that is not waiting for agent, and returns the run
// id that it reserved.
func mustWait(c *Conn, agent claybot.AgentID, id claybot.MessageID) (reserved claybot.RunID, err error) {
	var w waits
	if err := c.ask(w.ask(agent, id)); err != nil {
		return "", err
	}
	if !w.found {
		return "", notWaiting(id)
	}
	return w.reserved, nil
}

// A waits is what a message that waits has reserved.
type waits struct {
	reserved claybot.RunID
	taken    bool // what it reserved is a run's
	found    bool // it waits
	at       int64
}

func (w *waits) ask(agent claybot.AgentID, id claybot.MessageID) Ask {
	return Ask{
		Query: `SELECT reserved, reserved IS NOT NULL AND EXISTS (SELECT 1 FROM runs WHERE id = messages.reserved), at
			FROM messages WHERE id = ? AND agent = ? AND run IS NULL AND skipped IS NULL`, Args: []any{id, agent},
		Row: once(&w.found, func(r Row) error {
			w.reserved, w.taken, w.at = claybot.RunID(r.Str(0)), r.Int(1) != 0, r.Int(2)
			return nil
		}),
	}
}

func notWaiting(id claybot.MessageID) error {
	return fmt.Errorf("message %s does not wait: %w", id, storage.ErrNotFound)
}

// Recover ends the leases of the previous process in a store that one process
// uses alone, and marks its unfinished sends as ambiguous. It returns the number
// of these sends.
func (c *Conn) Recover() (sends int64, err error) {
	err = c.do(`UPDATE agents SET node = NULL, wake_at = CASE WHEN run IS NULL THEN due_at ELSE coalesce(resume_at, 0) END
		WHERE wake_at IS NOT NULL AND node IS NOT NULL`)
	if err != nil {
		return 0, err
	}
	sends, err = c.exec("UPDATE outbox SET state = ?, cause = 'interrupted' WHERE open = 1 AND state = ?",
		claybot.SendAmbiguous, claybot.SendAttempted)
	for range sends {
		c.tally.send(claybot.SendAttempted, claybot.SendAmbiguous)
	}
	return sends, err
}

// HeldBy implements storage.Members. In a store that one process uses alone it returns
// that process if it has the agent's lease.
func (db leases) HeldBy(ctx context.Context, id claybot.AgentID) (node string, err error) {
	held := "SELECT node FROM agents WHERE id = ?1 AND node IS NOT NULL AND wake_at > ?2"
	if !db.dialect.Alone {
		held += " AND EXISTS (SELECT 1 FROM nodes n WHERE n.id = agents.node AND n.until > ?2)"
	}
	err = db.read(ctx, func(c *Conn) error {
		_, err := c.first(held, func(r Row) error { node = r.Str(0); return nil }, id, c.now())
		return err
	})
	return result(node, err, "who holds agent %s", id)
}

// clockSlack is how far a moment may lie in the future without a clock that was set
// back, in milliseconds: members of a cluster estimate the clock of the database.
const clockSlack = 1000

// HeedClock detects that the clock of the store was set back since the last call, or
// before the start of this process. Then messages with an arrival in the future become
// due at once, because their intended wait is unknown, and no lease or membership
// lasts longer than ttl. Otherwise it runs no statement.
func (db leases) HeedClock(ctx context.Context, ttl time.Duration) error {
	now := db.now()
	if last := db.looked.Swap(now); last != 0 && now > last-clockSlack {
		return nil
	}
	n, err := lightly(ctx, db, func(c *Conn) (int64, error) { return heedClock(c, now, now+ttl.Milliseconds()) })
	if err != nil {
		db.looked.Store(0) // retry with the next call
		return fmt.Errorf("heed the clock: %w", err)
	}
	if n > 0 {
		db.log.Warn("clock moved backwards; due times of agents adjusted", "agents", n)
	}
	return nil
}

// heedClock is HeedClock at now; leases and memberships end at until at the latest. An
// agent that another transaction has locked gets new times there.
func heedClock(c *Conn, now, until int64) (agents int64, err error) {
	agents, err = c.exec(`UPDATE agents SET due_at = CAST(?1 AS BIGINT), wake_at = CASE WHEN node IS NULL AND run IS NULL THEN CAST(?1 AS BIGINT) ELSE wake_at END
		WHERE id IN (SELECT id FROM agents WHERE wake_at IS NOT NULL AND due_at > ?1 AND last_at > ?2 ORDER BY id`+c.skipping()+`)`, now, now+clockSlack)
	if err != nil || c.dialect.Alone { // Recover has ended the leases of the process before
		return agents, err
	}
	err = c.do(`UPDATE agents SET wake_at = ? WHERE id IN (SELECT id FROM agents WHERE wake_at > ? AND node IS NOT NULL ORDER BY id`+c.skipping()+`)`,
		until, until+clockSlack)
	if err != nil {
		return agents, err
	}
	return agents, c.do("UPDATE nodes SET until = ? WHERE id IN (SELECT id FROM nodes WHERE until > ? ORDER BY id"+c.skipping()+")", until, until+clockSlack)
}

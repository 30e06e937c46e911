package relational

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// Reasons why a message is stored as skipped.
const (
	skippedCommand   = "command"
	skippedReset     = "reset"
	skippedInboxFull = "inbox_full"
)

// errNoID means that a message has no id, so duplicates could not be
// recognized.
var errNoID = errors.New("it has no id")

// Post implements storage.Inbox. An agent that is not in the index is refused
// with storage.ErrNotFound.
func (db inbox) Post(ctx context.Context, p storage.Posting) (storage.Posted, error) {
	posted, err := write(ctx, db, func(c *Conn) (storage.Posted, error) { return postMessage(c, p) })
	if err != nil {
		return storage.Posted{}, fmt.Errorf("post %s: %w", p.Message.ID, err)
	}
	if !posted.Added {
		db.duplicates.Add(1)
	}
	return posted, nil
}

func postMessage(c *Conn, p storage.Posting) (storage.Posted, error) {
	var done storage.Posted
	m := p.Message
	if m.ID == "" {
		return done, errNoID
	}
	// The agent is locked first: a concurrent post of the same message waits here
	// and then finds a duplicate.
	a := &inboxRow{id: p.To}
	if p.Start != nil && c.dialect.Agents {
		a.agent = new(claybot.Agent)
	}
	if repeat, err := nameMessage(c, &m, askInbox(c, a)); err != nil || repeat {
		return done, err
	}
	if m.Firing != nil {
		if known, err := inLedger(c, *m.Firing); err != nil || known {
			return done, err
		}
	}
	err := a.there()
	if err != nil {
		return done, err
	}
	at := c.now()
	if m.At == 0 {
		m.At = claybot.Time(at)
	}
	var changed storage.Posted
	if m.Amends != "" {
		p.Message = m
		if p, changed, err = amend(c, a, p, at); err != nil {
			return done, err
		}
		m = p.Message
	}
	idle := a.run == "" && a.node == "" && a.waiting == 0
	done, replies, err := admitMessage(c, a, p, at)
	if err != nil {
		return done, err
	}
	if done.Added = true; m.Amends != "" {
		done.Dropped, done.Canceled = changed.Dropped, changed.Canceled
	}
	if idle && p.Start != nil && done.Skipped == "" && a.startable(m, p.Wait, at) {
		done.Started, err = startAtOnce(c, a, *p.Start, m, at)
	} else if err = receiveMessage(c, a, m, done.Skipped, p.Wait, p.Urgent, at); err == nil {
		err = saveInbox(c, a)
	}
	if err != nil {
		return done, err
	}
	if done.Skipped != "" || done.Started != nil { // it waits for no run
		replies = slices.DeleteFunc(slices.Clone(replies), func(o claybot.Outgoing) bool { return o.Mark != nil })
	}
	if done.Outbox, err = enqueue(c, at, string(m.ID), replies); err == nil && p.Grant != nil {
		err = saveGrant(c, *p.Grant)
	}
	if err == nil && p.Role != nil {
		var change storage.RoleChange
		change, err = setRole(c, *p.Role)
		done.Role = &change
	}
	return done, err
}

// startable reports whether m makes the idle agent due at once. An album, an edit, and a message
// that reserves a run, wait for Acquire.
func (a *inboxRow) startable(m claybot.AgentMessage, w storage.Wait, at int64) bool {
	if m.Type != claybot.MessageUser || m.Run != "" || m.Context.GroupID != "" || m.Firing != nil || m.Amends != "" {
		return false
	}
	then := *a
	then.n++
	then.arrive(at, false)
	due := then.due(w, at)
	return due != never && due <= at
}

// startAtOnce stores a message for an idle agent, leases the agent and begins its run with
// the message, see storage.Start. It saves a.
func startAtOnce(c *Conn, a *inboxRow, s storage.Start, m claybot.AgentMessage, at int64) (*storage.Acquired, error) {
	if err := insertMessage(c, a, m, at, "", s.Run); err != nil {
		return nil, err
	}
	list, err := json.Marshal([]claybot.MessageID{m.ID})
	if err != nil {
		return nil, err
	}
	a.lastAt = at
	lease := a.lease(c, s.Node, at, s.TTL)
	run, err := startRun(c, a, s.Run, &batch{ids: []claybot.MessageID{m.ID}, list: list, bound: true, waits: []waits{{at: at}}}, s.With)
	if err != nil {
		return nil, err
	}
	begun := &storage.Acquired{Lease: lease, Run: &run, Bound: []claybot.AgentMessage{m}, Started: true}
	if a.agent != nil && a.agent.ID != "" {
		begun.Agent = a.agent
	}
	return begun, nil
}

// admitMessage decides whether a message becomes pending, and applies its
// immediate effects. replies are the replies to send.
func admitMessage(c *Conn, a *inboxRow, p storage.Posting, at int64) (done storage.Posted, replies []claybot.Outgoing, err error) {
	replies = p.Replies
	switch m := p.Message; {
	case p.Skip != "":
		done.Skipped = p.Skip
	case m.Type == claybot.MessageCancel:
		done.Skipped = skippedCommand
		if a.run == "" || m.Run != "" && m.Run != a.run { // no run, or not the one to cancel
			replies = p.IfIdle
		} else {
			done.Canceled, err = a.run, askCancel(c, a, cmp.Or(p.By, "user"), at)
		}
	case m.Type == claybot.MessageCommand:
		done.Skipped = skippedCommand
	case m.Type == claybot.MessageReset:
		done, err = resetInbox(c, a, at)
	case m.Type == claybot.MessageAnswer:
		if a.run == "" || a.run != m.Run {
			done.Skipped = skippedRunEnded
		}
	case m.Flow != nil && m.Flow.Busy == claybot.BusySkip && (a.run != "" || a.waiting > 0):
		done.Skipped = storage.SkippedBusy
	case m.Flow != nil && m.Flow.Busy == claybot.BusyCancel && (a.run != "" || a.waiting > 0):
		if a.run != "" {
			done.Canceled, err = a.run, askCancel(c, a, cmp.Or(p.By, "user"), at)
		}
		if err == nil {
			done.Dropped, err = dropWaiting(c, a, storage.SkippedNewer, nil)
		}
	case p.MaxWaiting > 0 && a.waiting >= int64(p.MaxWaiting):
		done.Skipped = skippedInboxFull
	case p.Room != nil:
		done.Skipped, err = roomFor(c, a, p)
	}
	return done, replies, err
}

// receiveMessage stores an admitted message and updates when a is due. The caller
// saves a.
func receiveMessage(c *Conn, a *inboxRow, m claybot.AgentMessage, skipped string, w storage.Wait, urgent bool, at int64) error {
	if skipped != "" && m.Awaited != nil {
		a.refuse(*m.Awaited, skipped)
	}
	if m.Type == claybot.MessageAnswer {
		var run claybot.RunID
		if skipped == "" {
			run = m.Run
		}
		if err := insertMessage(c, a, m, at, skipped, run); err != nil || a.run == "" || a.run != m.Run {
			return err
		}
		return joinAnswer(c, a, m.ID, run != "", at)
	}
	if err := insertMessage(c, a, m, at, skipped, ""); err != nil {
		return err
	}
	if m.Firing != nil {
		id, reason := m.ID, m.Firing.Late
		if skipped == storage.SkippedFlowFull {
			id, reason = "", skipped
		}
		if err := addToLedger(c, *m.Firing, id, reason, at); err != nil {
			return err
		}
	}
	if m.Type == claybot.MessageReset && skipped == "" {
		a.urgentN = a.n
		if err := moveBehind(c, a, a.n); err != nil {
			return err
		}
	}
	if skipped != "" || silent(m) && (m.Context.GroupID == "" || a.firstN == 0) { // else a part of an album that waits
		return nil
	}
	if err := holdAlbum(c, a, m, at); err != nil {
		return err
	}
	if urgent {
		a.urgentN = a.n
	}
	a.dueAt = a.due(w, at)
	a.wake()
	return nil
}

// silent reports whether m does not make its agent due.
func silent(m claybot.AgentMessage) bool { return m.Silent && m.Type == claybot.MessageSystem }

// moveBehind renumbers the pending messages before number n to come after it,
// in their order.
func moveBehind(c *Conn, a *inboxRow, n int64) error {
	var ids []claybot.MessageID
	err := c.each("SELECT id FROM messages INDEXED BY messages_waiting WHERE agent = ? AND run IS NULL AND skipped IS NULL AND n < ? ORDER BY n",
		func(r Row) error { ids = append(ids, claybot.MessageID(r.Str(0))); return nil }, a.id, n)
	if err != nil {
		return err
	}
	for _, id := range ids {
		a.n++
		if err := c.do("UPDATE messages SET n = ? WHERE id = ?", a.n, id); err != nil {
			return err
		}
	}
	var f front
	err = c.ask(f.ask(a.id))
	a.begin(f)
	return err
}

// nameMessage determines the id under which m is stored, or that it is a duplicate. It runs
// the queries of first before its own.
func nameMessage(c *Conn, m *claybot.AgentMessage, first ...Ask) (repeat bool, err error) {
	var stored []string
	var known bool
	asks := first
	for _, key := range m.Keys {
		asks = append(asks, Ask{Query: "SELECT 1 FROM keys WHERE key = ?", Args: []any{key}, Row: once(&repeat, func(Row) error { return nil })})
	}
	if err := c.ask(append(asks, askKeys(m.ID, &stored, &known))...); err != nil || repeat || !known {
		return repeat, err
	}
	if len(m.Keys) == 0 || len(stored) == 0 || slices.ContainsFunc(m.Keys, func(k string) bool { return slices.Contains(stored, k) }) {
		return true, nil
	}
	m.ID += claybot.MessageID("#" + m.Keys[0])
	known = false
	err = c.ask(askKeys(m.ID, &stored, &known))
	return known, err
}

// askKeys finds the keys with which a message was posted. The row keeps them for
// good, the keys table does not.
func askKeys(id claybot.MessageID, keys *[]string, known *bool) Ask {
	return Ask{Query: "SELECT body, crc FROM messages WHERE id = ?", Args: []any{id}, Row: once(known, func(r Row) error {
		m, err := decodeMessage(r, 0)
		if err != nil {
			return nil // a damaged message is still a known one
		}
		*keys = m.Keys
		return nil
	})}
}

// insertMessage adds m as the agent's next message. It waits unless it is
// skipped or belongs to a run.
func insertMessage(c *Conn, a *inboxRow, m claybot.AgentMessage, at int64, skipped string, run claybot.RunID) error {
	body, crc, err := encode(m)
	if err != nil {
		return err
	}
	awaited, err := awaitedColumn(m)
	if err != nil {
		return err
	}
	reserved := reservedBy(m)
	if err := checkReserved(c, reserved); err != nil {
		return err
	}
	a.n++
	err = c.do(`INSERT INTO messages (id, agent, n, type, at, album, run, skipped, silent, awaited, reserved, body, crc)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		m.ID, a.id, a.n, m.Type, at, text(m.Context.GroupID), text(string(run)), text(skipped), silent(m), awaited, text(string(reserved)), body, crc)
	if err != nil {
		return err
	}
	if skipped != "" && reserved != "" {
		if err := cancelReserved(c, a.id, reserved, m.ID, skipped); err != nil {
			return err
		}
	}
	if m.Type == claybot.MessageUser {
		a.lastUserAt, a.lastUser = max(a.lastUserAt, at), m.ID
	}
	for _, key := range m.Keys {
		if err := c.do("INSERT INTO keys (key, at, message) VALUES (?, ?, ?) ON CONFLICT (key) DO NOTHING", key, at, m.ID); err != nil {
			return err
		}
	}
	if skipped == "" && run == "" {
		a.arrive(at, silent(m))
		c.tally[countWaiting]++
	}
	return nil
}

// resetInbox cancels the unfinished run and drops earlier user messages.
func resetInbox(c *Conn, a *inboxRow, at int64) (done storage.Posted, err error) {
	if a.run != "" {
		if err := askCancel(c, a, "reset", at); err != nil {
			return done, err
		}
		done.Canceled = a.run
	}
	done.Dropped, err = dropWaiting(c, a, skippedReset, func(_ claybot.MessageID, t claybot.MessageType) bool {
		return t == claybot.MessageUser || t == claybot.MessageCommand || t == claybot.MessageReset || t == claybot.MessageCompact
	})
	return done, err
}

// askCancel marks the unfinished run as to be canceled, and wakes it if it is
// paused. A reset overrides a stop; otherwise the first request wins.
func askCancel(c *Conn, a *inboxRow, by string, at int64) error {
	a.rouse(at)
	c.journal.notification.Cancel = append(c.journal.notification.Cancel, storage.CancelRequest{Agent: a.id, Run: a.run, By: by})
	return c.do("UPDATE runs SET cancel = ?1 WHERE id = ?2 AND (cancel IS NULL OR ?1 = 'reset')", by, a.run)
}

// holdAlbum delays the agent while more parts of m's album may arrive.
func holdAlbum(c *Conn, a *inboxRow, m claybot.AgentMessage, at int64) error {
	album := m.Context.GroupID
	if album == "" {
		return nil
	}
	first := at
	_, err := c.first(`SELECT min(at) FROM messages INDEXED BY messages_waiting WHERE agent = ? AND run IS NULL AND skipped IS NULL AND album = ?`,
		func(r Row) error { first = r.Int(0); return nil }, a.id, album)
	if err != nil {
		return err
	}
	a.holdAt = max(a.holdAt, min(at+albumQuiet.Milliseconds(), first+albumMax.Milliseconds()))
	return nil
}

// dropWaiting ends the pending messages that which selects, nil for all, and
// returns them in order. The caller saves a.
func dropWaiting(c *Conn, a *inboxRow, reason string, which func(claybot.MessageID, claybot.MessageType) bool) ([]claybot.MessageID, error) {
	var dropped []claybot.MessageID
	err := c.each("SELECT id, type FROM messages INDEXED BY messages_waiting WHERE agent = ? AND run IS NULL AND skipped IS NULL ORDER BY n", func(r Row) error {
		if id := claybot.MessageID(r.Str(0)); which == nil || which(id, claybot.MessageType(r.Str(1))) {
			dropped = append(dropped, id)
		}
		return nil
	}, a.id)
	if err != nil {
		return nil, err
	}
	for _, id := range dropped {
		if err := skipMessage(c, a, id, reason); err != nil {
			return nil, err
		}
	}
	return dropped, reduceWaiting(c, a, len(dropped))
}

// skipMessage ends one pending message of a. A run that waits for it is answered
// when a is saved; the run whose id it reserved is canceled.
func skipMessage(c *Conn, a *inboxRow, id claybot.MessageID, reason string) error {
	var reserved claybot.RunID
	_, err := c.first("SELECT awaited, reserved FROM messages WHERE id = ? AND (awaited IS NOT NULL OR reserved IS NOT NULL)", func(r Row) error {
		reserved = claybot.RunID(r.Str(1))
		var w claybot.Awaited
		if !r.Null(0) && unmarshal(r.Str(0), &w) == nil { // unreadable: the waiting run is unknown
			a.refuse(w, reason)
		}
		return nil
	}, id)
	if err != nil {
		return err
	}
	if err := c.do("UPDATE messages SET skipped = ? WHERE id = ?", reason, id); err != nil || reserved == "" {
		return err
	}
	return cancelReserved(c, a.id, reserved, id, reason)
}

// Drop implements storage.Inbox. An unknown agent has nothing to drop.
func (db inbox) Drop(ctx context.Context, agent claybot.AgentID, reason string, ids ...claybot.MessageID) ([]claybot.MessageID, error) {
	dropped, err := write(ctx, db, func(c *Conn) ([]claybot.MessageID, error) {
		a, err := loadInbox(c, agent)
		if err != nil {
			return nil, ignoreNotFound(err)
		}
		var which func(claybot.MessageID, claybot.MessageType) bool
		if len(ids) > 0 {
			which = func(id claybot.MessageID, _ claybot.MessageType) bool { return slices.Contains(ids, id) }
		}
		dropped, err := dropWaiting(c, a, reason, which)
		if err != nil || len(dropped) == 0 {
			return nil, err
		}
		a.wake()
		return dropped, saveInbox(c, a)
	})
	return result(dropped, err, "drop messages of agent %s", agent)
}

// rescheduleChunk is how many agents one transaction reschedules, so that
// posting goes on meanwhile.
const rescheduleChunk = 200

// A target is an agent with waiting messages.
type target struct {
	id         claybot.AgentID
	descriptor claybot.Descriptor
}

// Reschedule implements storage.Inbox. It is not one transaction: each agent is
// moved on its own, and a second call changes nothing.
func (db inbox) Reschedule(ctx context.Context, agent claybot.AgentID, wait func(claybot.AgentID, claybot.Descriptor) storage.Wait) error {
	targets, err := db.waitingAgents(ctx, agent)
	if err != nil {
		return fmt.Errorf("reschedule: %w", err)
	}
	for chunk := range slices.Chunk(targets, rescheduleChunk) {
		waits := make([]storage.Wait, len(chunk))
		for i, t := range chunk {
			waits[i] = wait(t.id, t.descriptor) // outside the transaction, because it calls the caller's code
		}
		err := db.update(ctx, func(c *Conn) error {
			for i, t := range chunk {
				if err := reschedule(c, t.id, waits[i]); err != nil {
					return fmt.Errorf("agent %s: %w", t.id, err)
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("reschedule: %w", err)
		}
	}
	return nil
}

func reschedule(c *Conn, id claybot.AgentID, w storage.Wait) error {
	a, err := loadInbox(c, id)
	if err != nil {
		return ignoreNotFound(err)
	}
	due := a.due(w, c.now())
	if due == a.dueAt {
		return nil
	}
	a.dueAt = due
	a.wake()
	return saveInbox(c, a)
}

// waitingAgents lists the agents with waiting messages, or the one named if it
// is such.
func (db inbox) waitingAgents(ctx context.Context, agent claybot.AgentID) (targets []target, err error) {
	q, args := `SELECT id, descriptor FROM agents WHERE id IN
		(SELECT DISTINCT agent FROM messages INDEXED BY messages_waiting WHERE run IS NULL AND skipped IS NULL)`, []any(nil)
	if agent != "" {
		q, args = "SELECT id, descriptor FROM agents WHERE id = ? AND waiting > 0", []any{agent}
	}
	err = db.read(ctx, func(c *Conn) error {
		return c.each(q, func(r Row) error {
			t := target{id: claybot.AgentID(r.Str(0))}
			if err := unmarshal(r.Str(1), &t.descriptor); err != nil {
				return fmt.Errorf("agent %s: %w", t.id, err)
			}
			targets = append(targets, t)
			return nil
		}, args...)
	})
	return targets, err
}

package sqlite

import (
	"context"
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

// errNoID refuses what could not be told from its repeats.
var errNoID = errors.New("it has no id")

// Post implements storage.Inbox. An agent that is not in the index is refused
// with storage.ErrNotFound.
func (db *DB) Post(ctx context.Context, p storage.Posting) (storage.Posted, error) {
	posted, err := write(ctx, db, func(c *conn) (storage.Posted, error) { return c.post(p) })
	if err != nil {
		return storage.Posted{}, fmt.Errorf("post %s: %w", p.Message.ID, err)
	}
	if !posted.Added {
		db.duplicates.Add(1)
	}
	return posted, nil
}

func (c *conn) post(p storage.Posting) (storage.Posted, error) {
	var done storage.Posted
	m := p.Message
	if m.ID == "" {
		return done, errNoID
	}
	if repeat, err := c.name(&m); err != nil || repeat {
		return done, err
	}
	a, err := c.loadInbox(p.To)
	if err != nil {
		return done, err
	}
	at := now()
	if m.At == 0 {
		m.At = claybot.Time(at)
	}
	replies := p.Replies
	switch {
	case p.Skip != "":
		done.Skipped = p.Skip
	case m.Type == claybot.MessageCancel:
		done.Skipped = skippedCommand
		if a.run == "" {
			replies = p.IfIdle
		} else {
			done.Canceled, err = a.run, c.askCancel(a.run, "user")
		}
	case m.Type == claybot.MessageCommand:
		done.Skipped = skippedCommand
	case m.Type == claybot.MessageReset:
		done, err = c.reset(a)
	case p.MaxWaiting > 0 && a.waiting >= int64(p.MaxWaiting):
		done.Skipped = skippedInboxFull
	}
	if err != nil {
		return done, err
	}
	done.Added = true
	if err := c.insertMessage(a, m, at, done.Skipped); err != nil {
		return done, err
	}
	if done.Skipped == "" {
		if m.Type == claybot.MessageReset {
			a.urgentN = a.n
		}
		if err := c.holdAlbum(a, m, at); err != nil {
			return done, err
		}
		a.dueAt = a.due(p.Wait)
		a.wake()
	}
	if err := c.saveInbox(a); err != nil {
		return done, err
	}
	done.Outbox, err = c.enqueue(at, string(m.ID), replies)
	return done, err
}

// name settles under which id m is stored, or that it is a repeat.
func (c *conn) name(m *claybot.Message) (repeat bool, err error) {
	for _, key := range m.Keys {
		known, err := c.first("SELECT 1 FROM keys WHERE key = ?", func(row) error { return nil }, key)
		if err != nil || known {
			return known, err
		}
	}
	stored, known, err := c.keysOf(m.ID)
	if err != nil || !known {
		return false, err
	}
	if len(m.Keys) == 0 || len(stored) == 0 || slices.ContainsFunc(m.Keys, func(k string) bool { return slices.Contains(stored, k) }) {
		return true, nil
	}
	m.ID += claybot.MessageID("#" + m.Keys[0])
	_, known, err = c.keysOf(m.ID)
	return known, err
}

// keysOf returns the keys with which a message was posted. The row keeps them
// for good, the keys table does not.
func (c *conn) keysOf(id claybot.MessageID) (keys []string, known bool, err error) {
	known, err = c.first("SELECT body, crc FROM messages WHERE id = ?", func(r row) error {
		m, err := decodeMessage(r, 0)
		if err != nil {
			return nil // a damaged message is still a known one
		}
		keys = m.Keys
		return nil
	}, id)
	return keys, known, err
}

// insertMessage adds m as the agent's next message.
func (c *conn) insertMessage(a *inboxRow, m claybot.Message, at int64, skipped string) error {
	body, crc, err := encode(m)
	if err != nil {
		return err
	}
	a.n++
	_, err = c.exec("INSERT INTO messages (id, agent, n, type, at, album, skipped, body, crc) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
		m.ID, a.id, a.n, m.Type, at, text(m.Context.GroupID), text(skipped), body, crc)
	if err != nil {
		return err
	}
	for _, key := range m.Keys {
		if _, err := c.exec("INSERT INTO keys (key, at) VALUES (?, ?) ON CONFLICT (key) DO NOTHING", key, at); err != nil {
			return err
		}
	}
	if skipped == "" {
		a.arrive(at)
		c.tally[countWaiting]++
	}
	if m.Type == claybot.MessageUser {
		a.lastUserAt = max(a.lastUserAt, at)
	}
	return nil
}

// reset cancels the unfinished run and drops what waits.
func (c *conn) reset(a *inboxRow) (done storage.Posted, err error) {
	if a.run != "" {
		if err := c.askCancel(a.run, "reset"); err != nil {
			return done, err
		}
		done.Canceled = a.run
	}
	done.Dropped, err = c.drop(a, skippedReset, nil)
	return done, err
}

// askCancel marks an unfinished run. A reset outweighs a user's stop, as it is
// what its waiters are told.
func (c *conn) askCancel(id claybot.RunID, by string) error {
	_, err := c.exec("UPDATE runs SET cancel = ?1 WHERE id = ?2 AND (cancel IS NULL OR ?1 = 'reset')", by, id)
	return err
}

// holdAlbum keeps the agent from being due while parts of m's album may come.
func (c *conn) holdAlbum(a *inboxRow, m claybot.Message, at int64) error {
	album := m.Context.GroupID
	if album == "" {
		return nil
	}
	first := at
	_, err := c.first(`SELECT min(at) FROM messages WHERE agent = ? AND run IS NULL AND skipped IS NULL AND album = ?`,
		func(r row) error { first = r.int(0); return nil }, a.id, album)
	if err != nil {
		return err
	}
	a.holdAt = max(a.holdAt, min(at+albumQuiet.Milliseconds(), first+albumMax.Milliseconds()))
	return nil
}

// drop ends waiting messages, all when ids is nil, and returns them in order.
// The caller saves a.
func (c *conn) drop(a *inboxRow, reason string, ids []claybot.MessageID) ([]claybot.MessageID, error) {
	var dropped []claybot.MessageID
	err := c.each("SELECT id FROM messages WHERE agent = ? AND run IS NULL AND skipped IS NULL ORDER BY n", func(r row) error {
		if id := claybot.MessageID(r.str(0)); ids == nil || slices.Contains(ids, id) {
			dropped = append(dropped, id)
		}
		return nil
	}, a.id)
	if err != nil {
		return nil, err
	}
	for _, id := range dropped {
		if err := c.skip(id, reason); err != nil {
			return nil, err
		}
	}
	return dropped, c.left(a, len(dropped))
}

// skip ends one waiting message.
func (c *conn) skip(id claybot.MessageID, reason string) error {
	_, err := c.exec("UPDATE messages SET skipped = ? WHERE id = ?", reason, id)
	return err
}

// Drop implements storage.Inbox. An unknown agent has nothing to drop.
func (db *DB) Drop(ctx context.Context, agent claybot.AgentID, reason string, ids ...claybot.MessageID) ([]claybot.MessageID, error) {
	dropped, err := write(ctx, db, func(c *conn) ([]claybot.MessageID, error) {
		a, err := c.loadInbox(agent)
		if err != nil {
			return nil, ignoreNotFound(err)
		}
		dropped, err := c.drop(a, reason, ids)
		if err != nil || len(dropped) == 0 {
			return nil, err
		}
		a.wake()
		return dropped, c.saveInbox(a)
	})
	if err != nil {
		return nil, fmt.Errorf("drop messages of agent %s: %w", agent, err)
	}
	return dropped, nil
}

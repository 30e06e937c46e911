package relational

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// Receipt implements storage.Receipts. A message whose stored text is damaged is
// reported with an error that wraps storage.ErrDamaged. Of a run that was
// pruned only the id is known.
func (db inbox) Receipt(ctx context.Context, id claybot.MessageID) (storage.Receipt, error) {
	rec, err := db.receipt(ctx, "SELECT "+receiptColumns+" FROM messages WHERE id = ?", string(id))
	if errors.Is(err, storage.ErrNotFound) {
		err = db.read(ctx, func(c *Conn) (err error) { rec, err = parkedReceipt(c, string(id)); return err })
	}
	return result(rec, err, "receipt of %s", id)
}

func (db inbox) LastReceipt(ctx context.Context, agent claybot.AgentID) (storage.Receipt, error) {
	rec, err := db.receipt(ctx, "SELECT "+receiptColumns+` FROM messages INDEXED BY messages_user
		WHERE agent = ? AND type = 'user' ORDER BY n DESC LIMIT 1`, string(agent))
	return result(rec, err, "receipt of the last message of agent %s", agent)
}

func (db inbox) Typed(ctx context.Context, agent claybot.AgentID, after int64, limit int) (ids []claybot.MessageID, last int64, err error) {
	last = after
	err = db.read(ctx, func(c *Conn) error {
		return c.each("SELECT id, n FROM messages WHERE agent = ? AND n > ? AND "+ofPerson+" ORDER BY n DESC LIMIT 0+?", func(r Row) error {
			ids, last = append(ids, claybot.MessageID(r.Str(0))), max(last, r.Int(1))
			return nil
		}, agent, after, limit)
	})
	slices.Reverse(ids)
	ids, err = result(ids, err, "messages of people to agent %s", agent)
	return ids, last, err
}

// receiptColumns are those of a message that receipt reads.
const receiptColumns = "id, agent, run, skipped, body, crc, at, n"

// firstBefore is how many of the messages before one a receipt names.
const firstBefore = 10

// queueBefore tells what the message n of an agent waits for.
func queueBefore(c *Conn, rec *storage.Receipt, n int64) error {
	_, err := c.first("SELECT due_at, run FROM agents WHERE id = ?", func(r Row) error {
		rec.Due, rec.Busy = claybot.Time(r.Int(0)), claybot.RunID(r.Str(1))
		return nil
	}, rec.Agent)
	if err != nil {
		return err
	}
	if rec.Busy != "" {
		run, err := loadRun(c, rec.Busy)
		if err != nil && !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, storage.ErrDamaged) {
			return err // else it is not known what that run waits for
		}
		if run.State == claybot.RunAwaiting && run.Cancel == "" {
			rec.Paused = run.Awaiting
		}
	}
	return c.each("SELECT id FROM messages INDEXED BY messages_waiting WHERE agent = ? AND run IS NULL AND skipped IS NULL AND n < ? ORDER BY n", func(r Row) error {
		if rec.Ahead++; rec.Ahead <= firstBefore {
			rec.Before = append(rec.Before, claybot.MessageID(r.Str(0)))
		}
		return nil
	}, rec.Agent, n)
}

// receipt finishes what q finds: one row of receiptColumns.
func (db inbox) receipt(ctx context.Context, q, arg string) (storage.Receipt, error) {
	var rec storage.Receipt
	err := db.read(ctx, func(c *Conn) error {
		var run claybot.RunID
		var origin string
		var n int64
		err := need(c.first(q, func(r Row) (err error) {
			origin, rec.Agent, run, rec.Skipped = r.Str(0), claybot.AgentID(r.Str(1)), claybot.RunID(r.Str(2)), r.Str(3)
			rec.Stored, n = claybot.Time(r.Int(6)), r.Int(7)
			rec.Message, err = decodeMessage(r, 4)
			return err
		}, arg))
		if err != nil {
			return err
		}
		if run == "" && rec.Skipped == "" {
			if err := queueBefore(c, &rec, n); err != nil {
				return err
			}
		}
		if run != "" {
			loaded, err := loadRun(c, run)
			if errors.Is(err, storage.ErrNotFound) { // it ended long ago, see Prune
				loaded, err = claybot.Run{ID: run, Agent: rec.Agent}, nil
			}
			if err != nil {
				return err
			}
			rec.Run, origin = &loaded, string(run)
		}
		return c.each("SELECT "+outgoingColumns+" FROM outbox WHERE origin = ? ORDER BY n", func(r Row) error {
			o, err := decodeOutgoing(r)
			if err != nil {
				o.Cause = causeDamaged // its fate is known all the same
			}
			rec.Replies = append(rec.Replies, o)
			return nil
		}, origin)
	})
	return rec, err
}

// isNote is true for the message that an edit became, see storage.Posting.Late.
const isNote = `messages.type = 'system' AND messages.silent = 1 AND messages.body LIKE '%"amends":"%'`

// ofPerson is true for what a person has written, changes of their messages included.
const ofPerson = "(type NOT IN ('system', 'answer') OR " + isNote + ")"

// Transcript implements storage.OutboxReader. Damaged entries are left out.
func (db outbox) Transcript(ctx context.Context, agent claybot.AgentID, dest string, limit int) ([]storage.Entry, error) {
	// A line is an entry and when it came to be.
	type line struct {
		at int64
		storage.Entry
	}
	var said, sent []line
	err := db.read(ctx, func(c *Conn) error {
		err := c.each(`SELECT body, crc, at, id, skipped FROM messages WHERE agent = ?
			AND `+ofPerson+` ORDER BY n DESC LIMIT 0+?`, func(r Row) error {
			m, err := decodeMessage(r, 0)
			if err != nil {
				db.log.Error("damaged message", "message", r.Str(3), "err", err)
				return nil
			}
			said = append(said, line{r.Int(2), storage.Entry{Message: &m, Skipped: r.Str(4)}})
			return nil
		}, agent, limit)
		if err != nil {
			return err
		}
		return c.each("SELECT "+outgoingColumns+", at FROM outbox WHERE dest = ? ORDER BY n DESC LIMIT 0+?", func(r Row) error {
			o, err := decodeOutgoing(r)
			if err != nil {
				db.log.Error("damaged outgoing message", "outgoing", o.ID, "err", err)
				return nil
			}
			sent = append(sent, line{r.Int(10), storage.Entry{Outgoing: &o}})
			return nil
		}, dest, limit)
	})
	if err != nil {
		return nil, fmt.Errorf("transcript of agent %s: %w", agent, err)
	}
	lines := append(said, sent...)
	slices.Reverse(lines) // now each kind is in its own order, and what was sent stands first
	slices.SortStableFunc(lines, func(a, b line) int {
		switch {
		case a.at != b.at:
			return int(a.at - b.at)
		case a.Message != nil && b.Outgoing != nil:
			return -1 // an answer follows what it answers
		case a.Outgoing != nil && b.Message != nil:
			return 1
		}
		return 0
	})
	entries := make([]storage.Entry, 0, limit)
	for _, l := range lines[max(0, len(lines)-limit):] {
		entries = append(entries, l.Entry)
	}
	return entries, nil
}

const (
	maxFound = 20 // messages that one reference may name
	// maxSplits bounds at how many slashes a receipt may begin: names of
	// channels and receipts may have some of their own.
	maxSplits = 8
)

// FindMessages implements storage.Receipts. Of more than 20 it returns the newest.
func (db inbox) FindMessages(ctx context.Context, ref string) ([]claybot.MessageID, error) {
	var found []claybot.MessageID
	err := db.read(ctx, func(c *Conn) error {
		candidates, err := findCandidates(c, ref)
		if err != nil || len(candidates) == 0 {
			return err
		}
		list, err := json.Marshal(candidates)
		if err != nil {
			return err
		}
		add := func(r Row) error { found = append(found, claybot.MessageID(r.Str(0))); return nil }
		err = c.each(`SELECT id FROM parked p WHERE id IN (SELECT value FROM json_each(?))
			AND NOT EXISTS (SELECT 1 FROM messages WHERE id = p.id) ORDER BY n DESC LIMIT 0+?`, add, list, maxFound)
		if err != nil || len(found) == maxFound {
			return err
		}
		return c.each("SELECT id FROM messages WHERE id IN (SELECT value FROM json_each(?)) ORDER BY rowid DESC LIMIT 0+?", add, list, maxFound-len(found))
	})
	if err != nil {
		return nil, fmt.Errorf("find messages: %w", err)
	}
	slices.Reverse(found)
	return found, nil
}

// findCandidates lists ids of messages that ref may name, known or not.
func findCandidates(c *Conn, ref string) ([]claybot.MessageID, error) {
	if ref == "" {
		return nil, nil
	}
	ids := []claybot.MessageID{claybot.MessageID(ref)}
	err := c.each(`SELECT message FROM keys WHERE key = ?1 AND message IS NOT NULL
		UNION ALL SELECT id FROM messages WHERE reserved = ?1`,
		func(r Row) error { ids = append(ids, claybot.MessageID(r.Str(0))); return nil }, ref)
	if err != nil {
		return nil, err
	}
	taken, err := messagesTakenBy(c, claybot.RunID(ref))
	if err != nil {
		return nil, err
	}
	ids = append(ids, taken...)
	answered, err := messagesAnsweredBy(c, "SELECT origin, body, crc FROM outbox WHERE id = ?", ref)
	if err != nil {
		return nil, err
	}
	ids = append(ids, answered...)
	connector, rest, _ := strings.Cut(ref, "/")
	for at := 0; at < maxSplits; at++ {
		i := nthSlash(rest, at)
		if i < 0 {
			break
		}
		dest := claybot.Route{Connector: connector, ChannelID: rest[:i]}.Dest()
		answered, err := messagesAnsweredBy(c, "SELECT origin, body, crc FROM outbox INDEXED BY outbox_dest WHERE dest = ? AND receipt = ?", dest, rest[i+1:])
		if err != nil {
			return nil, err
		}
		ids = append(ids, answered...)
	}
	return ids, nil
}

// nthSlash is where the slash n, from 0, stands in s; -1 when there are fewer.
func nthSlash(s string, n int) int {
	at := -1
	for range n + 1 {
		i := strings.IndexByte(s[at+1:], '/')
		if i < 0 {
			return -1
		}
		at += i + 1
	}
	return at
}

// messagesTakenBy lists the messages of a run; none when it is unknown or damaged.
func messagesTakenBy(c *Conn, id claybot.RunID) ([]claybot.MessageID, error) {
	run, err := loadRun(c, id)
	if errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrDamaged) {
		return run.Messages, nil
	}
	return run.Messages, err
}

// messagesAnsweredBy lists the messages that outgoing ones answer; q selects origin,
// body and crc of these.
func messagesAnsweredBy(c *Conn, q string, args ...any) ([]claybot.MessageID, error) {
	var ids []claybot.MessageID
	var origins []string
	err := c.each(q, func(r Row) error {
		var o claybot.Outgoing
		if decode(r.Str(1), r.Int(2), &o) == nil && o.Message != "" {
			ids = append(ids, o.Message)
		} else if !r.Null(0) {
			origins = append(origins, r.Str(0))
		}
		return nil
	}, args...)
	if err != nil {
		return nil, err
	}
	for _, origin := range origins { // of a run or of a message
		taken, err := messagesTakenBy(c, claybot.RunID(origin))
		if err != nil {
			return nil, err
		}
		ids = append(append(ids, claybot.MessageID(origin)), taken...)
	}
	return ids, nil
}

// Waiting implements storage.Receipts. Damaged messages are left out; they are
// ended when the agent is next acquired.
func (db inbox) Waiting(ctx context.Context, agent claybot.AgentID, limit int) ([]claybot.AgentMessage, error) {
	var waiting []claybot.AgentMessage
	err := db.read(ctx, func(c *Conn) error {
		return c.each(`SELECT body, crc FROM messages INDEXED BY messages_waiting WHERE agent = ? AND run IS NULL AND skipped IS NULL
			ORDER BY n LIMIT 0+?`, func(r Row) error {
			if m, err := decodeMessage(r, 0); err == nil {
				waiting = append(waiting, m)
			}
			return nil
		}, agent, limit)
	})
	return result(waiting, err, "messages that wait for agent %s", agent)
}

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

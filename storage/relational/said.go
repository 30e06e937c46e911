package relational

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// saidKey returns the beginning of the keys of a chat, or of a thread of it: its parts have no slash.
func saidKey(chat storage.Chat, thread ...string) string {
	key := storage.CheckpointSaid + url.PathEscape(chat.Connector) + "/" + url.PathEscape(chat.Channel) + "/"
	for _, t := range thread {
		key += url.PathEscape(t) + "/"
	}
	return key
}

// afterAll returns the first key after all that begin with prefix, which ends with a slash.
func afterAll(prefix string) string { return strings.TrimSuffix(prefix, "/") + "0" }

// sortable returns the id of a message as a part of a key: numbers compare as such.
func sortable(id string) string {
	id = url.PathEscape(id)
	return strings.Repeat("0", max(0, idDigits-len(id))) + id
}

// idDigits is the length of the longest number.
const idDigits = 19

// KeepSaid implements storage.Chatter.
func (db access) KeepSaid(ctx context.Context, most int, said ...storage.SaidIn) error {
	threads := make(map[string]bool)
	err := db.update(ctx, func(c *Conn) error {
		for _, m := range said {
			thread, at := saidKey(m.Chat, m.Thread), fmt.Sprintf("%013d", m.At)
			b, err := json.Marshal(m.Said)
			if err != nil {
				return err
			}
			q := "INSERT INTO marks (value, key) VALUES (?, ?) ON CONFLICT (key) DO NOTHING"
			if m.Edit {
				q = "UPDATE marks SET value = ? WHERE key = ?"
			} else {
				threads[thread] = true
			}
			if err := c.do(q, at+string(b), thread+at+"/"+sortable(m.ID)); err != nil {
				return err
			}
		}
		for _, thread := range slices.Sorted(maps.Keys(threads)) {
			err := c.do(`DELETE FROM marks WHERE key >= ?1 AND key < (SELECT key FROM marks
				WHERE key >= ?1 AND key < ?2 ORDER BY key DESC LIMIT 1 OFFSET 0+?3)`, thread, afterAll(thread), most-1)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return failed(err, "keep %d messages of groups", len(said))
}

// SaidIn implements storage.Chatter. What cannot be read is left out.
func (db access) SaidIn(ctx context.Context, chat storage.Chat, thread string) (all []claybot.Said, err error) {
	prefix := saidKey(chat, thread)
	oldest := fmt.Sprintf("%s%013d", prefix, claybot.At(time.UnixMilli(db.now()).Add(-storage.KeepSaid)))
	err = db.read(ctx, func(c *Conn) error {
		all = nil
		return c.each("SELECT value FROM marks WHERE key >= ?1 AND key < ?2 ORDER BY key", func(r Row) error {
			var m claybot.Said
			if v := r.Str(0); len(v) > 13 && json.Unmarshal([]byte(v[13:]), &m) == nil {
				all = append(all, m)
			}
			return nil
		}, oldest, afterAll(prefix))
	})
	return result(all, err, "read what was said in %s:%s", chat.Connector, chat.Channel)
}

// SaidChats implements storage.Chatter. It skips from chat to chat.
func (db access) SaidChats(ctx context.Context) (all []storage.Chat, err error) {
	err = db.read(ctx, func(c *Conn) error {
		all = nil
		for from := storage.CheckpointSaid; ; {
			var key string
			_, err := c.first("SELECT key FROM marks WHERE key >= ?1 AND key < ?2 ORDER BY key LIMIT 1", func(r Row) error {
				key = r.Str(0)
				return nil
			}, from, afterAll(storage.CheckpointSaid))
			if err != nil || key == "" {
				return err
			}
			part := strings.SplitN(key, "/", 4)
			if len(part) < 4 {
				from = key + "0" // not one of ours
				continue
			}
			connector, err1 := url.PathUnescape(part[1])
			channel, err2 := url.PathUnescape(part[2])
			if chat := (storage.Chat{Connector: connector, Channel: channel}); err1 == nil && err2 == nil && !slices.Contains(all, chat) {
				all = append(all, chat)
			}
			from = afterAll(strings.Join(part[:3], "/") + "/")
		}
	})
	return result(all, err, "list the groups of which messages are kept")
}

// ForgetSaid implements storage.Chatter.
func (db access) ForgetSaid(ctx context.Context, chat storage.Chat, upto claybot.Time) error {
	prefix, q := saidKey(chat), "DELETE FROM marks WHERE key >= ? AND key < ?"
	args := []any{prefix, afterAll(prefix)}
	if upto > 0 {
		q, args = q+" AND value < ?", append(args, fmt.Sprintf("%013d", upto+1))
	}
	err := db.update(ctx, func(c *Conn) error { return c.do(q, args...) })
	return failed(err, "remove what was said in %s:%s", chat.Connector, chat.Channel)
}

// MoveSaid implements storage.Chatter.
func (db access) MoveSaid(ctx context.Context, connector, from, to string) error {
	was, is := saidKey(storage.Chat{Connector: connector, Channel: from}), saidKey(storage.Chat{Connector: connector, Channel: to})
	err := db.update(ctx, func(c *Conn) error {
		// The group counts its messages anew: what was said before sorts before all of its numbers.
		err := c.do(`INSERT INTO marks (key, value) SELECT ?1 || substr(key, 0+?2, length(key) - (0+?3)) || '!' || substr(key, length(key) - 18), value
			FROM marks WHERE key >= ?4 AND key < ?5 ON CONFLICT (key) DO NOTHING`, is, len(was)+1, len(was)+idDigits, was, afterAll(was))
		if err != nil {
			return err
		}
		return c.do("DELETE FROM marks WHERE key >= ? AND key < ?", was, afterAll(was))
	})
	return failed(err, "move what was said in %s:%s", connector, from)
}

// pruneSaid removes some of what was said before t.
func pruneSaid(c *Conn, t claybot.Time) (int, error) {
	n, err := c.exec(`DELETE FROM marks WHERE key IN (SELECT key FROM marks
		WHERE key >= ?1 AND key < ?2 AND value < ?3 LIMIT 0+?4)`,
		storage.CheckpointSaid, afterAll(storage.CheckpointSaid), fmt.Sprintf("%013d", t), 10*pruneChunk)
	return int(n), err
}

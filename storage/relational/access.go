package relational

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

func (db access) Grants(ctx context.Context) ([]storage.Grant, error) {
	grants, err := selectAll(ctx, db, func(r Row) storage.Grant {
		return storage.Grant{Connector: r.Str(0), Subject: r.Str(1), Name: r.Str(2), At: claybot.Time(r.Int(3))}
	}, "SELECT connector, subject, name, at FROM grants ORDER BY at, connector, subject")
	return result(grants, err, "list grants")
}

// Grant implements storage.Access. A repeat keeps the first grant.
func (db access) Grant(ctx context.Context, g storage.Grant, notice ...claybot.Outgoing) ([]claybot.Outgoing, error) {
	out, err := write(ctx, db, func(c *Conn) ([]claybot.Outgoing, error) {
		out, err := enqueue(c, c.now(), "", notice)
		if err != nil {
			return nil, err
		}
		return out, saveGrant(c, g)
	})
	return result(out, err, "grant %s:%s", g.Connector, g.Subject)
}

// saveGrant stores a grant in the transaction, as its last change.
func saveGrant(c *Conn, g storage.Grant) error {
	if g.Subject == "" {
		return &storage.Fault{Class: storage.ClassMessage, Err: errors.New("access needs the id of a user or a channel")}
	}
	if g.Invitation != "" {
		n, err := c.exec(`DELETE FROM pairings WHERE code = ? AND connector = ? AND "user" = ''`, g.Invitation, g.Connector)
		if err := need(n > 0, err); err != nil {
			return err
		}
	}
	if g.At == 0 {
		g.At = claybot.Now()
	}
	added, err := c.exec("INSERT INTO grants (connector, subject, name, at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
		g.Connector, g.Subject, g.Name, g.At)
	if err != nil {
		return err
	}
	err = c.do(`DELETE FROM pairings WHERE connector = ?1 AND ("user" = ?2 OR channel = ?2)`, g.Connector, g.Subject)
	if err == nil && g.Anew && added > 0 {
		_, err = endRole(c, g.Connector+"/"+g.Subject, "new access")
	}
	if err != nil {
		return err
	}
	return changedBy(c, versionAccess)
}

func (db access) Revoke(ctx context.Context, connector, subject string) error {
	err := db.update(ctx, func(c *Conn) error {
		n, err := c.exec("DELETE FROM grants WHERE connector = ? AND subject = ?", connector, subject)
		if err != nil {
			return err
		}
		ended, err := endRole(c, connector+"/"+subject, "revoked access")
		if err := need(n > 0 || ended, err); err != nil {
			return err
		}
		return changedBy(c, versionAccess)
	})
	return failed(err, "revoke %s:%s", connector, subject)
}

func (db access) Pairings(ctx context.Context) ([]storage.Pairing, error) {
	pairings, err := selectAll(ctx, db, func(r Row) storage.Pairing {
		return storage.Pairing{
			Code: r.Str(0), Connector: r.Str(1), ChannelID: r.Str(2), UserID: r.Str(3),
			Name: r.Str(4), At: claybot.Time(r.Int(5)), Expires: claybot.Time(r.Int(6)),
		}
	}, "SELECT code, connector, channel, \"user\", name, at, expires FROM pairings ORDER BY at, rowid")
	return result(pairings, err, "list pairings")
}

// SavePairing implements storage.Access. It refuses a code of another pairing
// request.
func (db access) SavePairing(ctx context.Context, p storage.Pairing, reply ...claybot.Outgoing) ([]claybot.Outgoing, error) {
	out, err := write(ctx, db, func(c *Conn) ([]claybot.Outgoing, error) {
		err := c.do(`INSERT INTO pairings (code, connector, channel, "user", name, at, expires) VALUES (?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (connector, "user") DO UPDATE SET code = excluded.code, channel = excluded.channel,
			name = excluded.name, at = excluded.at, expires = excluded.expires`,
			p.Code, p.Connector, p.ChannelID, p.UserID, p.Name, p.At, p.Expires)
		if err != nil {
			return nil, err
		}
		return enqueue(c, c.now(), "", reply)
	})
	return result(out, err, "save pairing of %s:%s", p.Connector, p.UserID)
}

func (db access) DropPairing(ctx context.Context, code string, notes ...storage.Checkpoint) error {
	err := db.update(ctx, func(c *Conn) error {
		n, err := c.exec("DELETE FROM pairings WHERE code = ?", code)
		err = need(n > 0, err)
		for _, x := range notes {
			if err == nil {
				err = setCheckpoint(c, x)
			}
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("drop pairing: %w", err) // without the code, which is a secret
	}
	return nil
}

func (db access) Checkpoint(ctx context.Context, key string) (string, error) {
	var value string
	err := db.read(ctx, func(c *Conn) error {
		_, err := c.first("SELECT value FROM marks WHERE key = ?", func(r Row) error { value = r.Str(0); return nil }, key)
		return err
	})
	return result(value, err, "mark %s", key)
}

func (db access) SetCheckpoint(ctx context.Context, key, value string) error {
	err := db.update(ctx, func(c *Conn) error {
		if err := setCheckpoint(c, storage.Checkpoint{Key: key, Value: value}); err != nil {
			return err
		}
		return deadChanged(c, key)
	})
	return failed(err, "set mark %s", key)
}

// setCheckpoint sets one checkpoint in the transaction; the zero Checkpoint is
// ignored.
func setCheckpoint(c *Conn, m storage.Checkpoint) error {
	if m.Key == "" {
		return nil
	}
	if strings.HasPrefix(m.Key, storage.CheckpointVoices) {
		if err := changedBy(c, versionVoices); err != nil {
			return err
		}
	}
	return c.do("INSERT INTO marks (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", m.Key, m.Value)
}

// SetCheckpoints sets several checkpoints in one transaction without a sync: a power
// loss may undo it. An empty value removes a checkpoint.
func (db access) SetCheckpoints(ctx context.Context, values map[string]string) error {
	err := db.updateLightly(ctx, func(c *Conn) error { return setCheckpoints(c, values) })
	return failed(err, "set %d marks", len(values))
}

// setCheckpoints is SetCheckpoints in the transaction.
func setCheckpoints(c *Conn, values map[string]string) error {
	keys := slices.Sorted(maps.Keys(values))
	for _, key := range keys {
		var err error
		if value := values[key]; value == "" {
			err = c.do("DELETE FROM marks WHERE key = ?", key)
		} else {
			err = setCheckpoint(c, storage.Checkpoint{Key: key, Value: value})
		}
		if err != nil {
			return err
		}
	}
	return deadChanged(c, keys...)
}

// AdvanceCheckpoint stores key first: its row is locked from then on, so that calls for the same
// key take turns.
func (db access) AdvanceCheckpoint(ctx context.Context, key string, to int64, values map[string]string) (advanced bool, err error) {
	err = db.update(ctx, func(c *Conn) error {
		n, err := c.exec(`INSERT INTO marks (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value
			WHERE CAST(marks.value AS BIGINT) <= CAST(excluded.value AS BIGINT)`, key, strconv.FormatInt(to, 10))
		if advanced = n > 0; err != nil || !advanced {
			return err
		}
		return setCheckpoints(c, values)
	})
	return advanced, failed(err, "advance mark %s", key)
}

// deadChanged counts a change of dead routes or of the ids of chats, if one of the keys is about
// them. It comes after the changes, as in all transactions.
func deadChanged(c *Conn, keys ...string) error {
	if !slices.ContainsFunc(keys, func(key string) bool {
		return strings.HasPrefix(key, storage.CheckpointDead) || strings.HasPrefix(key, storage.CheckpointMoved)
	}) {
		return nil
	}
	return changedBy(c, versionDead)
}

// ListCheckpoints lists the checkpoints whose keys begin with prefix. It reads no others:
// keys compare by their bytes.
func (db access) ListCheckpoints(ctx context.Context, prefix string) (all []storage.Checkpoint, err error) {
	err = db.read(ctx, func(c *Conn) error {
		return c.each("SELECT key, value FROM marks WHERE key >= ?1 AND key < ?2 ORDER BY key", func(r Row) error {
			all = append(all, storage.Checkpoint{Key: r.Str(0), Value: r.Str(1)})
			return nil
		}, prefix, prefix+string(utf8.MaxRune))
	})
	return result(all, err, "list the marks of %s", prefix)
}

var _ storage.Versions = (*Store)(nil)

// Keys of the checkpoints that count changes.
const (
	versionAccess   = "version/access"
	versionSettings = "version/settings"
	versionVoices   = "version/voices"
	versionDead     = "version/dead routes"
)

// changedBy counts a change in the transaction that makes it. It does nothing in
// a store that only one process uses.
func changedBy(c *Conn, mark string) error {
	if c.dialect.Alone {
		return nil
	}
	return c.do(`INSERT INTO marks (key, value) VALUES (?, '1')
		ON CONFLICT (key) DO UPDATE SET value = CAST(CAST(marks.value AS BIGINT) + 1 AS TEXT)`, mark)
}

func (db members) Versions(ctx context.Context) (v storage.Version, err error) {
	err = db.read(ctx, func(c *Conn) error {
		return c.each("SELECT key, value FROM marks WHERE key IN (?, ?, ?, ?)", func(r Row) error {
			n, err := strconv.ParseInt(r.Str(1), 10, 64)
			switch r.Str(0) {
			case versionAccess:
				v.Access = n
			case versionSettings:
				v.Settings = n
			case versionVoices:
				v.Voices = n
			case versionDead:
				v.DeadRoutes = n
			}
			return err
		}, versionAccess, versionSettings, versionVoices, versionDead)
	})
	return v, failed(err, "versions")
}

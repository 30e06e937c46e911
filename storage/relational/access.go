package relational

import (
	"context"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// Grants implements storage.Access.
func (db access) Grants(ctx context.Context) ([]storage.Grant, error) {
	var grants []storage.Grant
	err := db.read(ctx, func(c *Conn) error {
		return c.each("SELECT connector, subject, name, at FROM grants ORDER BY at, connector, subject", func(r Row) error {
			grants = append(grants, storage.Grant{Connector: r.Str(0), Subject: r.Str(1), Name: r.Str(2), At: claybot.Time(r.Int(3))})
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("list grants: %w", err)
	}
	return grants, nil
}

// Grant implements storage.Access. A repeat keeps the first grant.
func (db access) Grant(ctx context.Context, g storage.Grant) error {
	if g.At == 0 {
		g.At = claybot.Now()
	}
	_, err := write(ctx, db, func(c *Conn) (struct{}, error) {
		err := c.do("INSERT INTO grants (connector, subject, name, at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
			g.Connector, g.Subject, g.Name, g.At)
		if err != nil {
			return struct{}{}, err
		}
		err = c.do(`DELETE FROM pairings WHERE connector = ?1 AND ("user" = ?2 OR channel = ?2)`, g.Connector, g.Subject)
		if err != nil {
			return struct{}{}, err
		}
		return struct{}{}, changedBy(c, versionAccess)
	})
	if err != nil {
		return fmt.Errorf("grant %s:%s: %w", g.Connector, g.Subject, err)
	}
	return nil
}

// Revoke implements storage.Access.
func (db access) Revoke(ctx context.Context, connector, subject string) error {
	_, err := write(ctx, db, func(c *Conn) (struct{}, error) {
		n, err := c.exec("DELETE FROM grants WHERE connector = ? AND subject = ?", connector, subject)
		if err := need(n > 0, err); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, changedBy(c, versionAccess)
	})
	if err != nil {
		return fmt.Errorf("revoke %s:%s: %w", connector, subject, err)
	}
	return nil
}

// Pairings implements storage.Access.
func (db access) Pairings(ctx context.Context) ([]storage.Pairing, error) {
	var pairings []storage.Pairing
	err := db.read(ctx, func(c *Conn) error {
		return c.each("SELECT code, connector, channel, \"user\", name, at, expires FROM pairings ORDER BY at, rowid", func(r Row) error {
			pairings = append(pairings, storage.Pairing{
				Code: r.Str(0), Connector: r.Str(1), ChannelID: r.Str(2), UserID: r.Str(3),
				Name: r.Str(4), At: claybot.Time(r.Int(5)), Expires: claybot.Time(r.Int(6)),
			})
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("list pairings: %w", err)
	}
	return pairings, nil
}

// SavePairing implements storage.Access. A code that someone else has is
// refused.
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
	if err != nil {
		return nil, fmt.Errorf("save pairing of %s:%s: %w", p.Connector, p.UserID, err)
	}
	return out, nil
}

// DropPairing implements storage.Access.
func (db access) DropPairing(ctx context.Context, code string) error {
	if err := db.deleteOne(ctx, "DELETE FROM pairings WHERE code = ?", code); err != nil {
		return fmt.Errorf("drop pairing: %w", err) // without the code: it is a secret of sorts
	}
	return nil
}

// Mark implements storage.Checkpoints.
func (db access) Checkpoint(ctx context.Context, key string) (string, error) {
	var value string
	err := db.read(ctx, func(c *Conn) error {
		_, err := c.first("SELECT value FROM marks WHERE key = ?", func(r Row) error { value = r.Str(0); return nil }, key)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("mark %s: %w", key, err)
	}
	return value, nil
}

// SetMark implements storage.Checkpoints.
func (db access) SetCheckpoint(ctx context.Context, key, value string) error {
	_, err := write(ctx, db, func(c *Conn) (struct{}, error) {
		return struct{}{}, setCheckpoint(c, storage.Checkpoint{Key: key, Value: value})
	})
	if err != nil {
		return fmt.Errorf("set mark %s: %w", key, err)
	}
	return nil
}

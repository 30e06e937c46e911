package relational

import (
	"context"
	"fmt"
	"strconv"

	"github.com/claybot/claybot/storage"
)

var _ storage.Versions = (*Store)(nil)

// The marks that count changes.
const (
	versionAccess   = "version/access"
	versionSettings = "version/settings"
)

// changedBy counts a change, with the transaction that makes it. A store that one
// process uses alone has nobody to tell.
func changedBy(c *Conn, mark string) error {
	if c.dialect.Alone {
		return nil
	}
	err := c.do(`INSERT INTO marks (key, value) VALUES (?, '1')
		ON CONFLICT (key) DO UPDATE SET value = CAST(CAST(marks.value AS BIGINT) + 1 AS TEXT)`, mark)
	return err
}

// Versions implements storage.Versions.
func (db members) Versions(ctx context.Context) (v storage.Version, err error) {
	err = db.read(ctx, func(c *Conn) error {
		return c.each("SELECT key, value FROM marks WHERE key IN (?, ?)", func(r Row) error {
			n, err := strconv.ParseInt(r.Str(1), 10, 64)
			if r.Str(0) == versionAccess {
				v.Access = n
			} else {
				v.Settings = n
			}
			return err
		}, versionAccess, versionSettings)
	})
	if err != nil {
		return v, fmt.Errorf("versions: %w", err)
	}
	return v, nil
}

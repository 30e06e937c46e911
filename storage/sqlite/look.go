package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/relational"
)

// A Sight is what Look has seen of a file.
type Sight struct {
	Version int // of its schema; 0: there is none yet
	Known   int // the version of this program
	Size    int64
	// Whole is false when the file was too large to be read to its end in time.
	Whole bool
}

// Look reads the file at path from its beginning to its end, as far as ctx lets it,
// and changes nothing of it. idle says that no process uses the file. An error that
// wraps storage.ErrDamaged says what is broken; one that wraps fs.ErrNotExist that
// there is no such file.
func Look(ctx context.Context, path string, idle bool) (s Sight, err error) {
	s.Known = len(migrations)
	info, err := os.Stat(path)
	if err != nil {
		return s, err
	}
	s.Size = info.Size()
	params := url.Values{"mode": {"ro"}}
	if log, err := os.Stat(path + "-wal"); idle && (errors.Is(err, fs.ErrNotExist) || err == nil && log.Size() == 0) {
		params.Set("immutable", "1") // else SQLite makes files beside it
	}
	c, err := connectWith(ctx, path, readerPragmas, params)
	if err != nil {
		return s, fmt.Errorf("look at %s: %w", path, err)
	}
	defer func() { _ = c.close() }() // nothing was written
	at, err := c.number("PRAGMA user_version")
	if err != nil {
		return s, fmt.Errorf("look at %s: %w", path, err)
	}
	if s.Version = int(at); s.Version > s.Known {
		return s, fmt.Errorf("look at %s: %w: its schema is version %d and this claybot knows %d", path, errNewer, s.Version, s.Known)
	}
	if _, err := checkFile(ctx, path, 0, func() (*conn, error) { return connectWith(ctx, path, readerPragmas, params) }); ctx.Err() != nil {
		return s, nil // it is well as far as was read
	} else if err != nil {
		return s, fmt.Errorf("look at %w", err)
	}
	c.until = ctx
	var broken string
	err = c.Each("PRAGMA quick_check(1)", func(r relational.Row) error {
		if text := r.Str(0); text != "ok" {
			broken = text
		}
		return nil
	}, nil)
	switch {
	case broken != "":
		return s, fmt.Errorf("look at %s: %w: %s", path, storage.ErrDamaged, broken)
	case err != nil && ctx.Err() != nil:
		return s, nil // it is well as far as was read
	case err != nil:
		return s, fmt.Errorf("look at %s: %w", path, err)
	}
	s.Whole = true
	return s, nil
}

package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/relational"
)

// Backup writes a copy of the database, of one moment, to a new file, at most rate bytes a
// second; 0: as fast as the disk allows. Others may use the store meanwhile. The copy has
// its name once it is durable, its checksums were read again and SQLite has found its
// tables and indexes consistent. An error leaves no file behind; one that wraps
// storage.ErrDamaged was reported to Config.Damaged as well.
func (db *DB) Backup(ctx context.Context, to string, rate int64) error {
	fresh := to + ".new"
	err := db.copyPages(ctx, fresh, rate)
	_ = db.notice(err) // the caller gets the error as it is
	if err == nil {
		err = Verify(ctx, fresh)
	}
	if err == nil {
		err = os.Rename(fresh, to)
	}
	if err != nil {
		_ = os.Remove(fresh) // half a copy would only take space
		return fmt.Errorf("copy %s: %w", db.path, err)
	}
	return syncFile(filepath.Dir(to))
}

// copyPages writes the pages that one transaction sees to a file and syncs it.
func (db *DB) copyPages(ctx context.Context, to string, rate int64) (err error) {
	if with, err := summed(db.path); err != nil {
		return err
	} else if !with {
		return errors.New("its pages have no checksums yet; the next start with enough space adds them")
	}
	c, err := connect(ctx, db.path, readerPragmas)
	if err != nil {
		return err
	}
	defer func() { _ = c.close() }() // nothing was written
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	c.until = ctx
	began, written := time.Now(), int64(0)
	page := make([]byte, pageSize)
	err = c.Each("SELECT pgno, data FROM sqlite_dbpage ORDER BY pgno", func(r relational.Row) error {
		data, _ := r[1].([]byte)
		if n := copy(page, data); n < pageSize {
			return fmt.Errorf("page %d has %d bytes", r.Int(0), n)
		}
		seal(uint32(r.Int(0)), page)
		if _, err := f.Write(page); err != nil {
			return err
		}
		written += pageSize
		if written%(checkBlock*pageSize) == 0 {
			return paced(ctx, began, written, rate)
		}
		return nil
	}, nil)
	if err != nil {
		return err
	}
	return f.Sync()
}

// Verify reads a copy that nobody uses from its beginning to its end: the checksums of all
// pages, and whether tables and indexes are consistent. An error that wraps
// storage.ErrDamaged says what is wrong.
func Verify(ctx context.Context, path string) error {
	if info, err := os.Stat(path); err != nil {
		return err
	} else if info.Size() == 0 {
		return fmt.Errorf("%s: %w: it is empty", path, storage.ErrDamaged)
	}
	if with, err := summed(path); err != nil {
		return err
	} else if !with {
		return fmt.Errorf("%s: %w: its pages have no checksums", path, storage.ErrDamaged)
	}
	still := url.Values{"mode": {"ro"}, "immutable": {"1"}}
	open := func() (*conn, error) { return connectWith(ctx, path, readerPragmas, still) }
	if _, err := checkFile(ctx, path, 0, open); err != nil {
		return err
	}
	c, err := open()
	if err != nil {
		return err
	}
	defer func() { _ = c.close() }() // nothing was written
	c.until = ctx
	return c.Each("PRAGMA integrity_check(1)", func(r relational.Row) error {
		if text := r.Str(0); text != "ok" {
			return fmt.Errorf("%s: %w: %s", path, storage.ErrDamaged, text)
		}
		return nil
	}, nil)
}

// Restore puts a verified copy in the place of the database at path, which nobody uses,
// and moves what was there, with its log, to names that begin with aside. A crash leaves
// what was there, the copy, or neither: run it again then.
func Restore(ctx context.Context, from, path, aside string) error {
	if err := Verify(ctx, from); err != nil {
		return err
	}
	b, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = b.Close() }() // nothing is written
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.ReadFrom(b); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	// The log goes first: that of another file would be taken for the copy's.
	for _, ext := range []string{"-wal", "-shm", ""} {
		if err := os.Rename(path+ext, aside+ext); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	return errors.Join(syncFile(filepath.Dir(path)), syncFile(filepath.Dir(aside)))
}

package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/relational"
)

// An Archive is a claybot.db as tables, to be copied as a whole. Nobody else may use
// the file, and it may be used by one goroutine at a time. It has what package storage
// says of a Portable, but for what agents remember and were sent.
type Archive struct {
	c       *conn
	path    string
	loading bool
	rows    int // since the last commit
	bytes   int
}

// A commit of a load has about so much.
const (
	loadRows  = 20_000
	loadBytes = 32 << 20
)

// OpenArchive opens a claybot.db that Open has brought to the present version.
func OpenArchive(ctx context.Context, path string) (*Archive, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	return openArchive(ctx, path)
}

// CreateArchive makes an empty claybot.db; there must be none.
func CreateArchive(ctx context.Context, path string) (*Archive, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	a, err := openArchive(ctx, path)
	if err != nil {
		return nil, err
	}
	if err := a.c.control("DELETE FROM counters"); err != nil { // the zeros that the schema begins with
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

func openArchive(ctx context.Context, path string) (*Archive, error) {
	if err := prepareFile(path); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	c, err := connect(ctx, path, writerPragmas)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	if err := migrate(c); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, errors.Join(err, c.close()))
	}
	return &Archive{c: c, path: path}, nil
}

// Close ends the last commit and closes the file.
func (a *Archive) Close() error {
	err := a.commit()
	if err = errors.Join(err, a.c.close()); err != nil {
		return fmt.Errorf("close %s: %w", a.path, err)
	}
	return nil
}

func (a *Archive) commit() error {
	if !a.loading {
		return nil
	}
	a.loading, a.rows, a.bytes = false, 0, 0
	return a.c.control("COMMIT")
}

// autoIncremented are the tables whose numbers never come back, also when the newest
// row goes.
const autoIncremented = "SELECT name, seq FROM sqlite_sequence WHERE name IN ('outbox', 'memory_versions') ORDER BY name"

var errEnough = errors.New("enough")

// Rows yields the rows of a table, and none for a table that the file does not have.
func (a *Archive) Rows(ctx context.Context, t storage.Table) iter.Seq2[storage.Row, error] {
	return func(yield func(storage.Row, error) bool) {
		q, there, err := a.selection(t)
		if err == nil && there {
			a.c.until = ctx
			err = a.c.Each(q, func(r relational.Row) error {
				if !yield(r, nil) {
					return errEnough
				}
				return nil
			}, nil)
			a.c.until = context.Background()
		}
		if err != nil && !errors.Is(err, errEnough) {
			yield(nil, err)
		}
	}
}

func (a *Archive) selection(t storage.Table) (q string, there bool, err error) {
	if t.Name == storage.TableSequences {
		return autoIncremented, true, nil
	}
	if there, err = a.has(t.Name); err != nil || !there {
		return "", there, err
	}
	return "SELECT " + quoted(t.Columns) + " FROM " + t.Name, true, nil
}

func (a *Archive) has(table string) (bool, error) {
	n := 0
	err := a.c.Each("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", func(relational.Row) error { n++; return nil }, []any{table})
	return n > 0, err
}

func quoted(columns []string) string { return `"` + strings.Join(columns, `", "`) + `"` }

// Load adds rows to a table. They are committed now and then: whoever loads keeps the
// file from being used until it is whole.
func (a *Archive) Load(ctx context.Context, t storage.Table, rows iter.Seq2[storage.Row, error]) error {
	q := "INSERT INTO " + t.Name + " (" + quoted(t.Columns) + ") VALUES (" + strings.Repeat("?, ", len(t.Columns)-1) + "?)"
	if t.Name == storage.TableSequences {
		q = ""
	}
	for r, err := range rows {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err == nil && !a.loading {
			err = a.c.control("BEGIN IMMEDIATE")
			a.loading = err == nil
		}
		if err == nil && q == "" {
			err = a.sequence(r)
		} else if err == nil {
			_, err = a.c.Exec(q, slices.Clone(r))
		}
		if err == nil {
			err = a.count(r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sequence lets a table go on behind a number.
func (a *Archive) sequence(r storage.Row) error {
	n, err := a.c.Exec("UPDATE sqlite_sequence SET seq = ? WHERE name = ?", []any{r[1], r[0]})
	if err == nil && n == 0 {
		_, err = a.c.Exec("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", []any{r[0], r[1]})
	}
	return err
}

func (a *Archive) count(r storage.Row) error {
	a.rows++
	for _, v := range r {
		if s, ok := v.(string); ok {
			a.bytes += len(s)
		}
	}
	if a.rows < loadRows && a.bytes < loadBytes {
		return nil
	}
	return a.commit()
}

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

// Verify reads a whole copy that is not in use and checks the checksums of all pages and
// the consistency of tables and indexes. An error that wraps storage.ErrDamaged says what
// is wrong.
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

// Restoring is added to the name of a database while Restore prepares the copy that is to
// take its place. As long as there is such a file, a restore is under way or was cut
// short, and the database must not be opened.
const Restoring = ".restoring"

// Restore puts a verified copy in the place of the database at path, which no process
// uses, and moves what was there, with its log, to names that begin with aside. prepare
// changes the copy, at the path that it is given, before it has the name. An error of
// prepare leaves what was there. A crash leaves what was there or the copy as prepare has
// left it, or a file Restoring and no database: run it again then.
func Restore(ctx context.Context, from, path, aside string, prepare func(path string) error) error {
	fresh := path + Restoring
	err := Verify(ctx, from)
	if err == nil {
		err = removeFiles(fresh) // of a restore that was cut short
	}
	if err == nil {
		err = copyFile(from, fresh)
	}
	if err == nil {
		err = prepare(fresh)
	}
	if err == nil {
		err = syncFile(fresh)
	}
	if err != nil {
		if _, serr := os.Stat(path); serr == nil { // else there is no database: no start may make an empty one
			err = errors.Join(err, removeFiles(fresh))
		}
		return err
	}
	// The log goes first: that of another file would be taken for the copy's.
	for _, ext := range []string{"-wal", "-shm", ""} {
		if err := os.Rename(path+ext, aside+ext); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := os.Rename(fresh, path); err != nil {
		return err
	}
	return errors.Join(syncFile(filepath.Dir(path)), syncFile(filepath.Dir(aside)))
}

// removeFiles removes a database with its log.
func removeFiles(path string) error {
	for _, ext := range []string{"-wal", "-shm", ""} {
		if err := os.Remove(path + ext); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// copyFile copies a file to a new one, which is its owner's alone and durable.
func copyFile(from, to string) error {
	b, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = b.Close() }() // nothing is written
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.ReadFrom(b); err != nil {
		return errors.Join(err, f.Close())
	}
	return errors.Join(f.Sync(), f.Close())
}

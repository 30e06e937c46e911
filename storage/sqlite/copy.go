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

// An Archive copies a claybot.db as tables. No process may use the file, and an Archive
// is not safe for concurrent use. It implements storage.Portable except for the
// histories and files of agents.
type Archive struct {
	c       *conn
	path    string
	loading bool
	rows    int // since the last commit
	bytes   int
}

// The size of one commit of a load.
const (
	loadRows  = 20_000
	loadBytes = 32 << 20
)

// OpenArchive opens a claybot.db that Open has migrated to the present version.
func OpenArchive(ctx context.Context, path string) (*Archive, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	return openArchive(ctx, path)
}

// CreateArchive creates an empty claybot.db; the file must not exist.
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
	if err := a.c.control("DELETE FROM counters"); err != nil { // the schema inserts zeros
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

// Close commits and closes the file.
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

// autoIncremented are the tables that never reuse a number, even after the newest row is
// deleted.
const autoIncremented = "SELECT name, seq FROM sqlite_sequence WHERE name IN ('outbox', 'memory_versions') ORDER BY name"

var errEnough = errors.New("enough")

// Rows yields the rows of a table, or none if the file has no such table.
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

// Load adds rows to a table. It commits from time to time: the caller must keep the file
// unused until the load is complete.
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

// sequence advances the sequence of a table.
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

// Backup writes a snapshot of the database to a new file, at most rate bytes per second;
// 0: without limit. Other calls may use the store meanwhile. The copy gets its name only
// after it is durable, its checksums are verified and SQLite finds its tables and
// indexes consistent. After an error there is no file; one that wraps storage.ErrDamaged
// was reported to Config.Damaged as well.
func (db *DB) Backup(ctx context.Context, to string, rate int64) error {
	fresh := to + ".new"
	err := db.copyPages(ctx, fresh, rate)
	_ = db.notice(err) // return the error unchanged
	if err == nil {
		err = Verify(ctx, fresh)
	}
	if err == nil {
		err = os.Rename(fresh, to)
	}
	if err != nil {
		_ = os.Remove(fresh) // an incomplete copy only takes space
		return fmt.Errorf("copy %s: %w", db.path, err)
	}
	return syncFile(filepath.Dir(to))
}

// copyPages writes the pages of one snapshot to a file and syncs it.
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
	defer func() { _ = c.close() }() // only reads
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

// Verify checks all checksums of a copy and the consistency of its tables and indexes.
// No process may use the file. An error that wraps storage.ErrDamaged describes the
// damage.
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
	defer func() { _ = c.close() }() // only reads
	c.until = ctx
	return c.Each("PRAGMA integrity_check(1)", func(r relational.Row) error {
		if text := r.Str(0); text != "ok" {
			return fmt.Errorf("%s: %w: %s", path, storage.ErrDamaged, text)
		}
		return nil
	}, nil)
}

// Restoring is the suffix of the file in which Restore prepares a copy. While that file
// exists, a restore is running or was interrupted, and the database must not be opened.
const Restoring = ".restoring"

// Restore replaces the database at path, which no process uses, with a verified copy and
// renames the old one and its log to names that begin with aside. prepare changes the
// copy at the given path before it gets its name. An error of prepare leaves the old
// database. A crash leaves the old database, the prepared copy, or a file Restoring and
// no database; repeat Restore then.
func Restore(ctx context.Context, from, path, aside string, prepare func(path string) error) error {
	fresh := path + Restoring
	err := Verify(ctx, from)
	if err == nil {
		err = removeFiles(fresh) // of an interrupted restore
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
		if _, serr := os.Stat(path); serr == nil { // otherwise there is no database, and no start may create an empty one
			err = errors.Join(err, removeFiles(fresh))
		}
		return err
	}
	// The log goes first: SQLite would apply that of another file to the copy.
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

// removeFiles removes a database and its log.
func removeFiles(path string) error {
	for _, ext := range []string{"-wal", "-shm", ""} {
		if err := os.Remove(path + ext); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// copyFile copies a file to a new, durable one that only its owner may read.
func copyFile(from, to string) error {
	b, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = b.Close() }() // only reads
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.ReadFrom(b); err != nil {
		return errors.Join(err, f.Close())
	}
	return errors.Join(f.Sync(), f.Close())
}

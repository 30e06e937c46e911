package sqlite

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"strconv"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/relational"
)

const (
	// checkAtStart is the size up to which Open reads the whole file before it returns.
	checkAtStart = 64 << 20
	checkBlock   = 64 // pages per read
	mostSuspects = 1000
)

// Check reads the whole file and verifies the checksum of every page, at most rate
// bytes per second; 0: without limit. Other calls may use the store meanwhile. It
// returns the number of bytes read. An error that wraps storage.ErrDamaged names the
// first damaged page.
func (db *DB) Check(ctx context.Context, rate int64) (int64, error) {
	size, err := checkFile(ctx, db.path, rate, nil)
	_ = db.notice(err) // return the error unchanged
	return size, err
}

// checkFile is Check for the file at path. through opens the connection that reads the
// log; nil: the default. A file without checksums passes.
func checkFile(ctx context.Context, path string, rate int64, through func() (*conn, error)) (int64, error) {
	if with, err := summed(path); err != nil || !with {
		return 0, err
	}
	read, suspects, err := scan(ctx, path, rate)
	if err != nil || len(suspects) == 0 {
		return read, err
	}
	// A page with a newer version in the log, or that is being written, may be torn in the
	// file. SQLite reads the current version.
	if through == nil {
		through = func() (*conn, error) { return connect(ctx, path, readerPragmas) }
	}
	c, err := through()
	if err != nil {
		return read, err
	}
	defer func() { _ = c.close() }() // only reads
	pages, err := c.number("PRAGMA page_count")
	if err != nil {
		return read, err
	}
	for _, n := range suspects {
		if int64(n) > pages {
			continue // no longer part of the database
		}
		found := false
		err := c.Each("SELECT data FROM sqlite_dbpage WHERE pgno = ?", func(relational.Row) error { found = true; return nil }, []any{int64(n)})
		if errors.Is(err, storage.ErrDamaged) || err == nil && !found {
			err = errSum(n)
		}
		if err != nil {
			return read, fmt.Errorf("check %s: %w", path, err)
		}
	}
	return read, nil
}

// scan reads a file and returns the pages with a wrong checksum and those that the
// header counts but the file lacks.
func scan(ctx context.Context, path string, rate int64) (read int64, suspects []uint32, err error) {
	f, err := describe(path)
	if err != nil {
		return 0, nil, err
	}
	defer f.leave()
	buf := make([]byte, checkBlock*pageSize)
	began, pages := time.Now(), uint32(0)
	for n := uint32(1); len(suspects) < mostSuspects; {
		k, err := f.ReadAt(buf, read)
		if err != nil && !errors.Is(err, io.EOF) {
			return read, nil, err
		}
		read += int64(k)
		if n == 1 && k >= 100 {
			pages = binary.BigEndian.Uint32(buf[28:])
		}
		for block := buf[:k]; len(block) > 0 && len(suspects) < mostSuspects; n++ {
			if (len(block) < pageSize || !sealed(n, block[:pageSize])) && n != lockPage {
				suspects = append(suspects, n)
			}
			block = block[min(pageSize, len(block)):]
		}
		if k < len(buf) {
			break
		}
		if err := paced(ctx, began, read, rate); err != nil {
			return read, nil, err
		}
	}
	if have := uint32((read + pageSize - 1) / pageSize); have < pages && len(suspects) < mostSuspects {
		suspects = append(suspects, have+1)
	}
	return read, suspects, nil
}

// paced waits until n bytes may have been read since began.
func paced(ctx context.Context, began time.Time, n, rate int64) error {
	if err := context.Cause(ctx); err != nil || rate <= 0 {
		return err
	}
	wait := time.Duration(float64(n)/float64(rate)*float64(time.Second)) - time.Since(began)
	if wait <= 0 {
		return nil
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// checkStart checks the whole file if it is small. The caller of Open must Check a
// larger one.
func (db *DB) checkStart(ctx context.Context) error {
	info, err := os.Stat(db.path)
	if err != nil || info.Size() > checkAtStart {
		return err
	}
	_, err = checkFile(ctx, db.path, 0, nil)
	return err
}

// notice reports damage of the file to Config.Damaged, once, and makes all later calls
// fail. It returns the error for the caller: one of the whole store, so that it is taken
// neither for damage of a single agent nor for a result.
func (db *DB) notice(err error) error {
	if err == nil || !broken(err) {
		return err
	}
	refusal := error(&storage.Fault{Class: storage.ClassStore, Err: fmt.Errorf("%s: %v", db.path, err)}) //nolint:errorlint // see above
	if db.refusal.CompareAndSwap(nil, &refusal) && db.damaged != nil {
		db.damaged(fmt.Errorf("%s: %w", db.path, err))
	}
	return refusal
}

// refused returns the error of all calls once the file is known to be damaged.
func (db *DB) refused() error {
	if r := db.refusal.Load(); r != nil {
		return *r
	}
	return nil
}

// broken reports whether err means that the file is damaged. The full-text index does
// not count: it can be rebuilt from the notes.
func broken(err error) bool {
	if e := coded(nil); errors.As(err, &e) {
		return e.Code() != sqlite3.SQLITE_CORRUPT_VTAB &&
			(e.Code() == sqlite3.SQLITE_IOERR_DATA || e.Code()&0xff == sqlite3.SQLITE_CORRUPT || e.Code()&0xff == sqlite3.SQLITE_NOTADB)
	}
	return errors.Is(err, errPage) || errors.Is(err, ErrMoved)
}

// A Sight is the result of Look.
type Sight struct {
	Version int // of the schema; 0: none yet
	Known   int // the version of this program
	Size    int64
	// Whole is false if there was not enough time to read the whole file.
	Whole bool
}

// Look reads the file at path until ctx ends and changes nothing. Set idle if no process
// uses the file. An error that wraps storage.ErrDamaged describes the damage; one that
// wraps fs.ErrNotExist reports a missing file.
func Look(ctx context.Context, path string, idle bool) (s Sight, err error) {
	s.Known = len(migrations)
	info, err := os.Stat(path)
	if err != nil {
		return s, err
	}
	s.Size = info.Size()
	params := onlyReading(path, idle)
	c, err := connectWith(ctx, path, readerPragmas, params)
	if err != nil {
		return s, fmt.Errorf("look at %s: %w", path, err)
	}
	defer func() { _ = c.close() }() // only reads
	at, err := c.number("PRAGMA user_version")
	if err != nil {
		return s, fmt.Errorf("look at %s: %w", path, err)
	}
	if s.Version = int(at); s.Version > s.Known {
		return s, fmt.Errorf("look at %s: %w: its schema is version %d and this claybot knows %d", path, errNewer, s.Version, s.Known)
	}
	if _, err := checkFile(ctx, path, 0, func() (*conn, error) { return connectWith(ctx, path, readerPragmas, params) }); ctx.Err() != nil {
		return s, nil // no damage as far as read
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
		return s, nil // no damage as far as read
	case err != nil:
		return s, fmt.Errorf("look at %s: %w", path, err)
	}
	s.Whole = true
	return s, nil
}

// onlyReading are the parameters with which a file is read and nothing is changed.
func onlyReading(path string, idle bool) url.Values {
	params := url.Values{"mode": {"ro"}}
	if log, err := os.Stat(path + "-wal"); idle && (errors.Is(err, fs.ErrNotExist) || err == nil && log.Size() == 0) {
		params.Set("immutable", "1") // otherwise SQLite creates files next to it
	}
	return params
}

// SchemaVersion returns the version of the schema of the file at path, 0 for none yet,
// and the version of this program. It reads no other page and changes nothing, see Look.
func SchemaVersion(ctx context.Context, path string, idle bool) (version, known int, err error) {
	known = len(migrations)
	if _, err := os.Stat(path); err != nil {
		return 0, known, err
	}
	c, err := connectWith(ctx, path, readerPragmas, onlyReading(path, idle))
	if err != nil {
		return 0, known, fmt.Errorf("look at %s: %w", path, err)
	}
	defer func() { _ = c.close() }() // only reads
	at, err := c.number("PRAGMA user_version")
	if err != nil {
		return 0, known, fmt.Errorf("look at %s: %w", path, err)
	}
	return int(at), known, nil
}

// LookThrough returns the values of all checkpoints whose keys begin with prefix, as LookUp
// does.
func LookThrough(ctx context.Context, path string, idle bool, prefix string) ([]string, error) {
	return lookFor(ctx, path, idle, "SELECT value FROM marks WHERE substr(key, 1, length(?1)) = ?1 ORDER BY key", prefix)
}

// LookUp returns a checkpoint of the file at path and changes nothing, see Look.
func LookUp(ctx context.Context, path string, idle bool, key string) (value string, err error) {
	values, err := lookFor(ctx, path, idle, "SELECT value FROM marks WHERE key = ?", key)
	for _, v := range values {
		value = v
	}
	return value, err
}

// LookGranted returns the people and channels of a connector to which an operator gave
// access, as LookUp does.
func LookGranted(ctx context.Context, path string, idle bool, connector string) ([]string, error) {
	return lookFor(ctx, path, idle, "SELECT subject FROM grants WHERE connector = ? ORDER BY subject", connector)
}

// LookStuck returns how many outgoing messages, up to 10,000, wait since before a time, and since when the
// oldest does, as LookUp does.
func LookStuck(ctx context.Context, path string, idle bool, before claybot.Time) (n int, oldest claybot.Time, err error) {
	all, err := lookFor(ctx, path, idle, "SELECT CAST(at AS TEXT) FROM outbox WHERE open = 1 AND at < CAST(? AS INTEGER) ORDER BY at LIMIT 10000", strconv.FormatInt(int64(before), 10))
	if err != nil || len(all) == 0 {
		return 0, 0, err
	}
	at, err := strconv.ParseInt(all[0], 10, 64)
	return len(all), claybot.Time(at), err
}

// lookFor returns the texts that a query with one argument finds in the file at path.
func lookFor(ctx context.Context, path string, idle bool, query, arg string) (values []string, err error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	c, err := connectWith(ctx, path, readerPragmas, onlyReading(path, idle))
	if err != nil {
		return nil, fmt.Errorf("look at %s: %w", path, err)
	}
	defer func() { _ = c.close() }() // only reads
	err = c.Each(query, func(r relational.Row) error { values = append(values, r.Str(0)); return nil }, []any{arg})
	return values, err
}

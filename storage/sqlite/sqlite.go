package sqlite

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/bits"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"modernc.org/sqlite"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/relational"
)

var _ relational.Driver = (*DB)(nil)

// readers is the number of concurrent reads, besides one report.
const readers = 2

// Config of a DB; the zero value works.
type Config struct {
	Log *slog.Logger // nil: silent
	// Committed receives what each commit changed, in commit order, before its callers
	// return. It does not receive commits that only renew leases. It must be quick and must
	// not use the store. Optional.
	Committed func(storage.Commit)
	// Damaged is called once, when the file turns out to be damaged during use. Its content
	// is unreliable then: stop. It must be quick and must not use the store. Optional.
	Damaged func(error)
	noCheck bool // skip the check at the start, as for a large file
}

// A DB is an open claybot.db. It is safe for concurrent use.
type DB struct {
	*relational.Store
	path string
	log  *slog.Logger

	queue   chan *call
	stop    chan struct{} // closed by Close
	stopped chan struct{} // closed at the end of the writer
	close   func() error

	// Owned by the writer goroutine.
	writer    *conn
	unsynced  bool        // commits are not synced at present
	wal       fs.FileInfo // the log, once CheckPlace has seen it
	sinks     []string
	committed func(storage.Commit)

	file    fs.FileInfo           // what is open
	damaged func(error)           // Config.Damaged
	refusal atomic.Pointer[error] // returned by all calls: the file is damaged
	commits atomic.Int64          // that changed something

	readers  chan *conn // idle readers; nil stands for one not yet opened
	reporter chan *conn // the same for reports, which may take long
}

// Open opens the file at path, creates or upgrades it, and releases every lease: the
// caller must hold the lock of the data directory. Sends that were unfinished when the
// last process ended become ambiguous.
//
// Open leaves a damaged file, or one that is not a database, unchanged and returns an
// error that wraps storage.ErrDamaged. It reads the whole file up to 64 MiB; the pages of
// a larger one are checked on use and by Check.
func Open(ctx context.Context, path string, cfg Config) (*DB, error) {
	db := &DB{
		path:    path,
		log:     cfg.Log,
		queue:   make(chan *call, queueLength),
		stop:    make(chan struct{}),
		stopped: make(chan struct{}),
		readers: make(chan *conn, readers), reporter: make(chan *conn, 1),
	}
	if db.log == nil {
		db.log = slog.New(slog.DiscardHandler)
	}
	db.Store = relational.New(db, &dialect, db.log)
	for range readers {
		db.readers <- nil
	}
	db.reporter <- nil
	if err := db.open(ctx, cfg.noCheck); err != nil {
		if db.writer != nil {
			_ = db.writer.close() // return err instead
		}
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	db.committed, db.damaged = cfg.Committed, cfg.Damaged // from here on
	db.close = sync.OnceValue(db.shut)
	go db.writeAll()
	return db, nil
}

func (db *DB) open(ctx context.Context, noCheck bool) error {
	if err := prepareFile(db.path); err != nil {
		return err
	}
	lost, err := lostCommits(db.path)
	if err != nil {
		return err
	}
	if lost > 0 {
		db.log.Error("database log damaged: commits after the damage are lost, unless the machine lost power", "file", db.path+"-wal", "commits", lost)
	}
	c, err := connect(ctx, db.path, writerPragmas)
	if err != nil {
		return err
	}
	db.writer = c
	if !noCheck {
		if err := db.checkStart(ctx); err != nil {
			return err
		}
	}
	if err := migrate(c); err != nil {
		return err
	}
	if err := db.summed(ctx); err != nil {
		return err
	}
	c = db.writer
	if db.sinks, err = relational.LoadSinks(c.Conn); err != nil {
		return err
	}
	if db.file, err = os.Stat(db.path); err != nil {
		return err
	}
	return db.recoverAll()
}

// summed adds checksums to a file of an older version. Without space for that, the file
// is used unchanged until the next start.
func (db *DB) summed(ctx context.Context) error {
	with, err := summed(db.path)
	if err != nil || with {
		return err
	}
	began := time.Now()
	err, db.writer = db.writer.close(), nil
	if err != nil {
		return err
	}
	err = rewrite(ctx, db.path)
	if errors.Is(err, storage.ErrFull) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		db.log.Error("no space to add checksums to the database; damage may go unnoticed until the next start", "err", err)
		err = nil
	} else if err == nil {
		db.log.Info("checksums added to the database", "took", time.Since(began))
	}
	if err != nil {
		return err
	}
	db.writer, err = connect(ctx, db.path, writerPragmas)
	return err
}

// Close answers the queued calls, ends the writer and closes the file. Later calls fail.
// Repeating it has no effect.
func (db *DB) Close() error { return db.close() }

func (db *DB) shut() error {
	close(db.stop)
	<-db.stopped
	var errs []error
	for i := range readers + 1 {
		idle := db.readers
		if i == readers {
			idle = db.reporter
		}
		if c := <-idle; c != nil {
			errs = append(errs, c.close())
		}
	}
	if db.writer != nil {
		// Closing the last connection checkpoints the log.
		errs = append(errs, db.writer.close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close %s: %w", db.path, err)
	}
	return nil
}

// Read implements relational.Driver.
func (db *DB) Read(ctx context.Context, fn func(c *relational.Conn) error) error {
	return db.readFrom(ctx, db.readers, func(c *conn) error { return fn(c.Conn) })
}

// Report implements relational.Driver.
func (db *DB) Report(ctx context.Context, fn func(c *relational.Conn) error) error {
	return db.readFrom(ctx, db.reporter, func(c *conn) error { return fn(c.Conn) })
}

func (db *DB) readFrom(ctx context.Context, idle chan *conn, fn func(c *conn) error) error {
	if err := cmp.Or(context.Cause(ctx), db.refused()); err != nil {
		return err
	}
	var c *conn
	select {
	case <-db.stop:
		return errClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	case c = <-idle:
	}
	if c == nil {
		err := db.moved()
		if err == nil {
			c, err = connect(ctx, db.path, readerPragmas)
		}
		if err != nil {
			idle <- nil
			return db.notice(err)
		}
	}
	c.until = ctx
	err := fn(c)
	c.until = context.Background()
	if c.broken != nil {
		err = c.broken
	}
	if ioFailed(err) || c.broken != nil {
		c.giveUp()
		c = nil
	}
	putBack(idle, c)
	return db.notice(err)
}

// putBack makes c idle, ahead of a connection that is not yet opened: reads that follow
// each other share a connection with its schema, statements and cache.
func putBack(idle chan *conn, c *conn) {
	select {
	case next := <-idle:
		if next == nil {
			c, next = nil, c
		}
		idle <- next
	default:
	}
	idle <- c
}

// recoverAll releases what the last process held, before there is a writer.
func (db *DB) recoverAll() error {
	cl := &call{run: func(c *relational.Conn) error {
		n, err := c.Recover()
		if n > 0 {
			db.log.Info("sends interrupted", "count", n)
		}
		return err
	}}
	if err := db.transaction([]*call{cl}); err != nil {
		return err
	}
	return cl.err
}

// create writes an empty database to an empty file. SQLite makes it durable with the
// first commit.
func create(path string) error {
	err := os.WriteFile(path+".new", blankFile(), 0o600)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w", storage.ErrFull, err)
	}
	return err
}

// prepareFile creates the file for its owner only if necessary, and rejects one with
// content that SQLite would overwrite.
func prepareFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("%w: %w", storage.ErrFull, err)
		}
		return err
	}
	defer func() { _ = f.Close() }() // only reads
	var head [16]byte
	n, err := io.ReadFull(f, head[:])
	switch {
	case n == 0:
		// SQLite deletes the log of an empty file: then the file was lost.
		if st, err := os.Stat(path + "-wal"); err == nil && st.Size() > 0 {
			return fmt.Errorf("%w: the file is empty and its log is not", storage.ErrDamaged)
		}
		if err := create(path); err != nil {
			return err
		}
	case err != nil || string(head[:]) != "SQLite format 3\x00":
		return fmt.Errorf("%w: this is not a SQLite file", storage.ErrDamaged)
	}
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		// SQLite creates its other files with the mode of the first.
		if err := os.Chmod(name, 0o600); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// ErrMoved reports that the files of the store are no longer at their path: its writes
// are lost when the process ends. It wraps storage.ErrDamaged.
var ErrMoved = fmt.Errorf("%w: the file was removed or replaced while claybot used it", storage.ErrDamaged)

// Blank reports whether there is no database at path: no file, or one without tables and
// without a log.
func Blank(path string) (bool, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil || info.Size() > pageSize {
		return false, err
	}
	logged, err := HasLog(path)
	return !logged, err
}

// HasLog reports whether the database at path has a log. It has one while a process uses
// it and after a process was killed.
func HasLog(path string) (bool, error) {
	_, err := os.Stat(path + "-wal")
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// CheckPlace checks that the files of the store are still at their path. Otherwise it
// returns an error that wraps ErrMoved, calls Config.Damaged and makes all later calls
// fail.
func (db *DB) CheckPlace(ctx context.Context) error {
	err := db.Write(ctx, true, func(*relational.Conn) error { // the writer keeps its files open
		if err := db.moved(); err != nil {
			return err
		}
		return db.logMoved()
	})
	_ = db.notice(err) // return the error unchanged
	return err
}

// moved returns ErrMoved if the file at the path is not the open one. It returns nil if
// it cannot find out.
func (db *DB) moved() error {
	info, err := os.Stat(db.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && db.file != nil && !os.SameFile(info, db.file) {
		return ErrMoved
	}
	return nil
}

// logMoved is moved for the log. The writer calls it in a transaction.
func (db *DB) logMoved() error {
	info, err := os.Stat(db.path + "-wal")
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && db.wal != nil && !os.SameFile(info, db.wal):
		return fmt.Errorf("its log: %w", ErrMoved)
	case err == nil:
		db.wal = info
	}
	return nil
}

// giveUp closes a connection after an I/O error. It keeps the log, as after a kill, even
// if no other connection is open.
func (c *conn) giveUp() {
	if f, ok := c.c.(sqlite.FileControl); ok {
		_, _ = f.FileControlPersistWAL("main", 1) // the files are abandoned
	}
	_ = c.close() // as above
}

const (
	walHeader = 32
	walFrame  = 24 + pageSize
	walMagic  = 0x377f0682
)

// A walSum is the checksum of SQLite's log, which is cumulative over its frames.
type walSum [2]uint32

// add continues the sum with whole words of b, read as big or little endian. A start
// reads the whole log this way, so it is written to be fast.
func (s walSum) add(big bool, b []byte) walSum {
	for ; len(b) >= 8; b = b[8:] {
		two := [8]byte(b) // one read of the slice for both words
		x, y := binary.LittleEndian.Uint32(two[:4]), binary.LittleEndian.Uint32(two[4:])
		if big {
			x, y = bits.ReverseBytes32(x), bits.ReverseBytes32(y)
		}
		s[0] += x + s[1]
		s[1] += y + s[0]
	}
	return s
}

func storedSum(b []byte) walSum {
	return walSum{binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])}
}

// lostCommits counts the complete commits in the log of the file at path that SQLite
// ignores because the log is damaged before them. A power loss may also leave such a
// log; those commits were never acknowledged.
func lostCommits(path string) (lost int, err error) {
	f, err := os.Open(path + "-wal")
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }() // only reads
	head := make([]byte, walHeader)
	if _, err := io.ReadFull(f, head); err != nil {
		return 0, nil //nolint:nilerr // the log is empty
	}
	big := head[3]&1 == 1
	sum := walSum{}.add(big, head[:24])
	began := binary.BigEndian.Uint32(head)&^1 == walMagic && sum == storedSum(head[24:]) // otherwise it does not identify its frames
	whole := began
	salts := head[16:24]
	frame, known := make([]byte, walFrame), true // known: sum is that of the frame before
	for {
		if _, err := io.ReadFull(f, frame); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return lost, nil
		} else if err != nil {
			return lost, err
		}
		// A frame is valid if its checksum continues the one stored before it or, if that is
		// missing, if it belongs to this log.
		stored := storedSum(frame[16:])
		same := !began || bytes.Equal(frame[8:16], salts)
		fits := sum.add(big, frame[:8]).add(big, frame[24:]) == stored
		whole = whole && same && fits
		if !whole && (fits || !known) && same && binary.BigEndian.Uint32(frame[4:]) != 0 {
			lost++
		}
		sum, known = stored, same
	}
}

package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/relational"
)

var _ relational.Driver = (*DB)(nil)

// readers is how many reads run side by side, besides one report.
const readers = 2

// Config of a DB; the zero value works.
type Config struct {
	Log *slog.Logger // nil: silent
	// Committed is told what each commit changed, in the order of the commits,
	// before the callers of that commit go on. Commits of leases alone are left
	// out. It must be quick and must not use the store. nil: nobody is told.
	Committed func(storage.Commit)
	// Damaged is called once, when the file turns out to be damaged while it is in
	// use. Nothing that it holds can be relied on then: stop. It must be quick and
	// must not use the store. nil: nothing is called.
	Damaged func(error)
	noCheck bool // the start reads no more than it needs, as if the file were large
}

// A DB is an open claybot.db. Its methods may be used by many goroutines.
type DB struct {
	*relational.Store
	path string
	log  *slog.Logger

	queue   chan *call
	stop    chan struct{} // closed by Close
	stopped chan struct{} // closed when the writer has left
	close   func() error

	// Owned by the writer goroutine.
	writer   *conn
	unsynced bool        // commits are not synced at present
	wal      fs.FileInfo // the log, once CheckPlace has seen it
	sinks    []string
	// committed is Config.Committed.
	committed func(storage.Commit)

	file    fs.FileInfo           // what is open
	damaged func(error)           // Config.Damaged
	refusal atomic.Pointer[error] // of all calls: the file is damaged
	commits atomic.Int64          // that changed something

	readers  chan *conn // idle readers; nil stands for one not yet opened
	reporter chan *conn // the same for the one of reports, which may take long
}

// Open opens the file at path, creating or upgrading it, and takes back every
// lease: the caller must hold the lock of the data directory. Sends that were
// under way when the last process ended become ambiguous.
//
// A file that is no database, or a broken one, is left as it is and reported
// with an error that wraps storage.ErrDamaged. Up to 64 MiB Open reads the whole file
// to find out; of a larger one, each page is looked at when it is used, and Check
// looks at all.
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
			_ = db.writer.close() // err says what matters
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
		db.log.Error("the log of the database is damaged: the commits behind the damage are lost, unless the machine lost power", "file", db.path+"-wal", "commits", lost)
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

// summed gives the pages of the file checksums, if an older claybot has made it. Where
// there is no space for that, the file is used as it is until the next start.
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
		db.log.Error("no space to add checksums to the database; damage of it may go unnoticed until the next start", "err", err)
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

// Close answers what is queued, ends the writer and closes the file. Calls made
// later fail. Calling it again changes nothing.
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
		// The last one to close moves the log into the file.
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
	idle <- c
	return db.notice(err)
}

// recoverAll ends what the last process held, before there is a writer.
func (db *DB) recoverAll() error {
	cl := &call{run: func(c *relational.Conn) error {
		n, err := c.Recover()
		if n > 0 {
			db.log.Info("sends were interrupted", "count", n)
		}
		return err
	}}
	if err := db.transaction([]*call{cl}); err != nil {
		return err
	}
	return cl.err
}

// create puts an empty database in the place of an empty file. SQLite makes it durable
// with the first commit.
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

// prepareFile makes sure that the file exists for its owner alone, and refuses
// one that SQLite would overwrite although it holds something.
func prepareFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("%w: %w", storage.ErrFull, err)
		}
		return err
	}
	defer func() { _ = f.Close() }() // nothing was written
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
		return fmt.Errorf("%w: this is no SQLite file", storage.ErrDamaged)
	}
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		// SQLite gives the others the mode of the first when it creates them.
		if err := os.Chmod(name, 0o600); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

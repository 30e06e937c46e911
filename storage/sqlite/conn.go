package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// A conn is one connection to the file with its prepared statements, used by
// one goroutine at a time. It stands on the driver directly: database/sql would
// double the cost of a statement.
type conn struct {
	c     driver.Conn
	stmts map[string]driver.Stmt
	// until is the context of the read that runs, which ends with it. Writes are
	// not cut short, so theirs never ends.
	until context.Context
	// wrote says that a statement of the running call changed something.
	wrote bool
	tally tally
	meter meter
	// journal is what the running transaction did, sinks who is told of events.
	journal journal
	sinks   []string
}

// pragmas of every connection. The caches are small because the kernel caches
// the file anyway and an idle daemon is to stay small.
var (
	writerPragmas = []string{"journal_mode(WAL)", "synchronous(FULL)", "cache_size(-3000)", "wal_autocheckpoint(2000)", "journal_size_limit(16777216)"}
	readerPragmas = []string{"cache_size(-1000)", "query_only(1)"}
)

func connect(ctx context.Context, path string, pragmas []string) (*conn, error) {
	q := url.Values{"_pragma": append([]string{"busy_timeout(5000)", "temp_store(MEMORY)"}, pragmas...)}
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: q.Encode()}
	connector, err := sqlite.NewConnector(u.String())
	if err != nil {
		return nil, err
	}
	c, err := connector.Connect(ctx)
	if err != nil {
		return nil, classify(err)
	}
	return &conn{c: c, stmts: make(map[string]driver.Stmt), until: context.Background()}, nil
}

func (c *conn) close() error {
	for _, s := range c.stmts {
		_ = s.Close() // the connection closes next and reports what matters
	}
	return c.c.Close()
}

func (c *conn) prepare(q string) (driver.Stmt, error) {
	if s := c.stmts[q]; s != nil {
		return s, nil
	}
	s, err := c.c.Prepare(q)
	if err != nil {
		return nil, classify(err)
	}
	c.stmts[q] = s
	return s, nil
}

// exec runs a statement that changes rows and returns how many.
func (c *conn) exec(q string, args ...any) (int64, error) {
	s, err := c.prepare(q)
	if err != nil {
		return 0, err
	}
	res, err := s.(driver.StmtExecContext).ExecContext(context.Background(), values(args))
	if err != nil {
		c.wrote = true // it may have
		return 0, classify(err)
	}
	n, err := res.RowsAffected()
	if n > 0 {
		c.wrote = true
	}
	return n, err
}

// control runs a transaction statement or pragma.
func (c *conn) control(q string) error {
	s, err := c.prepare(q)
	if err != nil {
		return err
	}
	_, err = s.(driver.StmtExecContext).ExecContext(context.Background(), nil)
	return classify(err)
}

// each calls f for every row of a query. f must not run the same query. It ends
// with the cause of c.until when that is done, also in the middle of a sum over
// many rows.
//
// Queries say LIMIT 0+? because SQLite compiles a statement anew whenever a
// parameter that is the whole limit is bound.
func (c *conn) each(q string, f func(r row) error, args ...any) (err error) {
	s, err := c.prepare(q)
	if err != nil {
		return err
	}
	rows, err := s.(driver.StmtQueryContext).QueryContext(c.until, values(args))
	if err != nil {
		return c.ended(classify(err))
	}
	defer func() {
		if cerr := rows.Close(); err == nil {
			err = classify(cerr)
		}
	}()
	r := make(row, len(rows.Columns()))
	for {
		switch err := rows.Next(r); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return c.ended(classify(err))
		}
		if err := f(r); err != nil {
			return err
		}
		// The driver looks at the context until there is a first row.
		if c.until.Err() != nil {
			return context.Cause(c.until)
		}
	}
}

// ended is the cause of c.until if err comes of its end.
func (c *conn) ended(err error) error {
	end := c.until.Err()
	if e, ok := errors.AsType[*sqlite.Error](err); end != nil && (errors.Is(err, end) || ok && e.Code() == sqlite3.SQLITE_INTERRUPT) {
		return context.Cause(c.until)
	}
	return err
}

// first calls f for the first row of a query and reports whether there was one.
func (c *conn) first(q string, f func(r row) error, args ...any) (found bool, err error) {
	err = c.each(q, func(r row) error {
		if found {
			return nil
		}
		found = true
		return f(r)
	}, args...)
	return found, err
}

// A row is one row of a result, read by position. Strings are copies.
type row []driver.Value

func (r row) str(i int) string {
	s, _ := r[i].(string)
	return s
}

func (r row) int(i int) int64 {
	n, _ := r[i].(int64)
	return n
}

func (r row) null(i int) bool { return r[i] == nil }

// text is s, or null for the empty string.
func text(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func values(args []any) []driver.NamedValue {
	if len(args) == 0 {
		return nil
	}
	v := make([]driver.NamedValue, len(args))
	for i, a := range args {
		v[i] = driver.NamedValue{Ordinal: i + 1, Value: value(a)}
	}
	return v
}

func value(a any) driver.Value {
	switch a := a.(type) {
	case int:
		return int64(a)
	case bool:
		if a {
			return int64(1)
		}
		return int64(0)
	case uint32:
		return int64(a)
	case []byte:
		return string(a) // all columns are text or integers
	case claybot.AgentID:
		return string(a)
	case claybot.RunID:
		return string(a)
	case claybot.MessageID:
		return string(a)
	case claybot.AgentType:
		return string(a)
	case claybot.MessageType:
		return string(a)
	case claybot.RunState:
		return string(a)
	case claybot.SendState:
		return string(a)
	case claybot.EventType:
		return string(a)
	case claybot.Time:
		return int64(a)
	default:
		return a
	}
}

// classify gives errors of SQLite the meaning that package storage names.
func classify(err error) error {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code() {
	case sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMOPEN:
		// A full quota and a file system that went read-only come as these.
		return fmt.Errorf("%w: %w", storage.ErrFull, err)
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN:
		return fmt.Errorf("%w: %w", storage.ErrFull, err)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return fmt.Errorf("%w: %w", storage.ErrBusy, err)
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%w: %w", storage.ErrDamaged, err)
	}
	return err
}

// ioFailed reports an error after which the connection's file handles are not
// trusted any more.
func ioFailed(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_IOERR
}

// storeFailed reports an error that concerns the whole store and not the call
// that met it. Damage is not among them: it is found where it is.
func storeFailed(err error) bool {
	return ioFailed(err) || errors.Is(err, storage.ErrFull) || errors.Is(err, storage.ErrBusy)
}

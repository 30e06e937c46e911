package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"strings"
	"syscall"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/relational"
)

// A conn is a connection to the file with its prepared statements, used by one goroutine
// at a time. It uses the driver directly: database/sql would double the cost of a
// statement.
type conn struct {
	*relational.Conn
	c     driver.Conn
	file  *descriptor // is left once c is closed
	stmts map[string]driver.Stmt
	// until is the context of the current read, which ends with it. Writes are not
	// interrupted, so theirs never ends.
	until context.Context
	// broken is the damage that a statement found. Its transaction is not committed and its
	// results are not used, even if the caller ignores the error.
	broken error
}

// classify calls the package's classify and records damage.
func (c *conn) classify(err error) error {
	if err = classify(err); err != nil && c.broken == nil && broken(err) {
		c.broken = err
	}
	return err
}

// dialect is SQLite's: the statements of package relational are written in it, and a
// single goroutine writes, so no locks are needed.
var dialect = relational.Dialect{
	Alone: true,
	Clock: func() int64 { return time.Now().UnixMilli() },
	Words: relational.Words{
		Match: matchAll,
		Find: `%s, snippet(memories_words, 1, '', '', ' … ', 24)
			FROM memories_words w JOIN memories m ON m.n = w.rowid JOIN memory_versions v USING (version)
			WHERE memories_words MATCH ? AND m.scope IN (%s)
			ORDER BY bm25(memories_words, 4.0, 1.0), m.path LIMIT 0+?`,
	},
}

// matchAll returns the full-text query for notes that contain all words or prefixes.
// Each is quoted, so it contains no syntax.
func matchAll(words []string) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(`"` + w + `"*`)
	}
	return b.String()
}

// pragmas of every connection. The caches are small because the kernel caches the file
// and an idle daemon must stay small. With secure_delete, SQLite writes every page that
// it ever allocated, so a page without a checksum is damaged.
var (
	writerPragmas = []string{"journal_mode(WAL)", "secure_delete(1)", "synchronous(FULL)", "cache_size(-3000)", "wal_autocheckpoint(2000)", "journal_size_limit(16777216)"}
	readerPragmas = []string{"cache_size(-1000)", "query_only(1)"}
)

func connect(ctx context.Context, path string, pragmas []string) (*conn, error) {
	return connectWith(ctx, path, pragmas, url.Values{})
}

// connectWith is connect with parameters for SQLite, which become part of q.
func connectWith(ctx context.Context, path string, pragmas []string, q url.Values) (*conn, error) {
	q["_pragma"] = append([]string{"busy_timeout(5000)", "temp_store(MEMORY)"}, pragmas...)
	file, err := describe(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	c, err := open(ctx, path, file, q)
	if err == nil && file == nil { // SQLite has created it
		if file, err = describe(path); err != nil {
			_ = c.Close() // it is new
		}
	}
	if err != nil {
		file.leave()
		return nil, err
	}
	conn := &conn{c: c, file: file, stmts: make(map[string]driver.Stmt), until: context.Background()}
	conn.Conn = relational.NewConn(conn, &dialect, true)
	return conn, nil
}

// open opens SQLite's connection to a file, which is nil if there is none yet.
func open(ctx context.Context, path string, file *descriptor, q url.Values) (driver.Conn, error) {
	if file != nil {
		with, err := file.summed()
		if err == nil && with {
			q.Set("vfs", VFS)
			err = registered()
		}
		if err != nil {
			return nil, err
		}
	}
	connector, err := sqlite.NewConnector(uri(path, q.Encode()))
	if err != nil {
		return nil, err
	}
	c, err := connector.Connect(ctx)
	return c, classify(err)
}

// uri returns the URI of a file for SQLite.
func uri(path, query string) string {
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: query}
	return u.String()
}

// quoteText returns s as an SQL literal.
func quoteText(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func (c *conn) close() error {
	for _, s := range c.stmts {
		_ = s.Close() // closing the connection reports the error that matters
	}
	err := c.c.Close()
	c.file.leave()
	return err
}

func (c *conn) prepare(q string) (driver.Stmt, error) {
	if s := c.stmts[q]; s != nil {
		return s, nil
	}
	s, err := c.c.Prepare(q)
	if err != nil {
		return nil, c.classify(err)
	}
	c.stmts[q] = s
	return s, nil
}

func (c *conn) Exec(q string, args []any) (int64, error) {
	s, err := c.prepare(q)
	if err != nil {
		return 0, err
	}
	res, err := s.(driver.StmtExecContext).ExecContext(context.Background(), named(args))
	if err != nil {
		return 0, c.classify(err)
	}
	return res.RowsAffected()
}

// control runs a transaction statement or pragma.
func (c *conn) control(q string) error {
	s, err := c.prepare(q)
	if err != nil {
		return err
	}
	_, err = s.(driver.StmtExecContext).ExecContext(context.Background(), nil)
	return c.classify(err)
}

// Do implements relational.Session. It executes immediately: a statement has no round
// trip.
func (c *conn) Do(q string, args []any) (changed bool, err error) {
	n, err := c.Exec(q, args)
	return n > 0, err
}

// Each implements relational.Session. f must not run the same query. It returns the
// cause of c.until when that ends, even during a sum over many rows.
func (c *conn) Each(q string, f func(r relational.Row) error, args []any) (err error) {
	s, err := c.prepare(q)
	if err != nil {
		return err
	}
	rows, err := s.(driver.StmtQueryContext).QueryContext(c.until, named(args))
	if err != nil {
		return c.ended(c.classify(err))
	}
	defer func() {
		if cerr := rows.Close(); err == nil {
			err = c.classify(cerr)
		}
	}()
	values := make([]driver.Value, len(rows.Columns()))
	r := make(relational.Row, len(values))
	for {
		switch err := rows.Next(values); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return c.ended(c.classify(err))
		}
		for i, v := range values {
			r[i] = v
		}
		if err := f(r); err != nil {
			return err
		}
		// The driver checks the context only until the first row.
		if c.until.Err() != nil {
			return context.Cause(c.until)
		}
	}
}

// ended returns the cause of c.until if err results from its end.
func (c *conn) ended(err error) error {
	end := c.until.Err()
	if e, ok := errors.AsType[*sqlite.Error](err); end != nil && (errors.Is(err, end) || ok && e.Code() == sqlite3.SQLITE_INTERRUPT) {
		return context.Cause(c.until)
	}
	return err
}

// number returns the single number that a query selects; 0 for no row.
func (c *conn) number(q string) (n int64, err error) {
	err = c.Each(q, func(r relational.Row) error { n, _ = r[0].(int64); return nil }, nil)
	return n, err
}

func (c *conn) Ask(asks []relational.Ask) error {
	for _, a := range asks {
		if err := c.Each(a.Query, a.Row, a.Args); err != nil {
			return err
		}
	}
	return nil
}

func (c *conn) Later(q string, f func(r relational.Row), args []any) error {
	return c.Each(q, func(r relational.Row) error { f(r); return nil }, args)
}

func named(args []any) []driver.NamedValue {
	if len(args) == 0 {
		return nil
	}
	v := make([]driver.NamedValue, len(args))
	for i, a := range args {
		v[i] = driver.NamedValue{Ordinal: i + 1, Value: a}
	}
	return v
}

// A coded error has a result code of SQLite.
type coded interface {
	error
	Code() int
}

// A codeError is a coded error that does not come from the driver.
type codeError struct {
	code int
	text string
}

func (e codeError) Error() string { return e.text }
func (e codeError) Code() int     { return e.code }

// classify maps errors of SQLite to those of package storage.
func classify(err error) error {
	var e coded
	if !errors.As(err, &e) {
		return err
	}
	return classifyCode(e.Code(), err)
}

// classifyCode is classify for an error of a result code.
func classifyCode(code int, err error) error {
	switch code {
	case sqlite3.SQLITE_IOERR_DATA:
		return fmt.Errorf("%w: the checksum of a page is wrong: %w", storage.ErrDamaged, err)
	case sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMOPEN:
		// A full quota and a read-only file system are reported by these codes.
		return fmt.Errorf("%w: %w", storage.ErrFull, err)
	}
	if errno := syscall.Errno(lastErrno.Load()); code&0xff == sqlite3.SQLITE_CANTOPEN && (errno == syscall.EMFILE || errno == syscall.ENFILE) {
		return &storage.Fault{Class: storage.ClassMember, Err: fmt.Errorf(
			"no file descriptor is left to open the database (%w); raise the limit with ulimit -n, or LimitNOFILE= in systemd: %w", errno, err)}
	}
	switch code & 0xff {
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN:
		return fmt.Errorf("%w: %w", storage.ErrFull, err)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return fmt.Errorf("%w: %w", storage.ErrBusy, err)
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%w: %w", storage.ErrDamaged, err)
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM:
		return &storage.Fault{Class: storage.ClassMember, Err: err}
	}
	return err
}

// ioFailed reports whether the connection must be reopened after err.
func ioFailed(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_IOERR
}

// storeFailed reports whether err concerns the whole store and not only the call.
// Damage of a single row does not.
func storeFailed(err error) bool {
	return ioFailed(err) || storage.ClassOf(err) >= storage.ClassMember || errors.Is(err, storage.ErrFull) || errors.Is(err, storage.ErrBusy)
}

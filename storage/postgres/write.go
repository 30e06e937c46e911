package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/relational"
)

const (
	// writeTime bounds a transaction, from the wait for a connection on.
	writeTime = 20 * time.Second
	maxTries  = 10
)

// A line is a way to the server: a pool of connections. It implements
// relational.Driver.
type line struct {
	db   *DB
	pool *pgxpool.Pool
}

// Write implements relational.Driver, on the line of everything but renewals.
func (db *DB) Write(ctx context.Context, soft bool, fn func(c *relational.Conn) error) error {
	return line{db, db.pool}.Write(ctx, soft, fn)
}

// Read implements relational.Driver.
func (db *DB) Read(ctx context.Context, fn func(c *relational.Conn) error) error {
	return line{db, db.pool}.Read(ctx, fn)
}

// Report implements relational.Driver.
func (db *DB) Report(ctx context.Context, fn func(c *relational.Conn) error) error {
	return line{db, db.pool}.Report(ctx, fn)
}

// Write implements relational.Driver. A transaction that met another one in an
// unlucky moment is made again. One that has begun is brought to its end, also
// when the caller is not interested any more.
func (l line) Write(ctx context.Context, soft bool, fn func(c *relational.Conn) error) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	for try := 1; ; try++ {
		done, err := l.transaction(ctx, soft, fn)
		if err == nil {
			l.db.tell(done)
			return nil
		}
		if !unlucky(err) || try == maxTries || ctx.Err() != nil {
			return err
		}
		l.db.counters.repeated(err)
		if try > 2 {
			wait := time.NewTimer(time.Duration(rand.Int64N(int64(time.Millisecond) << try)))
			select {
			case <-ctx.Done():
			case <-wait.C:
			}
			wait.Stop()
		}
	}
}

func (l line) transaction(ctx context.Context, soft bool, fn func(c *relational.Conn) error) (done relational.Done, err error) {
	db := l.db
	conn, err := acquire(ctx, l.pool)
	if err != nil {
		return done, err
	}
	ctx, cancel := ending(ctx)
	defer cancel()
	defer conn.Release() // a broken connection is not used again
	x := &session{ctx: ctx, conn: conn.Conn()}
	x.note("begin isolation level read committed") // whatever the default of the database
	for _, setting := range db.settings {
		x.note(setting)
	}
	if soft {
		x.note("set local synchronous_commit = off")
	}
	c := relational.NewConn(x, &db.dialect, true)
	c.Begin(*db.sinks.Load())
	err = db.try(c, fn)
	wrote := c.Wrote()
	if err == nil {
		err = c.Flush()
	}
	if err == nil {
		err = x.commit()
	}
	if err != nil {
		if x.sent {
			db.rollback(conn)
		}
		return done, err
	}
	if wrote && !soft {
		c.Changed()
	}
	return c.Done(), nil
}

// acquire waits for a connection of a pool.
func acquire(ctx context.Context, pool *pgxpool.Pool) (*pgxpool.Conn, error) {
	wait, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	conn, err := pool.Acquire(wait)
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return conn, classify(err)
}

// ending is a context that ends with the deadline of ctx, or after writeTime, but
// not when ctx is canceled: a commit that is interrupted may have happened.
func ending(ctx context.Context) (context.Context, context.CancelFunc) {
	until := time.Now().Add(writeTime)
	if d, ok := ctx.Deadline(); ok && d.Before(until) {
		until = d
	}
	return context.WithDeadline(context.WithoutCancel(ctx), until)
}

// try runs fn. A panic in it becomes its error.
func (db *DB) try(c *relational.Conn, fn func(c *relational.Conn) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in the store: %v", p)
			db.log.Error("panic in the store", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	return fn(c)
}

// rollback ends a transaction that failed. A connection that does not answer is
// closed, and the server ends the transaction by itself.
func (db *DB) rollback(conn *pgxpool.Conn) {
	if conn.Conn().IsClosed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), idleInTransaction)
	defer cancel()
	if _, err := conn.Conn().PgConn().Exec(ctx, "rollback").ReadAll(); err != nil {
		_ = conn.Conn().Close(ctx)
	}
}

func (l line) Read(ctx context.Context, fn func(c *relational.Conn) error) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	conn, err := acquire(ctx, l.pool)
	if err != nil {
		return err
	}
	defer conn.Release()
	err = fn(relational.NewConn(&session{ctx: ctx, conn: conn.Conn()}, &l.db.dialect, false))
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func (l line) Report(ctx context.Context, fn func(c *relational.Conn) error) error {
	select {
	case l.db.reports <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-l.db.reports }()
	return l.Read(ctx, fn)
}

// tell is called after each commit. A hook that panics does not spoil the call
// that has committed.
func (db *DB) tell(done relational.Done) {
	if done.Sinks != nil {
		db.sinks.Store(done.Sinks)
	}
	db.counters.agents.Add(int64(done.AgentsTaken))
	db.counters.claims.Add(int64(done.ClaimsTaken))
	if done.Notification.Due {
		db.idle.due()
	}
	db.Notify(done.Notification)
	if db.cfg.Committed == nil || !done.Worth {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			db.log.Error("panic in a watcher of the store", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	db.cfg.Committed(done.Commit)
}

// The codes of PostgreSQL's errors that mean something here; appendix A of its
// manual lists all.
const (
	codeProtocol        = "08P01"
	codeUnique          = "23505"
	codeSerialization   = "40001"
	codeDeadlock        = "40P01"
	codeReadOnly        = "25006"
	codeLockTimeout     = "55P03"
	codeNoRight         = "42501"
	codeNoPassword      = "28P01"
	codeNoRole          = "28000"
	codeNoDatabase      = "3D000"
	codeDiskFull        = "53100"
	codeNoMemory        = "53200"
	codeServerIO        = "58030"
	codeTooMany         = "53300"
	codeCanceled        = "57014"
	codeIdleTransaction = "25P03"
	codeCorrupted       = "XX001"
	codeIndexCorrupted  = "XX002"
)

func codeOf(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// unlucky reports an error that another try may not meet: it has changed nothing.
func unlucky(err error) bool {
	switch codeOf(err) {
	case codeUnique, codeSerialization, codeDeadlock:
		return true
	}
	return false
}

// classify gives errors of the server and of the way to it the meaning that package
// storage names.
func classify(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	code := codeOf(err)
	switch code {
	case "":
		if known(err) {
			return err
		}
	case codeDiskFull, codeReadOnly:
		return fmt.Errorf("%w: %w", storage.ErrFull, err)
	case codeNoMemory:
		return fmt.Errorf("%w: %w", storage.ErrBusy, err)
	case codeServerIO:
		return &storage.Fault{Class: storage.ClassStore, Err: err}
	case codeCorrupted, codeIndexCorrupted:
		return fmt.Errorf("%w: %w", storage.ErrDamaged, err)
	case codeSerialization, codeDeadlock, codeLockTimeout, codeTooMany, codeCanceled, codeIdleTransaction:
		return fmt.Errorf("%w: %w", storage.ErrBusy, err)
	}
	// The connection is gone, or the server is about to go: 08 and 57P are those.
	var connect *pgconn.ConnectError
	if pgconn.SafeToRetry(err) || pgconn.Timeout(err) || errors.As(err, &connect) || isGone(err) || code != "" && (code[:2] == "08" || code[:3] == "57P") {
		return storage.Unanswered(err)
	}
	return err
}

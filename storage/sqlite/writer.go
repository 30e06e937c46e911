package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"

	"github.com/claybot/claybot/storage/relational"
)

// errClosed is returned by calls on a closed store.
var errClosed = errors.New("the store is closed")

const (
	queueLength = 1024
	// maxBatch bounds the size of a commit, and so the wait for one.
	maxBatch = 512
)

// A call is one write in the queue of the writer. run may be repeated: it must change
// only the database and what its caller reads after the answer.
type call struct {
	run func(c *relational.Conn) error
	// soft calls may be lost in a power failure before the next commit; a batch of only soft
	// calls is not synced.
	soft  bool
	state atomic.Int32 // 0 queued, 1 taken by the writer, 2 withdrawn
	err   error
	done  chan struct{}
}

// Write implements relational.Driver. A batch of only soft calls is not synced.
func (db *DB) Write(ctx context.Context, soft bool, fn func(c *relational.Conn) error) error {
	if err := context.Cause(ctx); err != nil { // the select below could still queue the call
		return err
	}
	cl := &call{soft: soft, done: make(chan struct{}), run: fn}
	select {
	case <-db.stop:
		return errClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	case db.queue <- cl:
	}
	select {
	case <-cl.done:
	case <-ctx.Done():
		if cl.state.CompareAndSwap(0, 2) {
			return context.Cause(ctx)
		}
		<-cl.done
	case <-db.stopped:
		select {
		case <-cl.done:
		default:
			return errClosed
		}
	}
	return cl.err
}

// writeAll is the writer: it commits queued calls until the store closes.
func (db *DB) writeAll() {
	defer close(db.stopped)
	batch := make([]*call, 0, maxBatch)
	for {
		batch = batch[:0]
		select {
		case cl := <-db.queue:
			batch = append(batch, cl)
		case <-db.stop:
			if len(db.queue) == 0 {
				return
			}
		}
		// Let the callers just answered queue their next call.
		runtime.Gosched()
		for len(batch) < maxBatch {
			select {
			case cl := <-db.queue:
				batch = append(batch, cl)
				continue
			default:
			}
			break
		}
		db.commit(batch)
		clear(batch)
	}
}

// commit runs a batch and answers it.
func (db *DB) commit(batch []*call) {
	live := batch[:0]
	for _, cl := range batch {
		if cl.state.CompareAndSwap(0, 1) {
			live = append(live, cl)
		}
	}
	if len(live) == 0 {
		return
	}
	err := db.notice(db.transaction(live))
	if err != nil && !storeFailed(err) && len(live) > 1 {
		// One call failed the transaction: retry each in its own.
		for i, cl := range live {
			if err := db.notice(db.transaction(live[i : i+1])); err != nil {
				cl.err = err
			}
		}
	} else if err != nil {
		for _, cl := range live {
			cl.err = err
		}
	}
	for _, cl := range live {
		close(cl.done)
	}
}

// transaction runs calls and commits. An error means that nothing was written for any
// of them; the error of a rejected call is stored in the call.
func (db *DB) transaction(calls []*call) (err error) {
	if err := db.refused(); err != nil {
		return err
	}
	c, err := db.writerConn()
	if err != nil {
		return err
	}
	soft, wrote := true, false
	for _, cl := range calls {
		soft = soft && cl.soft
	}
	if err := db.setSync(c, soft); err != nil {
		return err
	}
	if err := c.control("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			db.abandon(c, err)
		}
		c.broken = nil // the next transaction checks again
	}()
	c.Begin(db.sinks)
	for _, cl := range calls {
		c.Call()
		cl.err = db.try(c, cl)
		if c.broken != nil {
			return c.broken
		}
		if cl.err != nil && (c.Wrote() || storeFailed(cl.err)) {
			return cl.err
		}
		wrote = wrote || c.Wrote()
		if c.Wrote() && !cl.soft {
			c.Changed()
		}
	}
	if err := c.Flush(); err != nil {
		return err
	}
	if c.broken != nil {
		return c.broken
	}
	if err := c.control("COMMIT"); err != nil {
		return err
	}
	if wrote {
		db.commits.Add(1)
	}
	db.tell(c.Done())
	return nil
}

// Commits returns how many commits have changed something since Open.
func (db *DB) Commits() int64 { return db.commits.Load() }

// tell calls the hook after a commit. A panic of the hook does not end the writer.
func (db *DB) tell(done relational.Done) {
	if done.Sinks != nil {
		db.sinks = *done.Sinks
	}
	if db.committed == nil || !done.Worth {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			db.log.Error("panic in a watcher of the store", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	db.committed(done.Commit)
}

// try runs one call. It converts a panic to an error.
func (db *DB) try(c *conn, cl *call) (err error) {
	defer func() {
		if p := recover(); p != nil {
			c.Spoiled() // roll back what it did
			err = fmt.Errorf("panic in the store: %v", p)
			db.log.Error("panic in the store", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	return cl.run(c.Conn)
}

// abandon ends a failed transaction. After an I/O error it closes the connection; the
// next transaction opens another.
func (db *DB) abandon(c *conn, cause error) {
	err := c.control("ROLLBACK") // fails if SQLite has rolled back already
	if ioFailed(cause) || ioFailed(err) {
		c.giveUp()
		db.writer = nil
	}
}

// writerConn returns the writing connection and reopens it if necessary.
func (db *DB) writerConn() (*conn, error) {
	if db.writer != nil {
		return db.writer, nil
	}
	if err := db.moved(); err != nil {
		return nil, err
	}
	c, err := connect(context.Background(), db.path, writerPragmas)
	if err != nil {
		return nil, err
	}
	db.writer, db.unsynced = c, false
	return c, nil
}

// setSync chooses whether the next commit is synced. An unsynced commit becomes durable
// with the next synced one: both are in the same log.
func (db *DB) setSync(c *conn, soft bool) error {
	if db.unsynced == soft {
		return nil
	}
	mode := "PRAGMA synchronous=FULL"
	if soft {
		mode = "PRAGMA synchronous=NORMAL"
	}
	if err := c.control(mode); err != nil {
		return err
	}
	db.unsynced = soft
	return nil
}

package relational

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/claybot/claybot/storage"
)

var (
	_ storage.Index         = (*Store)(nil)
	_ storage.AgentReader   = (*Store)(nil)
	_ storage.Settings      = (*Store)(nil)
	_ storage.Inbox         = (*Store)(nil)
	_ storage.Leases        = (*Store)(nil)
	_ storage.Receipts      = (*Store)(nil)
	_ storage.Parking       = (*Store)(nil)
	_ storage.ParkedReader  = (*Store)(nil)
	_ storage.Runs          = (*Store)(nil)
	_ storage.RunReader     = (*Store)(nil)
	_ storage.Ratings       = (*Store)(nil)
	_ storage.RunControl    = (*Store)(nil)
	_ storage.Outbox        = (*Store)(nil)
	_ storage.OutboxReader  = (*Store)(nil)
	_ storage.OutboxControl = (*Store)(nil)
	_ storage.Access        = (*Store)(nil)
	_ storage.CheckpointSet = (*Store)(nil)
	_ storage.Chatter       = (*Store)(nil)
	_ storage.StatsReader   = (*Store)(nil)
	_ storage.Ledger        = (*Store)(nil)
	_ storage.Reminders     = (*Store)(nil)
	_ storage.Documents     = (*Store)(nil)
	_ storage.Memories      = (*Store)(nil)
	_ storage.MemoryHistory = (*Store)(nil)
	_ storage.Relays        = (*Store)(nil)
	_ storage.Usages        = (*Store)(nil)
	_ storage.Questions     = (*Store)(nil)
	_ storage.Budgets       = (*Store)(nil)
	_ storage.Members       = (*Store)(nil)
	_ storage.Claims        = (*Store)(nil)
)

// A Driver brings transactions to a database.
type Driver interface {
	// Write runs fn in a transaction and returns nil once that is durable. An error
	// means that nothing was written. fn may be run again; it changes nothing but the
	// database and what its caller reads after nil. A soft transaction loses
	// nothing worth keeping when power fails right after it.
	Write(ctx context.Context, soft bool, fn func(c *Conn) error) error
	// Read runs fn on a connection that reads what is committed, until ctx is
	// done.
	Read(ctx context.Context, fn func(c *Conn) error) error
	// Report is Read for what may read very many rows: reports wait for each other
	// and nothing else waits for them.
	Report(ctx context.Context, fn func(c *Conn) error) error
}

// A Store is the tables of claybot in a database, in parts by groups of tables. Its
// methods may be used by many goroutines.
type Store struct {
	*core
	access
	inbox
	index
	leases
	members
	notes
	outbox
	parking
	relays
	runs
	schedule
	spending
	upkeep
	workspaces
}

// The parts of a Store, each with the core that they share.
type (
	access     struct{ *core } // grants, pairings, marks
	inbox      struct{ *core } // messages, keys
	index      struct{ *core } // agents, settings
	leases     struct{ *core } // who works on an agent, and the messages it takes
	members    struct{ *core } // nodes, claims
	notes      struct{ *core } // documents, memories
	outbox     struct{ *core } // outbox
	parking    struct{ *core } // parked
	relays     struct{ *core } // sinks, relays
	runs       struct{ *core } // runs, events, questions
	schedule   struct{ *core } // ledger, reminders
	spending   struct{ *core } // budgets and sums of usage
	upkeep     struct{ *core } // all tables: counts, removal of what is old or restored
	workspaces struct{ *core } // workspaces
)

// A core is what the parts of a Store share: the way to the database.
type core struct {
	driver     Driver
	dialect    *Dialect
	log        *slog.Logger
	duplicates atomic.Int64
	lone       lone
	looked     atomic.Int64 // when HeedClock looked at the clock last
	unchanged  unchanged
}

// New returns the tables behind a driver.
func New(d Driver, dialect *Dialect, log *slog.Logger) *Store {
	c := &core{driver: d, dialect: dialect, log: log}
	return &Store{c, access{c}, inbox{c}, index{c}, leases{c}, members{c}, notes{c}, outbox{c}, parking{c}, relays{c}, runs{c}, schedule{c}, spending{c}, upkeep{c}, workspaces{c}}
}

// Alone says that one process uses the store.
func (db *core) Alone() bool { return db.dialect.Alone }

func (db *core) now() int64 { return db.dialect.Clock() }

// update runs fn in a transaction and returns nil once that is durable; see Driver.
func (db *core) update(ctx context.Context, fn func(c *Conn) error) error {
	return db.change(ctx, false, fn)
}

func (db *core) change(ctx context.Context, soft bool, fn func(c *Conn) error) error {
	var touched touch
	err := db.driver.Write(ctx, soft, func(c *Conn) error {
		c.touched = touch{}
		err := fn(c)
		touched = c.touched
		return err
	})
	db.unchanged.changed(touched) // after an error, too: it may be committed all the same
	return err
}

// updateLightly is update for what need not survive a loss of power.
func (db *core) updateLightly(ctx context.Context, fn func(c *Conn) error) error {
	return db.change(ctx, true, fn)
}

// A transactor is a core, or a part with its core.
type transactor interface {
	update(ctx context.Context, fn func(c *Conn) error) error
	updateLightly(ctx context.Context, fn func(c *Conn) error) error
	read(ctx context.Context, fn func(c *Conn) error) error
}

// write runs fn in a transaction and returns its result once that is durable.
func write[T any](ctx context.Context, db transactor, fn func(c *Conn) (T, error)) (T, error) {
	return resultOf(ctx, db.update, fn)
}

// lightly is write for what need not survive a loss of power.
func lightly[T any](ctx context.Context, db transactor, fn func(c *Conn) (T, error)) (T, error) {
	return resultOf(ctx, db.updateLightly, fn)
}

func resultOf[T any](ctx context.Context, run func(context.Context, func(c *Conn) error) error, fn func(c *Conn) (T, error)) (result T, err error) {
	err = run(ctx, func(c *Conn) (err error) {
		result, err = fn(c)
		return err
	})
	if err != nil {
		return *new(T), err
	}
	return result, nil
}

// selectAll returns what f makes of each row of a query.
func selectAll[T any](ctx context.Context, db transactor, f func(r Row) T, q string, args ...any) (all []T, err error) {
	err = db.read(ctx, func(c *Conn) (err error) {
		all, err = rowsOf(c, f, q, args...)
		return err
	})
	return all, err
}

// failed is err with what failed; nil for nil.
func failed(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}

// result is v, or the zero value and what failed.
func result[T any](v T, err error, format string, args ...any) (T, error) {
	if err != nil {
		return *new(T), failed(err, format, args...)
	}
	return v, nil
}

func (db *core) read(ctx context.Context, fn func(c *Conn) error) error {
	return db.driver.Read(ctx, fn)
}

func (db *core) report(ctx context.Context, fn func(c *Conn) error) error {
	return db.driver.Report(ctx, fn)
}

// deleteOne runs a DELETE that must find something.
func (db *core) deleteOne(ctx context.Context, q string, args ...any) error {
	return db.update(ctx, func(c *Conn) error {
		n, err := c.exec(q, args...)
		return need(n > 0, err)
	})
}

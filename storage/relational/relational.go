package relational

import (
	"context"
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
	_ storage.Runs          = (*Store)(nil)
	_ storage.RunReader     = (*Store)(nil)
	_ storage.Outbox        = (*Store)(nil)
	_ storage.OutboxReader  = (*Store)(nil)
	_ storage.OutboxControl = (*Store)(nil)
	_ storage.Access        = (*Store)(nil)
	_ storage.Marks         = (*Store)(nil)
	_ storage.Figures       = (*Store)(nil)
	_ storage.Ledger        = (*Store)(nil)
	_ storage.Reminders     = (*Store)(nil)
	_ storage.Documents     = (*Store)(nil)
	_ storage.Memories      = (*Store)(nil)
	_ storage.MemoryHistory = (*Store)(nil)
	_ storage.Relays        = (*Store)(nil)
	_ storage.Usages        = (*Store)(nil)
	_ storage.Questions     = (*Store)(nil)
	_ storage.Budgets       = (*Store)(nil)
	_ storage.Nodes         = (*Store)(nil)
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
	// and nobody waits for them.
	Report(ctx context.Context, fn func(c *Conn) error) error
}

// A Store is the tables of claybot in a database. Its methods may be used by many
// goroutines.
type Store struct {
	driver     Driver
	dialect    *Dialect
	log        *slog.Logger
	duplicates atomic.Int64
	lone       lone
	looked     atomic.Int64 // when HeedClock looked at the clock last
}

// New returns the tables behind a driver.
func New(d Driver, dialect *Dialect, log *slog.Logger) *Store {
	return &Store{driver: d, dialect: dialect, log: log}
}

// Alone says that one process uses the store.
func (db *Store) Alone() bool { return db.dialect.Alone }

func (db *Store) now() int64 { return db.dialect.Clock() }

// write runs fn in a transaction and returns its result once that is durable.
func write[T any](ctx context.Context, db *Store, fn func(c *Conn) (T, error)) (T, error) {
	return submit(ctx, db, false, fn)
}

// lightly is write for what need not survive a loss of power.
func lightly[T any](ctx context.Context, db *Store, fn func(c *Conn) (T, error)) (T, error) {
	return submit(ctx, db, true, fn)
}

func submit[T any](ctx context.Context, db *Store, soft bool, fn func(c *Conn) (T, error)) (T, error) {
	var result, zero T
	err := db.driver.Write(ctx, soft, func(c *Conn) (err error) {
		result, err = fn(c)
		return err
	})
	if err != nil {
		return zero, err
	}
	return result, nil
}

func (db *Store) read(ctx context.Context, fn func(c *Conn) error) error {
	return db.driver.Read(ctx, fn)
}

func (db *Store) report(ctx context.Context, fn func(c *Conn) error) error {
	return db.driver.Report(ctx, fn)
}

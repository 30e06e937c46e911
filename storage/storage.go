// Package storage is what claybot asks of durable storage: agents with their
// histories, the inbox, runs with their events, the outbox, and who may speak.
//
// It guarantees, for every implementation: a method that returned nil has made
// its effect durable; a method that returned an error has changed nothing, or
// something whose repetition is harmless; every write for an agent carries a
// Lease and fails with ErrLeaseLost when a newer holder exists.
//
// Each interface is what one kind of caller uses: intake (Inbox, Parking), the worker
// that holds an agent (Leases, Runs, Histories), the deliverer (Outbox), maintenance
// (Pruner, StatsReader), and readers, which list, search and show (AgentReader, Receipts,
// RunReader, OutboxReader). A package takes those that it needs, or declares a smaller
// one.
//
// This package must not import an implementation; the suite that each of them
// passes is storage/storagetest.
package storage

import (
	"context"
	"errors"
	"time"

	"github.com/claybot/claybot"
)

// Errors that callers branch on.
var (
	// ErrLeaseLost: another holder has the agent; nothing was written.
	ErrLeaseLost = errors.New("lease lost")
	// ErrNotFound: no such agent, run, message or code.
	ErrNotFound = errors.New("not found")
	// ErrLocked: another process uses the data directory.
	ErrLocked = errors.New("data directory is in use")
	// ErrDamaged: the store cannot be read and was left as it is.
	ErrDamaged = errors.New("store is damaged")
	// ErrCanceled: the run was to be canceled before it could succeed.
	ErrCanceled = errors.New("the run is to be canceled")
	// ErrBusy: somebody else holds the store for the moment. Trying again is
	// right.
	ErrBusy = errors.New("the store is busy")
	// ErrTooMany: the cap on what one agent may keep, or one answer may hold, is
	// reached.
	ErrTooMany = errors.New("too many")
	// ErrState: what is there is not in the state that was asked for.
	ErrState = errors.New("not possible in this state")
	// ErrFull: no space or no right to write; nothing was stored. Trying again
	// later is right.
	ErrFull = errors.New("the data directory cannot be written: full or read-only")
)

// Checkpoints keeps small facts across restarts, such as the time of a connector's
// last good poll. A missing key is the empty string.
type Checkpoints interface {
	Checkpoint(ctx context.Context, key string) (string, error)
	SetCheckpoint(ctx context.Context, key, value string) error
}

// CheckpointRepeats is the prefix of the keys of checkpoints that tell retries of an
// HTTP request from new ones. Their values start with a time, as unix milliseconds in
// 13 digits; Prune removes them a day after it.
const CheckpointRepeats = "repeats/"

// StatsReader counts what is in the store, for status.
type StatsReader interface {
	Stats(ctx context.Context) (Stats, error)
	// ParkedTotals counts what is parked.
	ParkedTotals(ctx context.Context) (ParkedTotals, error)
}

// Stats are the counts of a store.
type Stats struct {
	Agents  int
	Waiting int // messages that no run has taken
	// OldestWaiting is when the longest waiting of them arrived; 0 for none. Silent
	// ones, which may wait for ever, are not counted.
	OldestWaiting claybot.Time
	Runs          map[claybot.RunState]int
	Outbox        map[claybot.SendState]int
	Duplicates    int64 // duplicates that were posted since the process started
	Ambiguous     int64 // attempts that ended ambiguous, ever
}

// Ignore returns err, or nil when it is expected, as errors.Is tells.
func Ignore(err, expected error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}

// Pruner removes what is old. Every store keeps the same things for the same time.
type Pruner interface {
	Prune(ctx context.Context, at time.Time) error
}

// Package storage declares the interfaces of durable storage: agents with their
// histories, the inbox, runs with their events, the outbox, and access.
//
// Every implementation guarantees: the effect of a method that returned nil is
// durable; a method that returned an error has changed nothing, or can safely
// be retried; every write for an agent carries a Lease and fails with
// ErrLeaseLost if a newer holder exists.
//
// Each interface serves one kind of caller: intake (Inbox, Parking), the worker that
// holds an agent (Leases, Runs, Histories), the deliverer (Outbox), maintenance (Pruner,
// StatsReader), and readers, which list, search and show (AgentReader, Receipts,
// RunReader, OutboxReader). A package uses those that it needs, or declares a smaller
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
	// ErrLeaseLost means that another holder has the agent; nothing was
	// written.
	ErrLeaseLost = errors.New("lease lost")
	// ErrNotFound means that the agent, run, message or code does not exist.
	ErrNotFound = errors.New("not found")
	// ErrLocked means that another process uses the data directory.
	ErrLocked = errors.New("data directory is in use")
	// ErrDamaged means that the store cannot be read; it was left unchanged.
	ErrDamaged = errors.New("store is damaged")
	// ErrCanceled means that a cancel was requested before the run could
	// succeed.
	ErrCanceled = errors.New("the run is to be canceled")
	// ErrBusy means that the store is temporarily busy. Retry the call.
	ErrBusy = errors.New("the store is busy")
	// ErrTooMany means that the limit of one agent or one response is reached.
	ErrTooMany = errors.New("too many")
	// ErrQuota means that the files of an owner take all the space that they may take.
	ErrQuota = errors.New("the quota of files is used up")
	// ErrState means that the current state does not allow the call.
	ErrState = errors.New("not possible in this state")
	// ErrFull means that the disk is full or not writable; nothing was stored.
	// Retry later.
	ErrFull = errors.New("the data directory cannot be written: full or read-only")
)

// Checkpoints stores small values across restarts, such as the time of a
// connector's last successful poll. A missing key is the empty string.
type Checkpoints interface {
	Checkpoint(ctx context.Context, key string) (string, error)
	SetCheckpoint(ctx context.Context, key, value string) error
}

// A CheckpointSet lists and removes checkpoints as well.
type CheckpointSet interface {
	Checkpoints
	// SetCheckpoints sets several in one transaction, which may be lost with the power
	// until the next other write; an empty value removes a key.
	SetCheckpoints(ctx context.Context, values map[string]string) error
	// AdvanceCheckpoint sets the checkpoint key to a number, and with it others as
	// SetCheckpoints does, in one transaction that is durable. If key has a greater number, it stores
	// nothing and returns false; of several calls at once, the greatest number wins in all members.
	AdvanceCheckpoint(ctx context.Context, key string, to int64, values map[string]string) (bool, error)
	// ListCheckpoints lists those whose keys begin with prefix, in order of the keys.
	ListCheckpoints(ctx context.Context, prefix string) ([]Checkpoint, error)
}

// CheckpointStopped is the prefix of the keys of checkpoints with the nodes that operators have
// stopped, as kind/name; see package nodes.
const CheckpointStopped = "stopped node/"

// CheckpointVoices is the prefix of the keys of checkpoints with the languages and zones of people,
// which members keep in memory; see Version.
const CheckpointVoices = "voice"

// CheckpointDead is the prefix of the keys of checkpoints that members keep in memory, to
// know the routes that are dead. Version.DeadRoutes counts their changes.
const CheckpointDead = "dead route/"

// CheckpointMoved is the prefix of the keys of checkpoints that say which chats got a new id, by
// connector/id. Members keep them in memory; Version.DeadRoutes
// counts their changes as well.
const CheckpointMoved = "moved chat/"

// CheckpointRepeats is the prefix of the keys of checkpoints that are needed for a day at most: those
// that distinguish retries of an HTTP request from new requests, those of albums that are
// for an agent, and the addresses at which slash commands of Slack are answered. Their values start
// with a time, as unix milliseconds in 13 digits; Prune removes them a day after it.
const CheckpointRepeats = "repeats/"

// CheckpointAsked is the prefix of the keys of checkpoints with the requests for access that
// operators were notified of, by connector/userId; it is one of CheckpointRepeats.
const CheckpointAsked = CheckpointRepeats + "asked/"

// StatsReader counts what is in the store, for status.
type StatsReader interface {
	Stats(ctx context.Context) (Stats, error)
	// ParkedTotals counts the parking table.
	ParkedTotals(ctx context.Context) (ParkedTotals, error)
	// FlowLoad counts the unfinished runs of a workflow, dry ones included. The counts are exact also
	// after a crash, for all members; but runs that began under a version without counters are missing until they
	// end, and from then on. Its cost does not depend on them.
	FlowLoad(ctx context.Context, flow string) (FlowLoad, error)
}

// A FlowLoad is how many unfinished runs a workflow has: those that are Open are at work or wait for their
// turn, those that are Waiting wait for a person, a time, a program or an agent.
type FlowLoad struct{ Open, Waiting int }

// Stats are the counts of a store.
type Stats struct {
	Agents  int
	Waiting int // pending messages
	// OldestWaiting is when the oldest of them arrived; 0 for none. It ignores
	// silent messages, which may stay pending forever.
	OldestWaiting claybot.Time
	Runs          map[claybot.RunState]int
	Outbox        map[claybot.SendState]int
	Duplicates    int64 // duplicates that were posted since the process started
	Ambiguous     int64 // attempts that ended ambiguous, ever
}

// Ignore returns nil if err is expected, according to errors.Is, and err
// otherwise.
func Ignore(err, expected error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}

// Pruner removes old data.
type Pruner interface {
	// Prune removes what was over a retention before at. Call it once a day or more often.
	// It works in small transactions, so that others go on meanwhile, and may be cut short
	// at any time: the next call goes on.
	Prune(ctx context.Context, at time.Time, keep Retention) error
}

// Retention is how long the store keeps finished data; 0: forever. Unfinished data is
// always kept: runs that have not ended with their events and messages, messages that wait,
// and what is not sent.
type Retention struct {
	Events   time.Duration // of ended runs, by whole runs; but those that a sink was not told of for KeepUnpublished at least
	Runs     time.Duration // with their events, their questions and the messages they took or that were skipped
	Outgoing time.Duration // messages that were sent, or given up, with their receipts
	Ledger   time.Duration // but the newest scheduled firing of each task
	Usage    time.Duration // with the budgets of that time
}

// KeepUnpublished is how long the events of an ended run are kept for a sink that is not
// available.
const KeepUnpublished = 30 * 24 * time.Hour

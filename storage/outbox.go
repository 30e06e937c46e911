package storage

import (
	"context"
	"time"

	"github.com/claybot/claybot"
)

// Outbox keeps what is to be sent, oldest first for each destination.
type Outbox interface {
	// Enqueue adds outgoing messages that belong to no run. Known ids are
	// ignored. It returns those added, as stored.
	Enqueue(ctx context.Context, o ...claybot.Outgoing) ([]claybot.Outgoing, error)
	// Unsent returns up to limit unfinished messages of one destination with
	// N above after, oldest first.
	Unsent(ctx context.Context, dest string, after int64, limit int) ([]claybot.Outgoing, error)
	// UnsentDests lists the destinations that have unfinished messages.
	UnsentDests(ctx context.Context) ([]string, error)
	// Attempt records that the bytes are about to leave. c is the claim of the
	// destination (DestClaim); ErrLeaseLost when it has ended.
	Attempt(ctx context.Context, c Claim, id string) error
	// Resolve records how an attempt or a lookup ended; ErrLeaseLost as Attempt.
	Resolve(ctx context.Context, c Claim, id string, r Resolution) error
	// OutgoingByID loads one; ErrNotFound.
	OutgoingByID(ctx context.Context, id string) (claybot.Outgoing, error)
}

// OutboxReader shows what was sent and what is still to be sent.
type OutboxReader interface {
	// OutgoingPage lists outgoing messages, the newest first.
	OutgoingPage(ctx context.Context, q OutgoingQuery) ([]claybot.Outgoing, error)
	// SentAfter returns what was put into the outbox for dest after position n,
	// oldest first.
	SentAfter(ctx context.Context, dest string, n int64, limit int) ([]claybot.Outgoing, error)
	// LastN is the largest position of a message for dest, whatever became of
	// it; 0 for none.
	LastN(ctx context.Context, dest string) (int64, error)
	// Transcript returns the newest limit messages that people wrote to an
	// agent, commands included, and messages sent to dest, oldest first: what a
	// chat window shows.
	Transcript(ctx context.Context, agent claybot.AgentID, dest string, limit int) ([]Entry, error)
}

// OutboxControl is what an operator does with messages that did not arrive.
type OutboxControl interface {
	// Retry makes a failed message wait again, and one that waits be due at
	// once; ErrNotFound, ErrState for one that was sent or is under way.
	Retry(ctx context.Context, id string) (claybot.Outgoing, error)
	// Discard gives up a message that was not sent: it fails with the cause;
	// ErrNotFound, ErrState for one that was sent or is under way.
	Discard(ctx context.Context, id, cause string) (claybot.Outgoing, error)
}

// An OutgoingQuery picks outgoing messages; empty fields pick all.
type OutgoingQuery struct {
	State  claybot.SendState
	Open   bool   // only those that are not at their end: waiting, attempted or ambiguous
	Dest   string // as Route.Dest
	Before int64  // N of the last one of the page before
	Limit  int    // at most; 0: 50
}

// A Resolution is the end of an attempt. State is sent, failed, ambiguous, or
// waiting for another try not before Due.
type Resolution struct {
	State   claybot.SendState
	Receipt string
	Cause   string
	Due     time.Time
	// Free says that the attempt is not to be counted (a 429 refused it).
	Free   bool
	Resent bool // from now on sends carry the mark of a repeated send
	// Copies is how many messages people may see already that no receipt names.
	// The store keeps the larger number, so recording it twice changes nothing.
	Copies int
	NoEdit bool // the message to edit is gone: send a fresh one, whatever EditOf names
	// Edit is the platform's id of a message that a look-up found: from now on
	// sends edit it.
	Edit string
	// Notice is added to the outbox in the same commit, so that a message never
	// ends without it. It is ignored where the message has ended already.
	Notice *claybot.Outgoing
}

// An Entry is one line of a chat window: a message or an outgoing.
type Entry struct {
	Message  *claybot.AgentMessage
	Outgoing *claybot.Outgoing
}

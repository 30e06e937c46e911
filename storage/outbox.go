package storage

import (
	"context"
	"time"

	"github.com/claybot/claybot"
)

// Outbox stores the messages to send, oldest first for each destination.
type Outbox interface {
	// Enqueue adds outgoing messages that belong to no run. Known ids are
	// ignored. It returns those added, as stored.
	Enqueue(ctx context.Context, o ...claybot.Outgoing) ([]claybot.Outgoing, error)
	// Unsent returns up to limit unfinished messages of one destination with
	// N above after, oldest first.
	Unsent(ctx context.Context, dest string, after int64, limit int) ([]claybot.Outgoing, error)
	// UnsentDests lists the destinations that have unfinished messages.
	UnsentDests(ctx context.Context) ([]string, error)
	// Attempt records that a message is about to be sent. c is the claim of the
	// destination (DestClaim); ErrLeaseLost if it has ended.
	Attempt(ctx context.Context, c Claim, id string) error
	// Resolve records the outcome of an attempt or a lookup; ErrLeaseLost as in
	// Attempt.
	Resolve(ctx context.Context, c Claim, id string, r Resolution) error
	// OutgoingByID loads one; ErrNotFound.
	OutgoingByID(ctx context.Context, id string) (claybot.Outgoing, error)
}

// OutboxReader reads sent and pending outgoing messages.
type OutboxReader interface {
	// OutgoingPage lists outgoing messages, the newest first.
	OutgoingPage(ctx context.Context, q OutgoingQuery) ([]claybot.Outgoing, error)
	// SentAfter returns the messages that were added to the outbox for dest
	// after position n, oldest first.
	SentAfter(ctx context.Context, dest string, n int64, limit int) ([]claybot.Outgoing, error)
	// SentAs returns the messages for dest that one message of the platform shows or has
	// shown, by its receipt: the newest 20, newest first.
	SentAs(ctx context.Context, dest, receipt string) ([]claybot.Outgoing, error)
	// LastN returns the largest position of a message for dest, in any state; 0
	// for none.
	LastN(ctx context.Context, dest string) (int64, error)
	// Transcript returns what a chat window shows: the newest limit messages
	// that users wrote to an agent, commands, edits and deletions included, and
	// that were sent to dest, oldest first. An edit that its agent reads later,
	// see Posting.Late, is the system message that it became.
	Transcript(ctx context.Context, agent claybot.AgentID, dest string, limit int) ([]Entry, error)
}

// OutboxControl lets operators retry or discard undelivered messages.
type OutboxControl interface {
	// Retry makes a failed or waiting message due at once; ErrNotFound, or
	// ErrState if it was sent or is being sent.
	Retry(ctx context.Context, id string) (claybot.Outgoing, error)
	// Discard fails an unsent message with a cause; ErrNotFound, or ErrState if
	// it was sent or is being sent.
	Discard(ctx context.Context, id, cause string) (claybot.Outgoing, error)
}

// An OutgoingQuery picks outgoing messages; empty fields pick all.
type OutgoingQuery struct {
	State  claybot.SendState
	Open   bool   // only unfinished ones: waiting, attempted or ambiguous
	Dest   string // as Route.Dest
	Before int64  // N of the last one of the page before
	Limit  int    // at most; 0: 50
}

// CauseRestored is why a message was not sent that a restored database had not sent yet.
const CauseRestored = "the database was restored from a copy"

// A Resolution is the end of an attempt. State is sent, failed, ambiguous, or
// waiting for another try not before Due.
type Resolution struct {
	State   claybot.SendState
	Receipt string
	Cause   string
	Due     time.Time
	// Free means that the attempt does not count (it got a 429).
	Free   bool
	Resent bool // later sends carry the mark of a resend
	// Copies is how many messages without a receipt users may already see. The
	// store keeps the larger number, so recording it twice changes nothing.
	Copies int
	NoEdit bool // the message to edit is gone: send a new one, whatever EditOf is
	// Edit is the platform's id of a message that a lookup found: later sends
	// edit it.
	Edit string
	// Notices are added to the outbox in the same commit, so that a message never
	// ends without them. They are ignored if the message has already ended.
	Notices []claybot.Outgoing
	// Mark is set in the same commit, unless its key is empty or the message has already
	// ended.
	Mark Checkpoint
}

// SentOnly reports whether r says no more than that the message was sent.
func (r Resolution) SentOnly() bool {
	plain := r.Cause == "" && r.Due.IsZero() && !r.Free && !r.Resent && r.Copies == 0 && !r.NoEdit && r.Edit == ""
	return r.State == claybot.SendSent && plain && len(r.Notices) == 0 && r.Mark == (Checkpoint{})
}

// An Entry is one line of a chat window: a received or an outgoing message.
type Entry struct {
	Message  *claybot.AgentMessage
	Skipped  string // of Message: why no run takes it; empty if one did or it is pending
	Outgoing *claybot.Outgoing
}

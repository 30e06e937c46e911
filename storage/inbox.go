package storage

import (
	"context"
	"errors"
	"time"

	"github.com/claybot/claybot"
)

// Inbox keeps messages until a run takes them.
type Inbox interface {
	// Post stores a message and returns when it is durable. The order of an
	// agent's messages is the order of their commits.
	//
	// A message whose ID or one of whose Keys is known is a repeat. An ID that
	// is known under other Keys is another message: it is stored with the
	// first key appended to its id (Telegram may reuse update ids).
	//
	// A reset marks the unfinished run as canceled and drops the user messages
	// that wait before it; what others than the person wrote waits behind the
	// reset from then on. A cancel only marks the run, and never waits itself;
	// one that names a run (Run) is for that run alone.
	// Either makes an agent due whose run is paused.
	//
	// An answer is bound to the unfinished run that it names, and is skipped
	// with reason run_ended when there is no such run. It makes the agent due
	// when the run is paused and has all its answers now.
	//
	// A message that reserves a run id (Run) and ends without a run leaves a
	// run of that id behind: CANCELED, with RunCanceled as its only event.
	//
	// A message with a Firing is entered into the ledger with the same commit;
	// an instant (with its attempt) that the ledger has is a repeat. A silent
	// message makes no agent due.
	Post(ctx context.Context, p Posting) (Posted, error)
	// Drop ends waiting messages with a reason; none given means all that
	// wait. Those taken by a run stay. It returns what was dropped.
	Drop(ctx context.Context, agent claybot.AgentID, reason string, ids ...claybot.MessageID) ([]claybot.MessageID, error)
	// Reschedule computes the due time of waiting messages anew after a change
	// of settings: those of one agent, or of all when none is named.
	Reschedule(ctx context.Context, agent claybot.AgentID, wait func(claybot.AgentID, claybot.Descriptor) Wait) error
}

// Leases hands out the agents that are due, with the messages that wait. An agent is
// due when its messages have waited long enough, or when it has an unfinished run that
// no node holds.
type Leases interface {
	// Acquire leases up to limit due agents to node, longest due first, with at
	// most batch waiting messages each. In a store that one process uses alone it
	// never returns an agent that node holds already. next is when another agent
	// will be due, zero for never.
	Acquire(ctx context.Context, node string, ttl time.Duration, limit, batch int) (held []Held, next time.Time, err error)
	// Renew prolongs a lease and reports who asked to cancel the agent's run,
	// empty for none.
	Renew(ctx context.Context, l Lease, ttl time.Duration) (renewed Lease, cancel string, err error)
	// Release lets an agent go without ending its run. orderly means that the
	// pass was cut by a shutdown and does not count as an attempt.
	Release(ctx context.Context, l Lease, w Wait, orderly bool) error
	// Take binds up to limit due waiting messages to the running run, commits
	// a MessagesInjected event for them and returns both. It takes nothing
	// while the first waiting message is a reset, and stops before the first
	// message that accept refuses.
	Take(ctx context.Context, l Lease, run claybot.RunID, limit int, accept func(claybot.AgentMessage) bool) ([]claybot.AgentMessage, error)
	// Settle ends one waiting message without a run: replies and further
	// messages for the same agent commit with it, and the lease ends.
	Settle(ctx context.Context, l Lease, id claybot.MessageID, s Settlement) ([]claybot.Outgoing, error)
}

// Receipts shows what became of messages.
type Receipts interface {
	// Receipt tells what became of a message; ErrNotFound.
	Receipt(ctx context.Context, id claybot.MessageID) (Receipt, error)
	// LastReceipt tells what became of the newest user message of an agent.
	LastReceipt(ctx context.Context, agent claybot.AgentID) (Receipt, error)
	// FindMessages returns the ids of the messages that ref names, oldest first:
	// its id, one of its keys, a run that took it or was reserved for it, an
	// outgoing message that answers it, or, as connector/channel/receipt, what
	// the platform calls such an outgoing message. At most 20, the newest.
	FindMessages(ctx context.Context, ref string) ([]claybot.MessageID, error)
	// Waiting returns up to limit messages that no run has taken, oldest first.
	Waiting(ctx context.Context, agent claybot.AgentID, limit int) ([]claybot.AgentMessage, error)
}

// A Lease is one node's right to process one agent until Until. Token is
// larger for every new holder.
type Lease struct {
	Agent claybot.AgentID
	Node  string
	Token int64
	Until time.Time
}

// Held is an agent whose lease was just acquired, with all that its worker
// needs to go on.
type Held struct {
	Lease Lease
	// Run is the unfinished run, nil when there is none; Bound are its
	// messages.
	Run   *claybot.Run
	Bound []claybot.AgentMessage
	// Waiting are the messages no run has taken, oldest first, up to the limit
	// given to Acquire.
	Waiting []claybot.AgentMessage
	// From is the node whose lease had run out; empty when the agent was released, or
	// when one process uses the store alone.
	From string
}

// A Wait says how long messages are held back to be taken together. An agent
// is due at min(last arrival + Quiet, oldest waiting arrival + Max).
type Wait struct {
	Quiet time.Duration
	Max   time.Duration
}

// A Posting is one message on its way into an inbox, with all that commits
// together with it.
type Posting struct {
	To      claybot.AgentID
	Message claybot.AgentMessage
	Wait    Wait
	// MaxWaiting is the most messages that may wait; 0 means no limit. Beyond
	// it the message is stored as skipped with reason inbox_full.
	MaxWaiting int
	// Skip, when set, stores the message as ended with this reason; it will
	// never be part of a run.
	Skip string
	// Replies are put into the outbox with the message. For a cancel message
	// they are used when a run was in flight, IfIdle when none was.
	Replies []claybot.Outgoing
	IfIdle  []claybot.Outgoing
	// By is who asks when the message is a cancel; empty means user.
	By string
}

// Posted is what a Post did.
type Posted struct {
	// Added is false when the message was known; nothing else happened then.
	Added bool
	// Skipped is the reason why the message will not run, if so.
	Skipped string
	// Canceled is the unfinished run that a reset or cancel message asked to
	// end.
	Canceled claybot.RunID
	// Dropped are the waiting messages that a reset discarded.
	Dropped []claybot.MessageID
	// Outbox are the replies as stored, in order.
	Outbox []claybot.Outgoing
}

// A Settlement is how a message ended that no run took.
type Settlement struct {
	Reason  string        // recorded skip reason, for example "reset"
	Usage   claybot.Usage // what it took, added to the totals of the agent
	Calls   []ModelCall   // that Usage is made of
	Replies []claybot.Outgoing
	Posts   []claybot.AgentMessage // to the same agent, due at once
	Wait    Wait                   // for what waits besides
	End     Checkpoint             // of the agent's history, see Ending
}

// A Receipt is the life of one message.
type Receipt struct {
	Message claybot.AgentMessage
	Agent   claybot.AgentID
	Skipped string // why no run took it; empty when one did or it still waits
	Run     *claybot.Run
	Replies []claybot.Outgoing
	Stored  claybot.Time // when it was accepted
	// Parked is why its agent cannot be used, of a message that is parked for that;
	// Agent is empty then when there is none yet.
	Parked string
	// Of a message that waits: when its agent is due, what the agent works on, what
	// that run waits for (nil while it is at work or ends), how many messages wait
	// before this one, and the first ten of them.
	Due    claybot.Time
	Busy   claybot.RunID
	Paused *claybot.Awaiting
	Ahead  int
	Before []claybot.MessageID
}

// The bounds of the parking table, in messages.
const (
	MaxParked      = 10_000 // in all
	MaxParkedAgent = 1_000  // of one agent
)

// ErrParkingFull: the parking table takes no more messages. It is a fault of
// ClassStore: the source keeps the message until the operator has made room.
var ErrParkingFull = errors.New("the parking table is full")

// A Parked is a message whose agent cannot be used.
type Parked struct {
	To      claybot.Descriptor
	Message claybot.AgentMessage
	Cause   string // why, for operators

	// Set by the store: the key of the agent's descriptor, the first message that was
	// parked while the agent could not be used, and when this one was parked.
	Key     string
	Episode claybot.MessageID
	At      claybot.Time
	// Damaged is why the stored message cannot be read. Message has only its ID then,
	// and To is zero when the descriptor does not belong to Key.
	Damaged error
}

// A ParkedAgent is an agent with parked messages, by the key of its descriptor.
type ParkedAgent struct {
	Key      string
	Messages int
}

// ParkRules say when a message is parked.
type ParkRules struct {
	All   int // the most messages in the table; 0: no limit
	Agent int // the most messages of one agent; 0: no limit
	// Behind parks the message only if others of the agent are parked. Its cause is
	// that of the oldest one.
	Behind bool
	// Posted parks the message although it was posted: what follows from it is not
	// done yet.
	Posted bool
}

// ParkedTotals count the parking table.
type ParkedTotals struct {
	Messages int          `json:"messages"`
	Agents   int          `json:"agents"`
	Oldest   claybot.Time `json:"oldest,omitempty"` // when the message was parked that waits longest
}

// Parking keeps messages whose agent cannot be used, in order, until it can. An
// agent is named by the key of its descriptor, as it may not exist yet.
type Parking interface {
	// Park keeps a message behind those of the same agent and returns once it is
	// durable. It returns false when the message was parked or posted before, by the
	// rules of Inbox.Post. ErrNotFound: no others of the agent are parked, and it was
	// to be parked behind them. ErrTooMany: the limit of the agent is reached. A Fault
	// of ClassStore that wraps ErrParkingFull: that of the table is.
	Park(ctx context.Context, p Parked, r ParkRules) (added bool, err error)
	// IsParked reports whether messages of the agent of d are parked.
	IsParked(ctx context.Context, d claybot.Descriptor) (bool, error)
	// ParkedAgents returns up to limit agents with parked messages, in the order of
	// their oldest ones. It reads no message.
	ParkedAgents(ctx context.Context, limit int) ([]ParkedAgent, error)
	// ParkedOf returns up to limit messages of the agent with a key, the oldest first.
	ParkedOf(ctx context.Context, key string, limit int) ([]Parked, error)
	// Unpark removes a message that was posted. One that is not parked is ignored.
	Unpark(ctx context.Context, id claybot.MessageID) error
	// EndParked ends a message that will not run, parked or not: it stores the message
	// as skipped with the reason, and removes it from the table. It returns false when
	// the message was posted before. A redelivery of it is a repeat, and Receipt tells
	// the reason, also where the agent does not exist.
	EndParked(ctx context.Context, p Parked, reason string) (ended bool, err error)
}

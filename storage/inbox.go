package storage

import (
	"context"
	"errors"
	"time"

	"github.com/claybot/claybot"
)

// Inbox stores messages until a run takes them.
type Inbox interface {
	// Post stores a message and returns when it is durable. The order of an
	// agent's messages is the order of their commits.
	//
	// A message whose ID or one of whose Keys is known is a duplicate. An ID
	// that is known with other Keys is a different message: it is stored with
	// the first key appended to its id (Telegram may reuse update ids).
	//
	// A reset marks the unfinished run as canceled and drops the pending user
	// messages before it; pending messages that no user wrote move behind the
	// reset. A cancel only marks the run and is never pending itself; one with
	// a Run applies to that run only. Both make an agent with a paused run due.
	//
	// An answer is bound to the unfinished run that it names, and is skipped
	// with reason run_ended if there is no such run. It makes the agent due if
	// it completes the answers of a paused run.
	//
	// A message that reserves a run id (Run) and ends without a run leaves a
	// run of that id behind: CANCELED, with RunCanceled as its only event.
	//
	// An edit or a deletion changes the message of the same agent that it Amends, see
	// claybot.AgentMessage, and is stored as skipped: with reason edit or deletion if it
	// changed something, else with reason late. A message that was deleted while pending is
	// skipped with reason deleted.
	//
	// A message with a Firing is entered into the ledger in the same commit; a
	// known instant (with its attempt) is a duplicate. A silent message makes
	// no agent due.
	Post(ctx context.Context, p Posting) (Posted, error)
	// Drop ends pending messages with a reason; without ids, all of them.
	// Messages taken by a run stay. It returns the dropped ids.
	Drop(ctx context.Context, agent claybot.AgentID, reason string, ids ...claybot.MessageID) ([]claybot.MessageID, error)
	// Reschedule recomputes the due times of pending messages after a change of
	// settings, for one agent or, if agent is empty, for all.
	Reschedule(ctx context.Context, agent claybot.AgentID, wait func(claybot.AgentID, claybot.Descriptor) Wait) error
}

// Leases hands out due agents with their pending messages. An agent is due if its
// messages have waited long enough, or if it has an unfinished run that no member
// holds.
type Leases interface {
	// Acquire leases up to limit due agents to node, longest due first, with at
	// most batch pending messages each. In a store that one process uses alone it
	// never returns an agent that node already holds. next is when the next agent
	// is due, zero for never.
	Acquire(ctx context.Context, node string, ttl time.Duration, limit, batch int) (acquired []Acquired, next time.Time, err error)
	// Renew extends a lease and returns who requested to cancel the agent's
	// run, empty for none.
	Renew(ctx context.Context, l Lease, ttl time.Duration) (renewed Lease, cancel string, err error)
	// Release ends a lease without ending the run. orderly means that a
	// shutdown interrupted the pass, which then does not count as an attempt.
	Release(ctx context.Context, l Lease, w Wait, orderly bool) error
	// Take binds up to limit due pending messages to the current run, commits a
	// MessagesInjected event for them and returns both. It takes nothing if the
	// first pending message is a reset, and stops before the first message that
	// accept rejects.
	Take(ctx context.Context, l Lease, run claybot.RunID, limit int, accept func(claybot.AgentMessage) bool) ([]claybot.AgentMessage, error)
	// Settle ends one pending message without a run. Replies and further
	// messages for the same agent commit with it, and the lease ends.
	Settle(ctx context.Context, l Lease, id claybot.MessageID, s Settlement) ([]claybot.Outgoing, error)
}

// Receipts reports the state of messages.
type Receipts interface {
	// Receipt returns the receipt of a message; ErrNotFound.
	Receipt(ctx context.Context, id claybot.MessageID) (Receipt, error)
	// LastReceipt returns the receipt of the newest user message of an agent.
	LastReceipt(ctx context.Context, agent claybot.AgentID) (Receipt, error)
	// Typed returns the ids of the newest limit messages of people that were stored for an
	// agent after a position, oldest first, with the position of the last one. Edits,
	// deletions and commands are among them. Without any, the position stays as it is.
	Typed(ctx context.Context, agent claybot.AgentID, after int64, limit int) (ids []claybot.MessageID, last int64, err error)
	// FindMessages returns the ids of the messages that ref identifies, oldest
	// first, at most the newest 20. ref is an id, a key, a run that took or was
	// reserved for the message, an outgoing message that answers it, or
	// connector/channel/receipt with the platform's id of such an outgoing
	// message.
	FindMessages(ctx context.Context, ref string) ([]claybot.MessageID, error)
	// Waiting returns up to limit messages that no run has taken, oldest first.
	Waiting(ctx context.Context, agent claybot.AgentID, limit int) ([]claybot.AgentMessage, error)
}

// A Lease is the exclusive right of one member to process one agent until
// Until. Each new holder gets a larger Token.
type Lease struct {
	Agent claybot.AgentID
	Node  string
	Token int64
	Until time.Time
	// Before is the token of the lease before this one: the holder of that one knows that
	// nothing of the agent's history was written in between.
	Before int64
}

// An Arrival is what a message for an agent meets.
type Arrival struct {
	Parked bool // earlier messages of the agent are parked
	Asked  bool // a question of the agent is open
	Open   bool // a question of any agent is open
	// Agent is what AgentFor would return; nil if AgentFor has to be called.
	Agent *claybot.Agent
}

// Acquired is an agent with a new lease, and all that its worker needs to continue.
type Acquired struct {
	Lease Lease
	// Run is the unfinished run, nil if there is none; Bound are its messages.
	Run   *claybot.Run
	Bound []claybot.AgentMessage
	// Waiting are the pending messages, oldest first, up to the batch given to
	// Acquire.
	Waiting []claybot.AgentMessage
	// Started: the run began in the commit that leased the agent, see Start.
	Started bool
	// Agent is the agent as of the commit; nil if its worker has to read it.
	Agent *claybot.Agent
	// From is the member whose lease had expired; empty if the agent was released, or
	// if one process uses the store alone.
	From string
}

// A Wait is how long messages are held back to be handled together. An agent is
// due at min(last arrival + Quiet, oldest waiting arrival + Max).
type Wait struct {
	Quiet time.Duration
	Max   time.Duration
	// Hold, if set, is how long nothing makes the agent due but a new message, or Reschedule: it is
	// stopped.
	Hold time.Duration
}

// A Start lets a message begin a run in the commit that stores it. Node gets the lease of
// the agent for TTL, as by Acquire, and the run begins with the id Run, as by Begin.
type Start struct {
	Node string
	TTL  time.Duration
	Run  claybot.RunID
	With Beginning
}

// A Posting is one message to post, with everything that commits with it.
type Posting struct {
	To      claybot.AgentID
	Message claybot.AgentMessage
	Wait    Wait
	// Urgent makes the agent due at once, with all that waits before the message, whatever Wait says.
	Urgent bool
	// MaxWaiting is the maximum number of pending messages; 0 means no limit.
	// Beyond it the message is stored as skipped with reason inbox_full.
	MaxWaiting int
	// Room, if set, is how many unfinished runs of its workflow a message may find at most, less one. One
	// that finds more is stored as skipped with reason flow_full or, with Refuse, is not stored: Post
	// returns ErrFlowFull.
	Room   *FlowLoad
	Refuse bool
	// Skip, if set, stores the message as skipped with this reason; it never
	// becomes part of a run.
	Skip string
	// Replies are added to the outbox with the message. For a cancel message,
	// Replies apply if a run was in flight, and IfIdle if none was. A mark among the replies
	// applies only to a message that waits for a run.
	Replies []claybot.Outgoing
	IfIdle  []claybot.Outgoing
	// Grant is stored with the message, see Access.Grant, unless the message is a duplicate.
	Grant *Grant
	// Role is stored with the message, see Roles.SetRole, unless the message is a duplicate. ErrState,
	// and nothing is stored, where SetRole returns it.
	Role *RoleChange
	// Late is the text of the silent system message that an edit becomes if a run has taken
	// the message; empty: it becomes none. Replies of a deletion apply if it canceled a run, and
	// IfIdle if it discarded a pending message.
	Late string
	// By is who requests a cancel; empty means user.
	By string
	// Start begins a run with a message of a user that makes its agent due at once, if the
	// agent was idle: nobody held it, and nothing waited. nil: it waits for Acquire.
	Start *Start
}

// The reasons for which edits and deletions are stored as skipped, and SkippedDeleted, for
// which a message is that was deleted while it waited.
const (
	SkippedFlow     = "flow/"    // it has started the flow whose name follows
	SkippedEdit     = "edit"     // it has replaced the text of a pending message
	SkippedDeletion = "deletion" // it has ended a pending message, or canceled its run
	SkippedLate     = "late"     // it came too late to change anything
	SkippedDeleted  = "deleted"
	// SkippedBusy has a message that started no run of a workflow because one was at work, and
	// SkippedNewer one whose place a newer message took; see claybot.FlowStart.Busy.
	SkippedBusy  = "flow_busy"
	SkippedNewer = "flow_newer"
	// SkippedFlowFull has a message whose workflow has as many unfinished runs as it may have.
	SkippedFlowFull = "flow_full"
	// SkippedStopped has a message that was stopped before its turn; see claybot.StopCommand.
	SkippedStopped = "canceled"
)

// ErrFlowFull means that a workflow has as many unfinished runs as it may have. Nothing is stored: the
// message may be sent again later.
var ErrFlowFull = errors.New("the workflow has as many unfinished runs as it may have")

// Posted is the result of a Post.
type Posted struct {
	// Added is false for a duplicate, which changed nothing.
	Added bool
	// Skipped is the reason why the message will not run; empty if it will.
	Skipped string
	// Canceled is the unfinished run that a reset, cancel or deletion canceled.
	Canceled claybot.RunID
	// Dropped are the pending messages that a reset or deletion discarded.
	Dropped []claybot.MessageID
	// Outbox are the replies as stored, in order.
	Outbox []claybot.Outgoing
	// Role is Posting.Role as stored, see Roles.SetRole; nil for a duplicate.
	Role *RoleChange
	// Started is the agent with the run that began, if Posting.Start was used.
	Started *Acquired
}

// A Settlement is the end of a message that no run took.
type Settlement struct {
	Reason  string        // recorded skip reason, for example "reset"
	Usage   claybot.Usage // its usage, added to the totals of the agent
	Calls   []ModelCall   // that Usage is made of
	Replies []claybot.Outgoing
	Posts   []claybot.AgentMessage // to the same agent, due at once
	Wait    Wait                   // for other pending messages
	End     Checkpoint             // of the agent's history, see Ending
}

// A Receipt is the state and history of one message.
type Receipt struct {
	Message claybot.AgentMessage
	Agent   claybot.AgentID
	Skipped string // why no run took it; empty if one did or it is pending
	Run     *claybot.Run
	Replies []claybot.Outgoing
	Stored  claybot.Time // when it was accepted
	// Parked is why the agent of a parked message cannot be used. Agent is then
	// empty if it does not exist yet.
	Parked string
	// For a pending message: when its agent is due, the current run of the agent,
	// what that run waits for (nil while it works or ends), the number of pending
	// messages before this one, and the first ten of them.
	Due    claybot.Time
	Busy   claybot.RunID
	Paused *claybot.Awaiting
	Ahead  int
	Before []claybot.MessageID
}

// Limits of the parking table, in messages.
const (
	MaxParked      = 10_000 // in all
	MaxParkedAgent = 1_000  // of one agent
)

// ErrParkingFull means that the parking table is full. It is a fault of
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

// ParkRules are the conditions for parking a message.
type ParkRules struct {
	All   int // the most messages in the table; 0: no limit
	Agent int // the most messages of one agent; 0: no limit
	// Person and PersonBytes are the most messages of one person in all conversations that are
	// parked for the same cause, and the most bytes of their texts; 0: no limit.
	Person, PersonBytes int
	// Behind parks the message only if others of the agent are parked. Its cause is
	// that of the oldest one, unless that is ParkedUnapproved.
	Behind bool
	// Posted parks the message although it was posted, because its follow-up steps
	// are not done yet.
	Posted bool
}

// ParkedUnapproved is the Cause of a parked message whose sender asks for access. It is of no agent
// that cannot be used, so ParkedTotals do not count it.
const ParkedUnapproved = "its sender waits for access"

// ParkedTotals count the parking table.
type ParkedTotals struct {
	Messages int          `json:"messages"`
	Agents   int          `json:"agents"`
	Oldest   claybot.Time `json:"oldest,omitempty"` // when the oldest message was parked
}

// Parking stores messages whose agent cannot be used, in order, until it can.
// Agents are identified by the key of their descriptor, because they may not
// exist yet.
type Parking interface {
	// Park appends a message to those of the same agent and returns once it is
	// durable. It returns false for a duplicate of a parked or posted message, by the
	// rules of Inbox.Post. ErrNotFound if r.Behind is set and no others of the agent
	// are parked. ErrTooMany if the limit of the agent or of the person is reached. A Fault of
	// ClassStore that wraps ErrParkingFull if the limit of the table is reached.
	Park(ctx context.Context, p Parked, r ParkRules) (added bool, err error)
	// Arrival returns what decides about the next message for the agent of d.
	Arrival(ctx context.Context, d claybot.Descriptor) (Arrival, error)
	// Repark replaces a parked message, with its ID, and its cause; ErrNotFound.
	Repark(ctx context.Context, p Parked) error
	// Unpark removes a message that was posted. One that is not parked is ignored.
	Unpark(ctx context.Context, id claybot.MessageID) error
	// EndParked ends a message that will not run, parked or not: it stores the message
	// as skipped with the reason, and removes it from the table. It returns false when
	// the message was posted before. A redelivery of it is a duplicate, and Receipt
	// reports the reason, even if the agent does not exist.
	EndParked(ctx context.Context, p Parked, reason string) (ended bool, err error)
}

// ParkedReader lists parked messages.
type ParkedReader interface {
	// ParkedAgents returns up to limit agents with parked messages, in the order of
	// their oldest ones. It reads no message.
	ParkedAgents(ctx context.Context, limit int) ([]ParkedAgent, error)
	// ParkedOf returns up to limit messages of the agent with a key, the oldest first.
	ParkedOf(ctx context.Context, key string, limit int) ([]Parked, error)
}

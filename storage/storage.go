// Package storage is what claybot asks of durable storage: agents with their
// histories, the inbox, runs with their events, the outbox, and who may speak.
//
// It guarantees, for every implementation: a method that returned nil has made
// its effect durable; a method that returned an error has changed nothing, or
// something whose repetition is harmless; every write for an agent carries a
// Lease and fails with ErrLeaseLost when a newer holder exists.
//
// This package must not import an implementation; the suite that each of them
// passes is storage/storagetest.
package storage

import (
	"context"
	"errors"
	"iter"
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
	// ErrTooMany: the cap on what one agent may keep is reached.
	ErrTooMany = errors.New("too many")
	// ErrFull: no space or no right to write; nothing was stored. Trying again
	// later is right.
	ErrFull = errors.New("the data directory cannot be written: full or read-only")
)

// A Lease is one node's right to process one agent until Until. Token is
// larger for every new holder.
type Lease struct {
	Agent claybot.AgentID
	Node  string
	Token int64
	Until time.Time
}

// Agents keeps who agents are and what they remember.
type Agents interface {
	// AgentFor finds the agent of d or creates it with a start record. Any
	// number of concurrent first calls for equal descriptors make one agent.
	// The Name and Owner of a known background agent become those of d.
	AgentFor(ctx context.Context, d claybot.Descriptor) (claybot.Agent, error)
	// NewAgent is AgentFor for an agent that, when it is made now, begins with
	// these background settings.
	NewAgent(ctx context.Context, d claybot.Descriptor, b claybot.Background) (claybot.Agent, error)
	// Delete takes an agent away: its files move to the quarantine, what waits
	// for it is dropped, its unfinished run fails. The next AgentFor makes a
	// new agent. ErrNotFound when there is none.
	Delete(ctx context.Context, id claybot.AgentID) error
	// SaveResult keeps a tool result that is too long for history, and returns
	// the path of its file below the data directory. The same call may save
	// again.
	SaveResult(ctx context.Context, id claybot.AgentID, call, text string) (path string, err error)
	// Agent loads one agent; ErrNotFound when there is none.
	Agent(ctx context.Context, id claybot.AgentID) (claybot.Agent, error)
	// SaveState replaces the mutable part of an agent as a whole.
	SaveState(ctx context.Context, l Lease, s claybot.State) error
	// MoveChannel renames a channel of a connector in the descriptors of its
	// agents; their ids and histories stay. A second call changes nothing.
	MoveChannel(ctx context.Context, connector, from, to string) error
	// OpenHistory opens the history of the leased agent for its worker.
	OpenHistory(ctx context.Context, l Lease) (History, error)
	// Records reads what an agent remembers without writing anything.
	Records(ctx context.Context, id claybot.AgentID) ([]claybot.Record, error)
}

// A History is one agent's records while a worker works on it. It is used by
// one goroutine.
type History interface {
	// Records returns what follows the most recent start or reset, appended
	// ones included. Records that a summary stands for are left out. The caller
	// must not change it.
	Records() []claybot.Record
	// Marker is the most recent start or reset; a zero Record when there is
	// none, or when a summary is newer.
	Marker() claybot.Record
	// Append adds records; they and all buffered ones are durable when it
	// returns.
	Append(ctx context.Context, r ...claybot.Record) error
	// Buffer adds records that a crash may lose. Only for what can be made
	// again from the inbox: the messages of an unfinished run.
	Buffer(ctx context.Context, r ...claybot.Record) error
	Close() error
}

// Index is the identity copy of all agents in the message store. It finds an
// agent without reading its directory.
type Index interface {
	// IndexedAgent finds an agent by its descriptor's key; ErrNotFound.
	IndexedAgent(ctx context.Context, d claybot.Descriptor) (claybot.AgentID, error)
	// IndexedDescriptor is the copy of an agent's descriptor; ErrNotFound.
	IndexedDescriptor(ctx context.Context, id claybot.AgentID) (claybot.Descriptor, error)
	// IndexedAgentByID is the entry of one agent; ErrNotFound.
	IndexedAgentByID(ctx context.Context, id claybot.AgentID) (IndexEntry, error)
	// IndexAgents adds agents, or gives known ids a new descriptor.
	IndexAgents(ctx context.Context, agents ...claybot.Agent) error
	// UnindexAgent removes an agent whose directory is gone.
	UnindexAgent(ctx context.Context, id claybot.AgentID) error
	// IndexedAgents yields all, in no particular order.
	IndexedAgents(ctx context.Context) iter.Seq2[IndexEntry, error]
	// Foreground yields the user agents that a person has written to, the one
	// with the newest user message first; at a tie, the one whose message was
	// accepted later. Only those of the owners named (OwnerID), or all when
	// owners is nil.
	Foreground(ctx context.Context, owners []string) iter.Seq2[IndexEntry, error]
	// Children lists the subagents that parent made, oldest first.
	Children(ctx context.Context, parent claybot.AgentID) ([]IndexEntry, error)
	// Started counts the subagents below root that were made at since or later.
	Started(ctx context.Context, root claybot.AgentID, since claybot.Time) (int, error)
}

// An IndexEntry is one agent in the index, with the figures that change with
// every message and are therefore kept there.
type IndexEntry struct {
	ID         claybot.AgentID
	Descriptor claybot.Descriptor
	LastUserAt claybot.Time
	Usage      claybot.Usage
	Waiting    int
	CreatedAt  claybot.Time
	Run        claybot.RunID // the unfinished one, if there is one
	Busy       bool          // it has a run, or something that will start one
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
	Message claybot.Message
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

// Held is an agent whose lease was just acquired, with all that its worker
// needs to go on.
type Held struct {
	Lease Lease
	// Run is the unfinished run, nil when there is none; Bound are its
	// messages.
	Run   *claybot.Run
	Bound []claybot.Message
	// Waiting are the messages no run has taken, oldest first, up to the limit
	// given to Acquire.
	Waiting []claybot.Message
}

// Inbox keeps messages until a run takes them, and says which agent is next.
// An agent is due when its messages have waited long enough, or when it has an
// unfinished run that nobody holds.
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
	// reset from then on. A cancel only marks the run, and never waits itself.
	// Either makes an agent due whose run is paused.
	//
	// An answer is bound to the unfinished run that it names, and is skipped
	// with reason run_ended when there is no such run. It makes the agent due
	// when the run is paused and has all its answers now.
	//
	// A message with a Firing is entered into the ledger with the same commit;
	// an instant (with its attempt) that the ledger has is a repeat. A silent
	// message makes no agent due.
	Post(ctx context.Context, p Posting) (Posted, error)
	// Acquire leases up to limit due agents to node, longest due first, with at
	// most batch waiting messages each. It never returns an agent that node
	// holds already. next is when another agent will be due, zero for never.
	Acquire(ctx context.Context, node string, ttl time.Duration, limit, batch int) (held []Held, next time.Time, err error)
	// Renew prolongs a lease and reports who asked to cancel the agent's run,
	// empty for nobody.
	Renew(ctx context.Context, l Lease, ttl time.Duration) (renewed Lease, cancel string, err error)
	// Release lets an agent go without ending its run. orderly means that the
	// pass was cut by a shutdown and does not count as an attempt.
	Release(ctx context.Context, l Lease, w Wait, orderly bool) error
	// Take binds up to limit due waiting messages to the running run, commits
	// a MessagesInjected event for them and returns both. It takes nothing
	// while the first waiting message is a reset, and stops before the first
	// message that accept refuses.
	Take(ctx context.Context, l Lease, run claybot.RunID, limit int, accept func(claybot.Message) bool) ([]claybot.Message, error)
	// Drop ends waiting messages with a reason; none given means all that
	// wait. Those taken by a run stay. It returns what was dropped.
	Drop(ctx context.Context, agent claybot.AgentID, reason string, ids ...claybot.MessageID) ([]claybot.MessageID, error)
	// Settle ends one waiting message without a run: replies and further
	// messages for the same agent commit with it, and the lease ends.
	Settle(ctx context.Context, l Lease, id claybot.MessageID, s Settlement) ([]claybot.Outgoing, error)
	// Reschedule computes the due time of waiting messages anew after a change
	// of settings.
	Reschedule(ctx context.Context, wait func(claybot.Descriptor) Wait) error
	// Receipt tells what became of a message; ErrNotFound.
	Receipt(ctx context.Context, id claybot.MessageID) (Receipt, error)
	// LastReceipt tells what became of the newest user message of an agent.
	LastReceipt(ctx context.Context, agent claybot.AgentID) (Receipt, error)
	// Waiting returns up to limit messages that no run has taken, oldest first.
	Waiting(ctx context.Context, agent claybot.AgentID, limit int) ([]claybot.Message, error)
}

// A Settlement is how a message ended that no run took.
type Settlement struct {
	Reason  string        // recorded skip reason, for example "reset"
	Usage   claybot.Usage // what it took, added to the totals of the agent
	Replies []claybot.Outgoing
	Posts   []claybot.Message // to the same agent, due at once
	Wait    Wait              // for what waits besides
}

// A Receipt is the life of one message.
type Receipt struct {
	Message claybot.Message
	Agent   claybot.AgentID
	Skipped string // why no run took it; empty when one did or it still waits
	Run     *claybot.Run
	Replies []claybot.Outgoing
}

// Runs keeps what engines do. Begin, Append and Finish are each one
// transaction.
type Runs interface {
	// Begin takes the batch out of the inbox and into the agent's unfinished
	// run. When there is none it creates one with the id given and the event
	// RunStarted; otherwise it counts an attempt and adds RunResumed.
	Begin(ctx context.Context, l Lease, id claybot.RunID, batch []claybot.MessageID) (claybot.Run, error)
	// Append adds events; the store sets their seq. With progress the run's
	// count of attempts starts anew.
	Append(ctx context.Context, l Lease, id claybot.RunID, progress bool, ev ...claybot.Event) error
	// SaveDraft records that the beginning of the answer is, or may be,
	// visible.
	SaveDraft(ctx context.Context, l Lease, id claybot.RunID, d claybot.Draft) error
	// Suspend pauses a run until its answers are there: events, state and
	// release of the lease commit together. The agent is due when all answers
	// have come, perhaps at once, when Until has passed, or when somebody asks
	// to cancel the run; other messages wait. The next Begin goes on with it.
	Suspend(ctx context.Context, l Lease, id claybot.RunID, p Pause) error
	// Finish ends a run: events, state, replies, posts to other agents and
	// release of the lease commit together. It returns the replies as stored. A
	// run that has ended is refused with an error, the success of a run that
	// somebody asked to cancel with ErrCanceled, and a post to an agent that is
	// gone with ErrNotFound, unless it is an answer, which is left out then.
	Finish(ctx context.Context, l Lease, id claybot.RunID, o Outcome) ([]claybot.Outgoing, error)
	// Run loads a run; ErrNotFound.
	Run(ctx context.Context, id claybot.RunID) (claybot.Run, error)
	// LastRun loads the newest run of an agent; ErrNotFound.
	LastRun(ctx context.Context, agent claybot.AgentID) (claybot.Run, error)
	// Events yields the events of a run with a seq above after, in order.
	Events(ctx context.Context, id claybot.RunID, after int64) iter.Seq2[claybot.Event, error]
}

// An Outcome is how a run ended. A reply whose State is ambiguous (its draft
// may be visible) is stored so, with its Tried; all others are stored waiting.
type Outcome struct {
	State   claybot.RunState
	Events  []claybot.Event // the last ones, the terminal event at the end
	Output  string
	Usage   claybot.Usage
	Error   *claybot.RunError
	Replies []claybot.Outgoing
	Posts   []Posting // to other agents: notices, reports, answers
	Wait    Wait      // of the agent, for messages that still wait
}

// A Pause is how a run is suspended.
type Pause struct {
	Events   []claybot.Event
	Awaiting claybot.Awaiting
	Wait     Wait // of the agent, for messages that wait
}

// Outbox keeps what is to be sent, oldest first for each destination.
type Outbox interface {
	// Sent is the receipt of an outgoing message; ErrNotFound when there is no
	// such message or it was not sent.
	Sent(ctx context.Context, id string) (receipt string, err error)
	// Enqueue adds outgoing messages that belong to no run. Known ids are
	// ignored. It returns those added, as stored.
	Enqueue(ctx context.Context, o ...claybot.Outgoing) ([]claybot.Outgoing, error)
	// Unsent returns up to limit unfinished messages of one destination with
	// N above after, oldest first.
	Unsent(ctx context.Context, dest string, after int64, limit int) ([]claybot.Outgoing, error)
	// UnsentDests lists the destinations that have unfinished messages.
	UnsentDests(ctx context.Context) ([]string, error)
	// Attempt records that the bytes are about to leave.
	Attempt(ctx context.Context, id string) error
	// Resolve records how an attempt or a lookup ended.
	Resolve(ctx context.Context, id string, r Resolution) error
	// Transcript returns the newest limit messages that people wrote to an
	// agent, commands included, and messages sent to dest, oldest first: what a
	// chat window shows.
	Transcript(ctx context.Context, agent claybot.AgentID, dest string, limit int) ([]Entry, error)
	// SentAfter returns what was put into the outbox for dest after position n,
	// oldest first.
	SentAfter(ctx context.Context, dest string, n int64, limit int) ([]claybot.Outgoing, error)
	// LastN is the largest position of a message for dest, whatever became of
	// it; 0 for none.
	LastN(ctx context.Context, dest string) (int64, error)
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
	NoEdit bool // the message to edit is gone: send a fresh one
	// Edit is the platform's id of a message that a look-up found: from now on
	// sends edit it.
	Edit string
}

// An Entry is one line of a chat window: a message or an outgoing.
type Entry struct {
	Message  *claybot.Message
	Outgoing *claybot.Outgoing
}

// Access keeps who may speak and who asked to.
type Access interface {
	// Grants lists everyone who was let in.
	Grants(ctx context.Context) ([]Grant, error)
	// Grant lets somebody in and removes his pairing. Twice is once.
	Grant(ctx context.Context, g Grant) error
	// Revoke takes a grant back; ErrNotFound.
	Revoke(ctx context.Context, connector, subject string) error
	// Pairings lists all requests, also expired ones, oldest first.
	Pairings(ctx context.Context) ([]Pairing, error)
	// SavePairing adds or replaces the request of (Connector, UserID); reply is
	// put into the outbox with it.
	SavePairing(ctx context.Context, p Pairing, reply ...claybot.Outgoing) ([]claybot.Outgoing, error)
	// DropPairing removes a request; ErrNotFound.
	DropPairing(ctx context.Context, code string) error
}

// A Grant lets one person (direct chats) or one channel (groups) in. Subject is
// the platform's user or channel id.
type Grant struct {
	Connector string       `json:"connector"`
	Subject   string       `json:"subject"`
	Name      string       `json:"name,omitempty"` // as the platform showed it; unverified
	At        claybot.Time `json:"at"`
}

// A Pairing is the request of a stranger.
type Pairing struct {
	Code      string       `json:"code"`
	Connector string       `json:"connector"`
	ChannelID string       `json:"channelId"`
	UserID    string       `json:"userId"`
	Name      string       `json:"name,omitempty"`
	At        claybot.Time `json:"at"`
	Expires   claybot.Time `json:"expires"`
}

// Marks keeps small facts of connectors across restarts, such as the time of
// the last good poll. A missing key is the empty string.
type Marks interface {
	Mark(ctx context.Context, key string) (string, error)
	SetMark(ctx context.Context, key, value string) error
}

// Figures counts what is in the store, for status.
type Figures interface {
	Figures(ctx context.Context) (Counts, error)
}

// Counts are the figures of a store.
type Counts struct {
	Agents     int
	Waiting    int // messages no run has taken
	Runs       map[claybot.RunState]int
	Outbox     map[claybot.SendState]int
	Duplicates int64 // repeats that were posted since the process started
	Ambiguous  int64 // attempts that ended so, ever
}

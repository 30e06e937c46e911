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
	"encoding/json"
	"errors"
	"io"
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
	// ErrTooMany: the cap on what one agent may keep, or one answer may hold, is
	// reached.
	ErrTooMany = errors.New("too many")
	// ErrState: what is there is not in the state that was asked for.
	ErrState = errors.New("not possible in this state")
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
	// SaveFile keeps the bytes of a file that somebody sent to an agent, whole or
	// not at all, and returns its reference: f with a cleaned name and all that
	// the bytes say. ErrTooMany when there are more than limit bytes. An f with an
	// ID gets it: when a file of that ID is kept already, content is not read.
	SaveFile(ctx context.Context, id claybot.AgentID, f claybot.FileReference, content io.Reader, limit int64) (claybot.FileReference, error)
	// OpenFile opens what SaveFile kept, by its id; ErrNotFound.
	OpenFile(ctx context.Context, id claybot.AgentID, file string) (claybot.FileReference, io.ReadCloser, error)
	// Agent loads one agent; ErrNotFound when there is none.
	Agent(ctx context.Context, id claybot.AgentID) (claybot.Agent, error)
	// SaveState replaces the mutable part of an agent as a whole.
	SaveState(ctx context.Context, l Lease, s claybot.AgentState) error
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
	// again from the inbox: the messages of an unfinished run. It may take them
	// although the lease has ended; they are not saved then.
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
	// AgentPage lists agents, those that a person wrote to last first, then the
	// newest. ErrNotFound when After is gone.
	AgentPage(ctx context.Context, q AgentQuery) ([]IndexEntry, error)
	// AgentSettings returns all agents that have settings of their own.
	AgentSettings(ctx context.Context) (map[claybot.AgentID]claybot.Settings, error)
	// SaveAgentSettings replaces the settings of an agent; ErrNotFound. Empty
	// ones are removed.
	SaveAgentSettings(ctx context.Context, id claybot.AgentID, s claybot.Settings) error
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

// An AgentQuery picks agents; empty fields pick all.
type AgentQuery struct {
	Type   claybot.AgentType
	Owner  string // as OwnerID
	Parent claybot.AgentID
	Busy   bool            // only those with an unfinished run or something that waits
	After  claybot.AgentID // the last one of the page before
	Limit  int             // at most; 0: 50
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
	// Acquire leases up to limit due agents to node, longest due first, with at
	// most batch waiting messages each. In a store that one process uses alone it
	// never returns an agent that node holds already. next is when another agent
	// will be due, zero for never.
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
	Take(ctx context.Context, l Lease, run claybot.RunID, limit int, accept func(claybot.AgentMessage) bool) ([]claybot.AgentMessage, error)
	// Drop ends waiting messages with a reason; none given means all that
	// wait. Those taken by a run stay. It returns what was dropped.
	Drop(ctx context.Context, agent claybot.AgentID, reason string, ids ...claybot.MessageID) ([]claybot.MessageID, error)
	// Settle ends one waiting message without a run: replies and further
	// messages for the same agent commit with it, and the lease ends.
	Settle(ctx context.Context, l Lease, id claybot.MessageID, s Settlement) ([]claybot.Outgoing, error)
	// Reschedule computes the due time of waiting messages anew after a change
	// of settings: those of one agent, or of all when none is named.
	Reschedule(ctx context.Context, agent claybot.AgentID, wait func(claybot.AgentID, claybot.Descriptor) Wait) error
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

// A Settlement is how a message ended that no run took.
type Settlement struct {
	Reason  string        // recorded skip reason, for example "reset"
	Usage   claybot.Usage // what it took, added to the totals of the agent
	Calls   []ModelCall   // that Usage is made of
	Replies []claybot.Outgoing
	Posts   []claybot.AgentMessage // to the same agent, due at once
	Wait    Wait                   // for what waits besides
	End     Mark                   // of the agent's history, see Ending
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

// Runs keeps what engines do. Begin, Append and Finish are each one
// transaction.
type Runs interface {
	// Begin takes the batch out of the inbox and into the agent's unfinished
	// run. When there is none it creates one with the event RunStarted;
	// otherwise it counts an attempt and adds RunResumed. A new run has the
	// first id that a message of the batch reserved and no run has, else the id
	// given. engine advances the new run; one that goes on keeps what it began with.
	Begin(ctx context.Context, l Lease, id claybot.RunID, batch []claybot.MessageID, engine string) (claybot.Run, error)
	// Append adds events; the store sets their seq. With progress the run's
	// count of attempts starts anew.
	Append(ctx context.Context, l Lease, id claybot.RunID, progress bool, ev ...claybot.Event) error
	// SaveDraft records that the beginning of the answer is, or may be,
	// visible.
	SaveDraft(ctx context.Context, l Lease, id claybot.RunID, d claybot.Draft) error
	// Suspend pauses a run until its answers are there: events, state, replies
	// and release of the lease commit together. The agent is due when all answers
	// have come, perhaps at once, when Until has passed, or when somebody asks
	// to cancel the run; other messages wait. The next Begin goes on with it.
	Suspend(ctx context.Context, l Lease, id claybot.RunID, p Pause) error
	// Finish ends a run: events, state, replies, posts to other agents and
	// release of the lease commit together. It returns the replies as stored. A
	// run that has ended is refused with an error, the success of a run that
	// somebody asked to cancel with ErrCanceled, and a post to an agent that is
	// gone with ErrNotFound, unless it is an answer, which is left out then.
	Finish(ctx context.Context, l Lease, id claybot.RunID, o Outcome) ([]claybot.Outgoing, error)
	// Run loads a run; ErrNotFound. For an id that a message reserved it is the
	// run that took the message, whatever its id; while the message waits, a
	// run in state PENDING.
	Run(ctx context.Context, id claybot.RunID) (claybot.Run, error)
	// RunPage lists runs, the newest first by id. Those that waiting messages
	// reserved are among them.
	RunPage(ctx context.Context, q RunQuery) ([]claybot.Run, error)
	// LastRun loads the newest run of an agent; ErrNotFound.
	LastRun(ctx context.Context, agent claybot.AgentID) (claybot.Run, error)
	// Events yields the events of a run with a seq above after, in order. The
	// id is that of the run itself.
	Events(ctx context.Context, id claybot.RunID, after int64) iter.Seq2[claybot.Event, error]
}

// An Outcome is how a run ended. A reply whose State is ambiguous (its draft
// may be visible) is stored so, with its Tried; all others are stored waiting.
type Outcome struct {
	State   claybot.RunState
	Events  []claybot.Event // the last ones, the terminal event at the end
	Output  string
	Usage   claybot.Usage
	Calls   []ModelCall // that Usage is made of
	Error   *claybot.RunError
	Replies []claybot.Outgoing
	Posts   []Posting // to other agents: notices, reports, answers
	Wait    Wait      // of the agent, for messages that still wait
	End     Mark      // of the agent's history, see Ending
	Engine  string
	Result  json.RawMessage
	Undo    []claybot.Undo // its effects
	UndoOf  claybot.RunID
}

// A ModelCall is what one call of a model took.
type ModelCall struct {
	Model string
	Usage claybot.Usage
	MS    int64 // milliseconds; 0 when nobody measured
}

// A RunQuery picks runs; empty fields pick all.
type RunQuery struct {
	Agent  claybot.AgentID
	State  claybot.RunState // PENDING: ids that waiting messages reserved
	Before claybot.RunID    // the last one of the page before
	Limit  int              // at most; 0: 50
}

// A Pause is how a run is suspended.
type Pause struct {
	Events   []claybot.Event
	Awaiting claybot.Awaiting
	Usage    claybot.Usage // so far; what Finish says later stands in its place
	Wait     Wait          // of the agent, for messages that wait
	End      Mark          // of the agent's history, see Ending
	Engine   string
	Result   json.RawMessage
	// Replies are put into the outbox with the pause. The draft of the run, if
	// one of them has its id, is none any more.
	Replies []claybot.Outgoing
}

// Marks keeps small facts of connectors across restarts, such as the time of
// the last good poll. A missing key is the empty string.
type Marks interface {
	Mark(ctx context.Context, key string) (string, error)
	SetMark(ctx context.Context, key, value string) error
}

// MarkRepeats begins the keys of marks that tell retries of an HTTP request from
// new ones. Their values begin with a time, as unix milliseconds in 13 digits; Prune
// removes them a day after it.
const MarkRepeats = "repeats/"

// Figures counts what is in the store, for status.
type Figures interface {
	Figures(ctx context.Context) (Counts, error)
}

// Counts are the figures of a store.
type Counts struct {
	Agents  int
	Waiting int // messages no run has taken
	// OldestWaiting is when the one of them that waits longest arrived, silent
	// ones apart, which may wait for ever; 0 for none.
	OldestWaiting claybot.Time
	Runs          map[claybot.RunState]int
	Outbox        map[claybot.SendState]int
	Duplicates    int64 // repeats that were posted since the process started
	Ambiguous     int64 // attempts that ended so, ever
}

// Ignore returns err, or nil when it is expected, as errors.Is tells.
func Ignore(err, expected error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}

package storage

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/claybot/claybot"
)

// Runs keeps what engines do. Each method is one transaction.
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
}

// RunReader reads runs and their events.
type RunReader interface {
	// Run loads a run; ErrNotFound. For an id that a message reserved it is the
	// run that took the message, whatever its id; while the message waits, a
	// run in state PENDING.
	Run(ctx context.Context, id claybot.RunID) (claybot.Run, error)
	// Events yields the events of a run with a seq above after, in order. The
	// id is that of the run itself.
	Events(ctx context.Context, id claybot.RunID, after int64) iter.Seq2[claybot.Event, error]
	// RunPage lists runs, the newest first by id. Those that waiting messages
	// reserved are among them.
	RunPage(ctx context.Context, q RunQuery) ([]claybot.Run, error)
	// LastRun loads the newest run of an agent; ErrNotFound.
	LastRun(ctx context.Context, agent claybot.AgentID) (claybot.Run, error)
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
	Posts   []Posting  // to other agents: notices, reports, answers
	Wait    Wait       // of the agent, for messages that still wait
	End     Checkpoint // of the agent's history, see Ending
	Engine  string
	Result  json.RawMessage
	Undo    []claybot.Undo // its effects
	UndoOf  claybot.RunID
}

// A ModelCall is what one call of a model took.
type ModelCall struct {
	Model string
	Usage claybot.Usage
	MS    int64 // milliseconds; 0 if not measured
}

// A Pause is how a run is suspended.
type Pause struct {
	Events   []claybot.Event
	Awaiting claybot.Awaiting
	Usage    claybot.Usage // so far; what Finish says later stands in its place
	Wait     Wait          // of the agent, for messages that wait
	End      Checkpoint    // of the agent's history, see Ending
	Engine   string
	Result   json.RawMessage
	// Replies are put into the outbox with the pause. The draft of the run, if
	// one of them has its id, is none any more.
	Replies []claybot.Outgoing
}

// A RunQuery picks runs; empty fields pick all.
type RunQuery struct {
	Agent  claybot.AgentID
	State  claybot.RunState // PENDING: ids that waiting messages reserved
	Before claybot.RunID    // the last one of the page before
	Limit  int              // at most; 0: 50
}

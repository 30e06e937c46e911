package storage

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/claybot/claybot"
)

// Runs stores the work of engines. Each method is one transaction.
type Runs interface {
	// Begin moves the batch from the inbox to the agent's unfinished run. If there
	// is none, it creates one with the event RunStarted; otherwise it counts an
	// attempt and adds RunResumed. A new run gets the first unused id that a message
	// of the batch reserved, else id. A resumed run keeps its engine.
	Begin(ctx context.Context, l Lease, id claybot.RunID, batch []claybot.MessageID, with Beginning) (claybot.Run, error)
	// Append adds events; the store sets their seq. With progress, the run's
	// attempt count is reset.
	Append(ctx context.Context, l Lease, id claybot.RunID, progress bool, ev ...claybot.Event) error
	// SaveDraft records that a draft of the answer is, or may be, visible.
	SaveDraft(ctx context.Context, l Lease, id claybot.RunID, d claybot.Draft) error
	// Suspend pauses a run until it has its answers: events, state, replies and
	// the release of the lease commit together. The agent is due when all answers
	// have arrived, possibly at once, when Until has passed, or when the run is
	// to be canceled; other messages stay pending. The next Begin resumes the
	// run.
	Suspend(ctx context.Context, l Lease, id claybot.RunID, p Pause) error
	// Finish ends a run: events, state, replies, posts to other agents and the
	// release of the lease commit together. It returns the replies as stored.
	// It returns an error for a run that has ended, ErrCanceled for the success
	// of a run that is to be canceled, and ErrNotFound for a post to a deleted
	// agent, except for an answer, which is dropped.
	Finish(ctx context.Context, l Lease, id claybot.RunID, o Outcome) ([]claybot.Outgoing, error)
}

// A Beginning is what a new run begins with.
type Beginning struct {
	Engine string // that advances it
	// Traceparent is the span that asked for it, see claybot.Trace.String; empty: none.
	Traceparent string
}

// Ratings stores what people say of runs.
type Ratings interface {
	// Rate adds a feedback to a run in any state, or withdraws one. It reports whether that
	// changed anything: of several reports about the same emoji of a person on a message the
	// newest counts, in whatever order they come. ErrNotFound for an unknown run; ErrTooMany
	// beyond MaxFeedback, which is no fault.
	Rate(ctx context.Context, id claybot.RunID, f claybot.Feedback) (changed bool, err error)
}

// RunControl changes runs that no worker holds.
type RunControl interface {
	// SwitchEngine gives a paused run the engine to in place of from, and adds events. ErrNotFound;
	// ErrState, and nothing is changed, if the run is not paused, is to be canceled, is about to go on, or has
	// another engine than from.
	SwitchEngine(ctx context.Context, id claybot.RunID, from, to string, ev ...claybot.Event) error
}

// MaxFeedback is how many feedbacks a run keeps, withdrawn ones included.
const MaxFeedback = 200

// RunReader reads runs and their events.
type RunReader interface {
	// Run loads a run; ErrNotFound. For an id that a message reserved, it
	// returns the run that took the message, which may have another id; while
	// the message is pending, a run in state PENDING.
	Run(ctx context.Context, id claybot.RunID) (claybot.Run, error)
	// Events yields the events of a run with a seq above after, in order. The
	// id is that of the run itself.
	Events(ctx context.Context, id claybot.RunID, after int64) iter.Seq2[claybot.Event, error]
	// RunPage lists runs by id, newest first, including those that pending
	// messages reserved.
	RunPage(ctx context.Context, q RunQuery) ([]claybot.Run, error)
	// LastRun loads the newest run of an agent; ErrNotFound.
	LastRun(ctx context.Context, agent claybot.AgentID) (claybot.Run, error)
}

// An Outcome is the end of a run. A reply whose State is ambiguous (its draft
// may be visible) is stored so, with its Tried; all others are stored waiting, except
// for what Sending says.
type Outcome struct {
	State   claybot.RunState
	Events  []claybot.Event // the last ones, the terminal event at the end
	Output  string
	Usage   claybot.Usage
	Calls   []ModelCall // that Usage is made of
	Error   *claybot.RunError
	Replies []claybot.Outgoing
	// Sending is the claim of the destination of the first reply, whose holder sends it
	// as soon as it is stored: it is stored as attempted. It is stored waiting if
	// another message of the destination is unfinished or the claim has ended.
	Sending Claim
	Posts   []Posting  // to other agents: notices, reports, answers
	Wait    Wait       // of the agent, for pending messages
	End     Checkpoint // of the agent's history, see Ending
	Records Deferred   // that the agent's history buffers, see Deferring
	Engine  string
	Result  json.RawMessage
	Undo    []claybot.Undo // its effects
	UndoOf  claybot.RunID
	Silence string // see claybot.Run
}

// A ModelCall is the usage and cost of one model call.
type ModelCall struct {
	Model string
	Usage claybot.Usage
	MS    int64 // milliseconds; 0 if not measured
}

// A Pause is the suspension of a run.
type Pause struct {
	Events   []claybot.Event
	Awaiting claybot.Awaiting
	Usage    claybot.Usage // so far; Finish replaces it
	Wait     Wait          // of the agent, for pending messages
	End      Checkpoint    // of the agent's history, see Ending
	Engine   string
	Result   json.RawMessage
	// Replies are added to the outbox with the pause. A reply with the id of
	// the run's draft ends the draft.
	Replies []claybot.Outgoing
}

// A RunQuery picks runs; empty fields pick all.
type RunQuery struct {
	Agent  claybot.AgentID
	State  claybot.RunState // PENDING: ids that pending messages reserved
	Before claybot.RunID    // the last one of the page before
	Limit  int              // at most; 0: 50
}

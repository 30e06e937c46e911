// Package runs is how a run advances and how it is watched: the contract of an
// engine, and the one table from records to events.
//
// An engine is a function of history: it yields records, each of which is
// durable before it goes on, and started again on the same history it goes on
// where the last one stopped. There is no other checkpoint.
//
// # Watching
//
// Commit is publication: only events that are stored are shown, in the order of
// their seq. A store tells a Hub of its commits; Watch listens to it,
// read what is stored, and go on with what commits, without gap or repeat. What
// the Hub says are hints, so a lost one delays and loses nothing. Texts that are
// being written are shown, too, but never stored.
//
//	engine → history → store → Hub.Committed → Watch → readers here
//	  └→ Hub.Grow ──────────────────────────→ Watch          at most once
//	                     store → Relay → Sink → readers outside, at least once
//
// This package must not import an implementation of a store or a sink.
package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/claybot/claybot"
)

// An Engine advances a run. It yields records until the run is done; an error
// ends the run as failed. When the consumer stops ranging, the engine returns.
type Engine interface {
	Run(ctx context.Context, t *Turn) iter.Seq2[claybot.Record, error]
}

// A Turn is one pass of an engine over a run.
type Turn struct {
	Run   claybot.Run
	Agent claybot.Agent
	// History is what the agent remembers, the messages of this run included.
	History []claybot.Record
	// Messages are what the run works on so far, oldest first.
	Messages []claybot.AgentMessage
	// Inject returns messages that joined the run since the last call, as
	// records already durable; none under whenBusy wait. Called only after all
	// tool results of a step.
	Inject func(ctx context.Context) ([]claybot.Record, error)
	// Started is called before a tool runs and returns when that is durable.
	Started func(ctx context.Context, call claybot.ToolCall, effect string) error
	// Emit tells what happens between records. The events are stored, in their
	// place, with the next record or tool at the latest, and before Emit returns
	// when now is set.
	Emit func(ctx context.Context, now bool, ev ...claybot.Event) error
	// InDoubt reports whether the tool of a call had been started by an
	// earlier pass.
	InDoubt func(callID string) bool
	// Began is when an earlier pass first started the tool of a call; 0 where none
	// did. It may be nil.
	Began func(callID string) claybot.Time
	// Delta receives the text of the current step as it grows: step counts from
	// 1, and text is all of it so far. It does not block.
	Delta func(step int, text string)
	// Usage receives the cost of each model call that answered. It is called before
	// the record that has the same as Tokens.
	Usage func(u claybot.Usage)
	// Lost is told what a model call took of which no record will tell: it failed,
	// or its answer was dropped. It is durable when Lost returns, and counts as
	// Usage does. For Request.Lost of package llm; nil where nobody counts.
	Lost func(model string, u claybot.Usage)
	// Save keeps a tool result that is too long for history, and returns the
	// path of its file. nil where nothing can be kept.
	Save func(ctx context.Context, call, text string) (path string, err error)
	// Tell says a sentence to the reader of the run, as a message of its own.
	// A key is sent once in a run. nil where the run has no reader.
	Tell func(ctx context.Context, key, text string) error
	// Ask puts questions to those who may answer them. wait is how the pass ends
	// when an answer is missing; the same Ask in a later pass finds what was
	// said: one Answered for each question, in their order. round names the
	// questions within the run, so that each is asked once. A question without
	// Expires is open for 24 hours. A value is nil when nobody answered and there
	// is no default; a confirm is denied then. The error is ErrNobody when nobody
	// is there to be asked.
	Ask func(ctx context.Context, round string, qs []claybot.Question) (answers []claybot.Answered, wait *claybot.Awaiting, err error)
	// SaveFile keeps a file that the run made, and returns its reference. The
	// same name and content again is harmless. nil where nothing can be kept.
	SaveFile func(ctx context.Context, name, mimeType string, content []byte) (claybot.FileReference, error)
	// OpenFile opens a file of the agent, such as one of a record. nil where there
	// are none.
	OpenFile func(ctx context.Context, f claybot.FileReference) (io.ReadCloser, error)
}

// Thread is the thread of the place where the run answers; empty where there is
// none.
func (t *Turn) Thread() string {
	for _, m := range slices.Backward(t.Messages) {
		if !m.Silent {
			return m.ReplyRoute(t.Agent.Descriptor).ThreadID
		}
	}
	return ""
}

// ErrNobody says that no person reads the run, so questions cannot be asked.
var ErrNobody = errors.New("no person reads along in this run")

// A WaitError is how an engine ends a pass that must wait: the run is paused,
// and the engine is run again when the answers are there or Until has passed.
type WaitError struct{ claybot.Awaiting }

func (e *WaitError) Error() string {
	return fmt.Sprintf("the run waits for %d answers", len(e.Answers))
}

// An Upkeeper is an engine that looks after the size of what an agent
// remembers. Optional.
type Upkeeper interface {
	// Compact yields the records that make the context shorter; none when there
	// is nothing to shorten. The Turn has no messages of a run.
	Compact(ctx context.Context, t *Turn) iter.Seq2[claybot.Record, error]
	// Measure tells how full the context is.
	Measure(t *Turn) ContextSize
}

// A ContextSize is the number of tokens that each part of a context takes. All values
// are estimates but Last, which the provider counted, 0 before the first call.
type ContextSize struct {
	Window       int64 // of the model
	Reserve      int64 // kept free for the answer
	System       int64 // the system prompt
	Tools        int64 // descriptions of tools
	Summary      int64
	Conversation int64 // texts of people, agents and the model
	Results      int64 // of tools
	Last         int64
}

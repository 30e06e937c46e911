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
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/claybot/claybot"
)

// An Engine advances a run. It yields records until the run is done; an error
// ends the run as failed. When the consumer stops ranging, the engine returns.
type Engine interface {
	Run(ctx context.Context, t *Turn) iter.Seq2[claybot.Record, error]
}

// ErrNobody says that no person reads the run, so questions cannot be asked.
var ErrNobody = errors.New("no person reads along in this run")

// A WaitError is how an engine ends a pass that must wait: the run is paused,
// and the engine is run again when the answers are there or Until has passed.
type WaitError struct{ claybot.Awaiting }

func (e *WaitError) Error() string {
	return fmt.Sprintf("the run waits for %d answers", len(e.Answers))
}

// A Failer is an engine that has a say in how its runs fail, also where a deadline or a crash ends
// them. Optional.
type Failer interface {
	// Failed tells those who are to hear that the run of t fails, and returns the error with which
	// it ends. It may be called again for the same end.
	Failed(ctx context.Context, t *Turn, why Error) *Error
}

// An Outputter is an engine whose runs put out a value for the run that waits for them, which is not what
// they say. Optional.
type Outputter interface {
	// Output returns the value that the run of t put out, which has succeeded, as JSON, and whether it
	// holds words of strangers, and what not everybody may read.
	Output(t *Turn) (value json.RawMessage, tainted, private bool)
}

// A Speaker is an engine whose runs send what they say before they end. Optional.
type Speaker interface {
	// Said returns the last of that, of the run of t; empty if it said nothing.
	Said(ctx context.Context, t *Turn) string
}

// A Compactor is an engine that looks after the size of what an agent remembers. Optional.
type Compactor interface {
	// Compact yields the records that make the context shorter; none when there
	// is nothing to shorten. The Turn has no messages of a run.
	Compact(ctx context.Context, t *Turn) iter.Seq2[claybot.Record, error]
	// Measure reports how full the context is.
	Measure(t *Turn) ContextSize
}

// A ContextSize is the number of tokens that each part of a context takes. All values
// are estimates but Last, which the provider counted, 0 before the first call.
type ContextSize struct {
	Window       int64 // of the model
	Reserve      int64 // kept free for the answer
	System       int64 // the system prompt, without notes and skills
	Parts        []PartSize
	Files        int64 // SOUL.md and USER.md
	Notes        int64 // the lists of notes and skills
	Tools        int64 // declarations of tools
	Groups       []GroupSize
	Summary      int64
	Conversation int64 // texts of people, agents and the model
	Results      int64 // of tools
	Last         int64
}

// A PartSize is the number of tokens that a part of the system prompt takes.
type PartSize struct {
	Name   string // for people, in English
	Tokens int64
}

// A GroupSize is the number of tokens that the tools of a group take.
type GroupSize struct {
	Name   string // empty: the tools of no group
	Tokens int64
	Added  bool // by the conversation
}

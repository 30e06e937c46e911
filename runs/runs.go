// Package runs is how a run advances and how it is watched: the contract of an
// engine, and the one table from records to events.
//
// An engine is a function of history: it yields records, each of which is
// durable before it goes on, and started again on the same history it goes on
// where the last one stopped. There is no other checkpoint.
package runs

import (
	"context"
	"iter"

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
	// Inject returns messages that joined the run since the last call, as
	// records already durable; none under whenBusy wait. Called only after all
	// tool results of a step.
	Inject func(ctx context.Context) ([]claybot.Record, error)
	// Started is called before a tool runs and returns when that is durable.
	Started func(ctx context.Context, call claybot.ToolCall, effect string) error
	// InDoubt reports whether the tool of a call had been started by an
	// earlier pass.
	InDoubt func(callID string) bool
	// Delta is told the text of the current step as it grows: step counts from
	// 1, and text is all of it so far. It does not block.
	Delta func(step int, text string)
	// Usage is told what each model call took.
	Usage func(u claybot.Usage)
}

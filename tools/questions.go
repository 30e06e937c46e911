package tools

import (
	"context"

	"github.com/claybot/claybot"
)

// Questions asks the person of a run.
type Questions interface {
	// Ask puts questions to the person and, when all are answered, gives back
	// the answers as JSON: a member for each key. Until then its result is a
	// Wait. Each question has a text, a type and a key of its own; its id is
	// made of the run, the call and its place, so that asking again is harmless.
	// Without Expires it is open for 24 hours. Errors are words for the model;
	// nothing was asked then.
	Ask(ctx context.Context, env Env, qs []claybot.Question) (Result, error)
}

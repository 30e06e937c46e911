package connectors

import (
	"errors"
	"fmt"
	"time"
)

// ErrEditGone means that the message to edit was deleted or cannot be edited.
var ErrEditGone = errors.New("message to edit is gone")

// A RetryError is a refusal that names a time (HTTP 429). Nothing was sent.
type RetryError struct {
	After time.Duration
	// All pauses the whole connector, not just the route.
	All bool
	// GivesWay: the platform was not asked. The Progress text waits, and nothing else.
	GivesWay bool
	Err      error
}

func (e *RetryError) Error() string { return fmt.Sprintf("retry after %v: %v", e.After, e.Err) }
func (e *RetryError) Unwrap() error { return e.Err }

// A PermanentError is a refusal that a retry cannot change.
type PermanentError struct {
	// DeadRoute means that the whole route refuses: the bot was blocked or
	// removed, or the chat is gone.
	DeadRoute bool
	// Fix is the next step for the operator, for example a command. Optional.
	Fix string
	// Says is why, in words for people: a text of the catalogue without values, the end of a
	// sentence. Optional.
	Says string
	Err  error
}

func (e *PermanentError) Error() string {
	if e.Fix != "" {
		return e.Err.Error() + "; " + e.Fix
	}
	return e.Err.Error()
}
func (e *PermanentError) Unwrap() error { return e.Err }

// A RefusedError means that the platform refuses the request for good.
type RefusedError struct {
	// Text is the reason, for users and models: the end of a sentence, such as
	// "it no longer exists", without secrets.
	Text string
	Err  error // for the operator; optional
}

func (e *RefusedError) Error() string {
	if e.Err != nil {
		return e.Text + ": " + e.Err.Error()
	}
	return e.Text
}
func (e *RefusedError) Unwrap() error { return e.Err }

// An AmbiguousError means that the request was sent and got no response: the
// message may or may not exist.
type AmbiguousError struct{ Err error }

func (e *AmbiguousError) Error() string { return "no answer to a send: " + e.Err.Error() }
func (e *AmbiguousError) Unwrap() error { return e.Err }

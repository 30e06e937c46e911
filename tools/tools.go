// Package tools is what an agent can do: the contract of a tool, and the Set
// that checks arguments, limits time, contains panics and gives every call
// exactly one result.
//
// A tool never learns about chats, runs or stores; what it may use comes in its
// Env.
package tools

import (
	"context"
	"encoding/json"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
)

// Effect says what an interrupted call may already have done.
type Effect int

// The classes of effects. Once, the zero value, is the careful assumption.
const (
	Once       Effect = iota // may have acted and cannot tell: never run again
	Idempotent               // the same call has the same final state: run again
	ReadOnly                 // no effect: run again
)

func (e Effect) String() string {
	return [...]string{"once", "idempotent", "readOnly"}[e]
}

// A Tool is one thing an agent can do.
type Tool interface {
	Spec() Spec
	// Call does it. args fits the schema of the Spec. An error becomes the
	// result of the call; it never ends the run.
	Call(ctx context.Context, env Env, args json.RawMessage) (Result, error)
}

// A Spec describes a tool. The zero Timeout means DefaultTimeout.
type Spec struct {
	llm.Tool
	Effect  Effect
	Timeout time.Duration
	// Confirm: a person approves each call before it is made.
	Confirm bool
	// Undoes: results say how they are taken back, see Result.Undo.
	Undoes bool
	// Scopes are words for what the tool reaches, such as "schedule", which
	// policies allow or forbid.
	Scopes []string
	// Hidden tools are neither shown to models nor run for them; undo calls
	// them, see Env.Undo.
	Hidden bool
}

// An Env is what a call may use. CallID with Run is the key of an Idempotent
// call.
type Env struct {
	Agent  claybot.Agent
	Run    claybot.RunID
	CallID string
	// Save keeps a result that is too long for a conversation and returns the
	// path under which it can be read; nil where nothing can be kept.
	Save func(ctx context.Context, call, text string) (path string, err error)
	// Undo: the call takes back what an earlier run did. It reaches hidden tools,
	// and has no effect that would be taken back in turn. To find what it removes
	// gone already is no error.
	Undo bool
}

// A Result is what a call came to, or with Wait, what it waits for.
type Result struct {
	Text string
	// Wait pauses the run. When it goes on, the same call is made again; so
	// only tools that are not Once may wait.
	Wait *claybot.Awaiting
	// Undo is the call that takes the effect back, made with Env.Undo; it has no
	// id. Several effects of a run may have equal calls, which are made once.
	// What describes the effect in a few words, also where Undo is nil because
	// nothing takes it back.
	Undo *claybot.ToolCall
	What string
}

// A Fault is an error of a tool that says what kind it is.
type Fault struct {
	// Code is a word for programs: network, unavailable, and so on, or one of
	// those that this package names, such as FaultRate.
	Code string
	Text string
	// Retriable: the same call may work later, and had no effect.
	Retriable bool
	// After is how long to wait before; 0: nobody said.
	After time.Duration
}

func (f *Fault) Error() string { return f.Text }

// Package tools is what an agent can do: the contract of a tool, and the Set
// that checks arguments, limits time, contains panics and gives every call
// exactly one result.
//
// A tool never learns about chats, runs or stores; what it may use comes in its
// Env.
package tools

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/workspace"
)

// Effect says what an interrupted call may already have done.
type Effect int

// The classes of effects. Once, the zero value, is the careful assumption.
const (
	Once       Effect = iota // may have acted: never run again, unless its Probe says that it did not
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
	// Confirm: each call needs approval unless a rule allows it; see Rules for how the
	// configuration overrides that. Tools that act in a container leave it out.
	Confirm bool
	// Undoes: results say how they are undone, see Result.Undo.
	Undoes bool
	// Scopes name what the tool reaches, such as "schedule", for policies. The first one is
	// the group with which the tool is declared, see Group.
	Scopes []string
	// Brief are the arguments of the declaration that is in every request, until the group
	// of the tool is added; nil: the tool is declared with its group only.
	Brief []string
	// Source is where the tool comes from, such as mcp:files; empty for claybot
	// itself.
	Source string
	// Class is what the tool reaches, see Class.
	Class Class
	// Reaches is what one call reaches, in place of Class; nil: always Class.
	Reaches func(env Env, args json.RawMessage) Class
	// Whole names the argument, a string, that an approval shows by itself, such as the
	// command of a shell; empty: none.
	Whole string
	// Subject is the part of the arguments that rules match, such as the command of a
	// shell or the host of an address. If it is nil, rules that a person makes about a
	// tool that is Outward or has a Source match all of the arguments.
	Subject func(args json.RawMessage) string
	// SubjectIn is Subject for arguments that mean nothing by themselves, such as a
	// number on the page that an agent has open. Approvers see it; empty: the meaning
	// of the call is unknown. See In.
	SubjectIn func(env Env, args json.RawMessage) string
	// Listed reports whether a call of an Outward tool reaches only what is on the
	// operator's list, or the chat of the run; nil: never.
	Listed func(env Env, args json.RawMessage) bool
	// Discloses says what a call makes readable by more people than now; nil: nothing, as
	// is a hook that is nil. The owner of what is disclosed approves it, whatever else
	// the rules say.
	Discloses func(ctx context.Context, env Env, args json.RawMessage) *Disclosure
	// PerSubject: an approval of a call holds for all calls with its Subject until the
	// next reset.
	PerSubject bool
	// Batch returns the calls that an approval of one with PerSubject covers as well, by
	// what the run had read before it was asked; nil: none.
	Batch func(history []claybot.Record, args json.RawMessage) Batch
	// Public: results hold nothing but what everybody may read, or what the agent said in
	// the call itself. A result of another tool marks the conversation, see Env.Private.
	Public bool
	// Probe tells of a call of a tool that is Once, and that was interrupted, whether it took effect;
	// nil: that cannot be told. Result is what the call came to where it did. Probe changes nothing.
	Probe func(ctx context.Context, env Env, args json.RawMessage) (Probed, Result, error)
	// Hidden tools are not offered to models and not run for them; undo calls them,
	// see Env.Undo.
	Hidden bool
}

// In is the Spec for calls with an env: its Subject is what SubjectIn says there.
func (s Spec) In(env Env) Spec {
	if in := s.SubjectIn; in != nil {
		s.Subject = func(args json.RawMessage) string { return in(env, args) }
	}
	return s
}

// The scopes that permissions know.
const (
	ScopeWeb     = "web"
	ScopeBrowser = "browser"
	ScopeShell   = "shell"
)

// A Class is what a tool reaches. Class and taint together decide whether a call runs,
// needs approval, or is refused.
type Class int

// The classes of tools. Inside is the zero value: the agent's own files, its
// workspace, its conversation.
const (
	Inside    Class = iota
	Schedule        // later or other agents: tasks, reminders, subagents
	Outward         // the network, and messages to other places
	Authority       // rights, settings, skills
	Host            // the machine itself, outside any workspace
)

func (c Class) String() string {
	return [...]string{"inside", "schedule", "outward", "authority", "host"}[c]
}

// A Disclosure is what a call makes readable by more people than could read it before.
type Disclosure struct {
	// Owners approve it, all of them, in the form of claybot.Descriptor.OwnerID. They are
	// asked in this order, so whose texts the call contains comes first. Where one is empty,
	// nobody can approve it.
	Owners []string
	// Program: the owner is a program, such as a webhook, which cannot approve anything. Where
	// rules name approvers, they decide.
	Program bool
	// Text says who will be able to read what.
	Text string
}

// A Way is where texts go in a call that reaches another agent.
type Way int

// The ways of texts.
const (
	BothWays  Way = iota
	ToOther       // what the caller knows goes to the other agent
	FromOther     // what the other agent knows comes to the caller
)

// An Env is what a call may use. CallID with Run is the key of an Idempotent
// call.
type Env struct {
	Agent  claybot.Agent
	Run    claybot.RunID
	CallID string
	// Save keeps a result that is too long for a conversation and returns the
	// path under which it can be read; nil where nothing can be kept.
	Save func(ctx context.Context, call, text string) (path string, err error)
	// Undo: the call undoes what an earlier run did. It reaches hidden tools and has no
	// undo of its own. If the effect is gone already, that is no error.
	Undo bool
	// Route is where the run answers; zero for nowhere.
	Route claybot.Route
	// Place is where others may read what the run says, see runs.Turn; zero where that is nowhere or
	// not known.
	Place claybot.Route
	// Tainted: the run has read untrusted content.
	Tainted bool
	// Private: the run has read what not everybody may read, other than what people typed
	// in its conversation.
	Private bool
	// Indexed: the run was shown titles of notes that not everybody may read.
	Indexed bool
	// Wrote reports whether the user wrote a web address in the conversation: exactly
	// this page, not another one of its host. nil: never.
	Wrote func(address string) bool
	// Dry: calls of tools that are not ReadOnly do nothing and say what they would do.
	Dry bool
	// Say says why a call is asked about; nil: in English.
	Say Say
}

// A Say says a text to people in their language, with its values in place; see texts.Voice.Say.
// nil says it as it is.
type Say func(text string, args ...any) string

func (fn Say) say(text string, args ...any) string {
	switch {
	case fn != nil:
		return fn(text, args...)
	case len(args) == 0:
		return text
	}
	return fmt.Sprintf(text, args...)
}

// A Result is what a call came to, or with Wait, what it waits for.
type Result struct {
	Text string
	// Wait pauses the run. When the run resumes, it repeats the call, so only tools
	// that are not Once may wait.
	Wait *claybot.Awaiting
	// Undo is the call that undoes the effect, made with Env.Undo; it has no id. Equal
	// calls for several effects of a run are made once. What describes the effect in a
	// few words, also if it cannot be undone.
	Undo *claybot.ToolCall
	What string
	// Untrusted: the text is from an untrusted source. It is marked as data for the
	// model, and taints the run.
	Untrusted bool
	// Only narrows the tools of the run to these from now on; nil changes nothing, and
	// several lists add up.
	Only []string
	// Groups are declared to the model from now on, until the next reset.
	Groups []string
	// Files belong to the result, kept for the agent; models that see get the
	// pictures among them.
	Files []claybot.FileReference
}

// A Fault is an error of a tool that says what kind it is.
type Fault struct {
	// Code is a word for programs: network, unavailable, and so on, or one of
	// those that this package names, such as FaultRate.
	Code string
	Text string
	// Retriable: the same call may work later, and had no effect.
	Retriable bool
	// After is how long to wait before the next try; 0: unknown.
	After time.Duration
}

func (f *Fault) Error() string { return f.Text }

// UID is an id for the i-th thing that a call makes: different for every call, and the
// same when a call is repeated.
func (e Env) UID(i int) string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	h := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d", e.Run, e.CallID, i))
	uid := make([]byte, 24)
	uid[0] = letters[h[0]%26]
	for k := 1; k < len(uid); k++ {
		uid[k] = letters[h[k]%36]
	}
	return string(uid)
}

// New makes a tool of a function. The schema of its arguments is inferred from
// In, a struct: json tags name the fields, those without omitempty or omitzero
// are required, a jsonschema tag describes one. A schema already in s is kept.
//
// New panics when no schema can be made of In; that is a mistake in the program.
func New[In any](s Spec, fn func(ctx context.Context, env Env, in In) (Result, error)) Tool {
	if len(s.Parameters) == 0 {
		schema, err := inferred(reflect.TypeFor[In]())
		if err != nil {
			panic(fmt.Sprintf("tools: schema of %s: %v", s.Name, err))
		}
		s.Parameters = schema
	}
	return function[In]{spec: s, fn: fn}
}

type function[In any] struct {
	spec Spec
	fn   func(context.Context, Env, In) (Result, error)
}

func (f function[In]) Spec() Spec { return f.spec }

func (f function[In]) Call(ctx context.Context, env Env, args json.RawMessage) (Result, error) {
	var in In
	if err := json.Unmarshal(args, &in); err != nil {
		return Result{}, fmt.Errorf("arguments: %w", err)
	}
	return f.fn(ctx, env, in)
}

// WorkspaceFault is what a call says when its workspace failed: the code and the
// text of the error, with the end of what a command wrote. Other errors, and the
// end of a context, stay as they are.
func WorkspaceFault(err error) error {
	e, ok := errors.AsType[*workspace.Error](err)
	if !ok {
		return err
	}
	f := &Fault{Code: string(e.Code), Text: e.Text, Retriable: e.Code == workspace.Unavailable}
	if e.Output != "" {
		f.Text += "\nThe end of what it wrote:\n" + e.Output
	}
	return f
}

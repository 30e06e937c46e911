package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/storage"
)

// DefaultTimeout limits a call whose Spec names no limit.
const DefaultTimeout = 60 * time.Second

// grace is how long a call may go on after its context ended before its result
// is written without it.
const grace = 2 * time.Second

// A Set is the tools of an agent. It gives every call exactly one result,
// whatever the model wrote and whatever the tool does. It is safe for
// concurrent use.
type Set struct {
	// Log is told about panics and tools that do not stop; nil discards. Set it
	// before the first call.
	Log *slog.Logger
	// Redact takes secrets out of the text of a result; nil keeps it. Set it before
	// the first call.
	Redact func(string) string

	entries map[string]*entry
	offered []llm.Tool
	whole   bool          // all are in every request: somebody has named them
	pinned  []string      // groups that are in every request
	may     func() Permit // see Permitted; nil: all is permitted
}

type entry struct {
	tool   Tool
	spec   Spec
	schema *schema
	brief  llm.Tool // see Spec.Brief
}

// NewSet makes a set. The error names tools that were left out: bad names, bad
// schemas, and names that were taken already. The set is usable all the same.
func NewSet(tools ...Tool) (*Set, error) {
	s := &Set{entries: make(map[string]*entry, len(tools))}
	var errs []error
	for _, t := range tools {
		spec := t.Spec()
		if !nameForm.MatchString(spec.Name) {
			errs = append(errs, fmt.Errorf("tool %.80q: a name has 1 to 64 of A-Z a-z 0-9 _ -", spec.Name))
			continue
		}
		if _, taken := s.entries[spec.Name]; taken {
			errs = append(errs, fmt.Errorf("tool %q: the name is taken, the first is kept", spec.Name))
			continue
		}
		schema, err := compile(spec.Parameters)
		if err != nil {
			errs = append(errs, fmt.Errorf("tool %q: schema: %w", spec.Name, err))
			continue
		}
		e := &entry{tool: t, spec: spec, schema: schema}
		if spec.Brief != nil {
			if e.brief, err = brief(spec); err != nil {
				errs = append(errs, fmt.Errorf("tool %q: %w", spec.Name, err))
				continue
			}
		}
		s.entries[spec.Name] = e
		if !spec.Hidden {
			s.offered = append(s.offered, spec.Tool)
		}
	}
	return s, errors.Join(errs...)
}

// Only is the part of the set that an agent may use: the tools named, in the
// order of the set, or all when names is nil. Names that are not in the set say
// nothing. What is left out is hidden: neither shown nor run, except by undo, so
// that an effect can be taken back with a tool that the model does not have.
func (s *Set) Only(names []string) *Set {
	if names == nil {
		return s
	}
	part := &Set{Log: s.Log, Redact: s.Redact, may: s.may, whole: true, entries: make(map[string]*entry, len(s.entries))}
	for name, e := range s.entries {
		mine := *e
		mine.spec.Hidden = e.spec.Hidden || !slices.Contains(names, name) && name != Finish
		part.entries[name] = &mine
	}
	for _, t := range s.offered {
		if !part.entries[t.Name].spec.Hidden {
			part.offered = append(part.offered, t)
		}
	}
	return part
}

// entry returns a tool of the set; an empty entry for one that is not in it.
func (s *Set) entry(name string) *entry {
	if e := s.entries[name]; e != nil {
		return e
	}
	return new(entry)
}

// otherNames are names by which other programs call tools of claybot.
var otherNames = map[string]string{"spawn_and_await": "spawn_and_wait"}

// Named returns the name of the tool that a name means: one that no tool of the set has may be another name
// of one. What is recorded, permitted and asked is about the tool.
func (s *Set) Named(name string) string {
	if other := otherNames[name]; other != "" && s.entries[name] == nil && s.entries[other] != nil {
		return other
	}
	return name
}

// Effect is the effect class of a tool; Once for one that is not in the set.
func (s *Set) Effect(name string) Effect { return s.entry(name).spec.Effect }

// Spec describes a tool of the set, also a hidden one, which Spec.Hidden tells.
func (s *Set) Spec(name string) (Spec, bool) {
	_, ok := s.entries[name]
	return s.entry(name).spec, ok
}

// Check returns why a call of a model would be refused before its tool runs: no
// such tool, arguments that do not fit, or no permission. The words are for the model.
func (s *Set) Check(call claybot.ToolCall) error {
	_, _, err := s.accept(call, false)
	return err
}

func (s *Set) accept(call claybot.ToolCall, undo bool) (*entry, json.RawMessage, error) {
	e, ok := s.entries[call.Name]
	if !ok || e.spec.Hidden && !undo {
		if !ok && !undo { // a server that is stopped lists no tools
			if fault := s.permits(Spec{Tool: llm.Tool{Name: call.Name}}, nil); fault != nil && fault.Code == FaultStopped {
				return nil, nil, fault
			}
		}
		return nil, nil, &Fault{Code: FaultUnknown, Text: fmt.Sprintf("unknown tool %.80q", call.Name)}
	}
	args, err := checkArgs(e.schema, call)
	if err != nil {
		return e, nil, &Fault{Code: FaultArguments, Text: err.Error()}
	}
	if !undo {
		if fault := s.permits(e.spec, args); fault != nil {
			return e, nil, fault
		}
	}
	return e, args, nil
}

// An Outcome is what a call came to. Either Wait is set, or Record is the
// result, with Fault when it is not OK.
type Outcome struct {
	Record claybot.Record
	Wait   *claybot.Awaiting
	Fault  *Fault
}

// Call is Do without the class of an error.
func (s *Set) Call(ctx context.Context, env Env, call claybot.ToolCall) (claybot.Record, *claybot.Awaiting) {
	o := s.Do(ctx, env, call)
	return o.Record, o.Wait
}

// Do does a call and returns its tool_result record, or what the call waits for;
// the call is then made again when that is there. Refused arguments, an error, a
// panic and a passed time limit become results with OK false and a sentence for
// the model. So does a wait of a tool that may act only once, and one for
// nothing. The text is clean and of bounded length; env.Save keeps the whole of a
// longer one. The tool gets the arguments in the form that Digest is made of.
// An untrusted result stands between marks, and its record is tainted. The record is
// private unless the tool is Public.
//
// Do returns at most two seconds after the time limit or the end of ctx. A tool
// that ignores its context is then left behind: its goroutine ends when the tool
// does, and nothing reads its result.
func (s *Set) Do(ctx context.Context, env Env, call claybot.ToolCall) Outcome {
	start := time.Now()
	e, args, err := s.accept(call, env.Undo)
	var result Result
	if err == nil {
		result, err = s.call(ctx, env, e, args)
	}
	return s.outcome(ctx, env, call, start, result, err)
}

// outcome is what a call came to that began at start.
func (s *Set) outcome(ctx context.Context, env Env, call claybot.ToolCall, start time.Time, result Result, err error) Outcome {
	if err == nil && result.Wait != nil {
		if err = s.mayWait(call.Name, env, *result.Wait); err == nil {
			return Outcome{Wait: result.Wait}
		}
	}
	fault := faultOf(err)
	if fault != nil {
		result = Result{Text: "error: " + fault.Text, Untrusted: result.Untrusted}
	}
	took := time.Since(start).Milliseconds()
	text, path := s.fit(ctx, env, call, result.Text)
	if result.Untrusted {
		text = marked(env.Run, text)
	}
	return Outcome{Fault: fault, Record: claybot.Record{
		Type: claybot.RecordTool, At: claybot.Now(), Run: env.Run,
		ToolCallID: call.ID, Name: call.Name, OK: err == nil,
		MS: took, Text: text, Saved: path, Undo: effectOf(env, call, result), Only: result.Only, Groups: result.Groups, Files: result.Files,
		Tainted: result.Untrusted, Private: !s.entry(call.Name).spec.Public,
	}}
}

// faultOf is the class of an error, with all of its words; nil for no error.
func faultOf(err error) *Fault {
	if err == nil {
		return nil
	}
	fault := Fault{Code: FaultFailed}
	if f, ok := errors.AsType[*Fault](err); ok {
		fault = *f
	}
	fault.Text = err.Error()
	return &fault
}

// effectOf is how the effect of a call is taken back; nil when there is none
// that anybody would want to take back.
func effectOf(env Env, call claybot.ToolCall, r Result) *claybot.Undo {
	if env.Undo || r.Undo == nil && r.What == "" {
		return nil
	}
	return &claybot.Undo{Step: env.CallID, Tool: call.Name, What: r.What, Call: r.Undo}
}

// mayWait refuses waits that would never end well; they are mistakes in a tool.
func (s *Set) mayWait(tool string, env Env, w claybot.Awaiting) error {
	why := ""
	switch {
	case s.Effect(tool) == Once:
		why = "it may act only once, so it cannot be called again"
	case len(w.Answers) == 0:
		why = "it names no answers"
	default:
		return nil
	}
	s.log().Error("a tool must not wait", "tool", tool, "agent", env.Agent.ID, "run", env.Run, "why", why)
	return failedInside(tool)
}

func failedInside(tool string) *Fault {
	return &Fault{Code: FaultInternal, Text: tool + " failed inside; the operator's log has the details"}
}

// fit cleans the text of a result and cuts it to what a conversation holds;
// path is where the whole of a cut one is kept.
func (s *Set) fit(ctx context.Context, env Env, call claybot.ToolCall, text string) (short, path string) {
	whole := len(text)
	text = clean(text[:min(whole, maxWhole)])
	if s.Redact != nil {
		text = s.Redact(text)
	}
	if len(text) <= llm.MaxResult {
		return text, ""
	}
	if env.Save != nil {
		var err error
		if path, err = env.Save(ctx, env.CallID, text); err != nil {
			s.log().Warn("failed to save a long result", "tool", call.Name, "agent", env.Agent.ID, "run", env.Run, "bytes", len(text), "err", err)
			path = ""
		}
	}
	short = llm.CutResult(text, path)
	if whole > maxWhole {
		short += fmt.Sprintf("\n[the tool returned %d bytes; what follows the first %d was dropped]", whole, maxWhole)
	}
	return short, path
}

func (s *Set) call(ctx context.Context, env Env, e *entry, args json.RawMessage) (Result, error) {
	if ctx.Err() != nil {
		return Result{}, &Fault{Code: FaultInterrupted, Text: e.spec.Name + " was not started: the run was stopped"}
	}
	if env.Dry && e.spec.Effect != ReadOnly {
		return Result{Text: fmt.Sprintf("dry run: %s was not called. It would have been called with %s", e.spec.Name, args)}, nil
	}
	limit := e.spec.Timeout
	if limit <= 0 {
		limit = DefaultTimeout
	}
	inner, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	done := make(chan outcome, 1) // one place: an abandoned tool can end
	go s.contain(inner, e, env, args, done)

	select {
	case o := <-done:
		return o.result, timely(ctx, inner, e, limit, o.err)
	case <-inner.Done():
	}
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case o := <-done:
		return o.result, timely(ctx, inner, e, limit, o.err)
	case <-late.C:
		s.log().Warn("tool does not stop, abandoned", "tool", e.spec.Name, "agent", env.Agent.ID, "run", env.Run, "limit", limit)
		return Result{}, timely(ctx, inner, e, limit, inner.Err())
	}
}

// timely explains an error that came from the end of time instead of the tool.
func timely(ctx, inner context.Context, e *entry, limit time.Duration, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return &Fault{Code: FaultInterrupted, Text: e.spec.Name + " was interrupted: the run was stopped"}
	case inner.Err() != nil:
		return &Fault{Code: FaultTimeout, Text: fmt.Sprintf("%s took longer than %s and was stopped", e.spec.Name, limit)}
	}
	return err
}

type outcome struct {
	result Result
	err    error
}

// contain runs the tool and always sends one outcome, also when it panics or
// ends its goroutine.
func (s *Set) contain(ctx context.Context, e *entry, env Env, args json.RawMessage, done chan<- outcome) {
	o := outcome{err: &Fault{Code: FaultInternal, Text: e.spec.Name + " ended without a result"}}
	defer func() {
		if p := recover(); p != nil {
			s.log().Error("tool panicked", "tool", e.spec.Name, "agent", env.Agent.ID, "run", env.Run, "panic", p, "stack", string(debug.Stack()))
			o = outcome{err: failedInside(e.spec.Name)}
		}
		done <- o
	}()
	o.result, o.err = patiently(ctx, e, env, args)
}

func (s *Set) log() *slog.Logger {
	if s.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.Log
}

// How patiently a call waits for a store that does not answer.
const (
	storePatience = 30 * time.Second
	storeFirst    = 100 * time.Millisecond
	storeMost     = 2 * time.Second
)

// patiently makes a call, and again while it meets a store that does not answer: to
// the model that would look like a tool that does not work. Only tools that may be
// run again wait so.
func patiently(ctx context.Context, e *entry, env Env, args json.RawMessage) (Result, error) {
	until := time.Now().Add(storePatience)
	for wait := storeFirst; ; wait = min(2*wait, storeMost) {
		r, err := e.tool.Call(ctx, env, args)
		if e.spec.Effect == Once || !errors.Is(err, storage.ErrBusy) || !time.Now().Before(until) {
			return r, err
		}
		again := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			again.Stop()
			return r, err
		case <-again.C:
		}
	}
}

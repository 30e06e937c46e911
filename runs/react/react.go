// Package react is the engine of chat agents: the model reasons, its tool calls
// act, their results are observed, until it answers without a call.
//
// Everything the loop knows about a run it reads from the run's records, the
// limits included, so a run broken anywhere goes on where it stopped. A tool
// that may act only once is started at most once. Each call gets exactly one
// result. A call that waits for others ends the pass; the next one makes it again.
//
// A conversation that outgrows the model's context is folded: a summary record
// stands for all but its newest records. What is too large all the same is cut
// in the request alone, so that there is always one to send.
//
// Only cmd imports it.
package react

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/tools"
)

// DefaultMaxSteps is the number of model answers a run may take when nothing
// else is set.
const DefaultMaxSteps = 64

// A Loop is the engine. The functions are asked at each pass, so that changed
// settings hold from the next one on. Only Model is needed. A Loop is safe for
// concurrent use.
type Loop struct {
	Model func(claybot.Agent) llm.Model  // nil result: nothing is configured
	Tools func(claybot.Agent) *tools.Set // nil, or a nil result: no tools
	// Prompt is the system prompt of a run, or of no run where the Turn has no
	// messages. An error ends the run; looking after the context does without.
	Prompt   func(*runs.Turn) (string, error)
	Approve  func(claybot.Agent) Rules // nil: only the tools themselves ask
	MaxSteps func(claybot.Agent) int   // below 1: DefaultMaxSteps
	// Limits bound what the tools of a run may take; nil: the defaults.
	Limits func(claybot.Agent) tools.Limits
	// Place says where the tools of an agent act, as workspace.Workspace does;
	// approvals are bound to it. nil, or an empty result: nowhere in particular.
	Place func(claybot.Agent) string
	// Dry agents only say what they would do, unless a tool has no effect; nil:
	// none.
	Dry func(claybot.Agent) bool
	// People are the ids of the person who has one; nil: each has only one.
	People func(id string) []string
	// Window is how many tokens the context of the model has; below 1, or nil:
	// as llm.Window knows it by the name that ModelName gives.
	Window    func(claybot.Agent) int64
	ModelName func(claybot.Agent) string
	// Budgets are asked when a hard budget is used up; nil: the run ends then.
	Budgets Budgets
	Log     *slog.Logger // nil discards
}

var (
	_ runs.Engine    = (*Loop)(nil)
	_ runs.Compactor = (*Loop)(nil)
)

// Run advances a run until the model has answered. Its errors are *runs.Error,
// save those of the turn's functions and the cause of a canceled ctx.
func (l *Loop) Run(ctx context.Context, t *runs.Turn) iter.Seq2[claybot.Record, error] {
	return func(yield func(claybot.Record, error) bool) {
		p := l.pass(t, yield)
		err := promptError(p.prompt)
		if err == nil {
			err = p.run(ctx)
		}
		if err != nil && !errors.Is(err, errConsumed) {
			yield(claybot.Record{}, err)
		}
	}
}

// promptError ends a run whose prompt cannot be made.
func promptError(err error) error {
	if err == nil {
		return nil
	}
	if known, ok := errors.AsType[*runs.Error](err); ok {
		return known
	}
	return &runs.Error{Code: runs.CodePrompt, Text: err.Error(), Err: err}
}

// errConsumed: the consumer stopped ranging.
var errConsumed = errors.New("nobody takes the records")

// A pass is one Run of the loop.
type pass struct {
	turn     *runs.Turn
	yield    func(claybot.Record, error) bool
	model    llm.Model
	tools    *tools.Set
	offered  []llm.Tool // what the set has, asked once: it is needed for every record
	system   string
	prompt   error // why there is no system prompt
	rules    Rules
	place    string
	dry      bool
	people   func(string) []string
	maxSteps int
	budgets  Budgets
	log      *slog.Logger
	history  []claybot.Record
	progress *progress
	album    *llm.Album // of the pictures that the model sees

	window  int64   // tokens of the model's context
	ceiling int64   // tokens of a request at most, after a refusal; 0: as the window has it
	scale   float64 // tokens for each that is guessed
	// unfolded: the model could not summarize in this pass, and nothing changed.
	unfolded bool
	// limits counts how often this pass came to a limit, extended how often it had a
	// budget extended.
	limits, extended int
}

func (l *Loop) pass(t *runs.Turn, yield func(claybot.Record, error) bool) *pass {
	p := &pass{
		turn: t, yield: yield, model: l.Model(t.Agent), maxSteps: DefaultMaxSteps, budgets: l.Budgets,
		log: slog.New(slog.DiscardHandler), window: l.window(t.Agent), scale: 1,
		history: slices.Clip(t.History), // appending copies: the turn's slice stays as it is
	}
	if l.Tools != nil {
		p.tools = l.Tools(t.Agent)
	}
	if p.tools == nil {
		p.tools, _ = tools.NewSet() // no tools, no error
	}
	p.offered = p.tools.Tools()
	if l.Prompt != nil {
		if p.system, p.prompt = l.Prompt(t); p.prompt != nil {
			p.system = ""
		}
	}
	if l.Approve != nil {
		p.rules = l.Approve(t.Agent)
	}
	if l.Place != nil {
		p.place = l.Place(t.Agent)
	}
	p.dry, p.people = l.Dry != nil && l.Dry(t.Agent), l.People
	var limits tools.Limits
	if l.Limits != nil {
		limits = l.Limits(t.Agent)
	}
	if l.MaxSteps != nil && l.MaxSteps(t.Agent) > 0 {
		p.maxSteps = l.MaxSteps(t.Agent)
	}
	if l.Log != nil {
		p.log = l.Log.With("agent", t.Agent.ID, "run", t.Run.ID)
	}
	p.progress = readProgress(t.History, t.Run.ID, limits, p.tools.Check)
	return p
}

// window is how many tokens the context of an agent's model has.
func (l *Loop) window(a claybot.Agent) int64 {
	if l.Window != nil {
		if n := l.Window(a); n > 0 {
			return n
		}
	}
	if l.ModelName == nil {
		return llm.DefaultWindow
	}
	return llm.Window(l.ModelName(a))
}

func (p *pass) run(ctx context.Context) error {
	for {
		if err := p.act(ctx); err != nil {
			return err
		}
		if p.progress.done {
			return nil
		}
		if err := p.progress.stuck(p.maxSteps); err != nil {
			return err
		}
		if p.progress.steps > 0 {
			if err := p.inject(ctx); err != nil {
				return err
			}
		}
		n := p.progress.steps + 1
		err := p.node(ctx, nodeModel, n, n > 1, func() (string, error) { return p.step(ctx) })
		if err != nil {
			return err
		}
	}
}

// act gives the calls of the last answer their results, if it has any.
func (p *pass) act(ctx context.Context) error {
	if len(p.progress.pending) == 0 {
		return nil
	}
	return p.node(ctx, nodeTools, p.progress.steps, false, func() (string, error) { return "", p.settle(ctx) })
}

// inject takes in the messages that joined the run; they are durable already.
func (p *pass) inject(ctx context.Context) error {
	more, err := p.turn.Journal.Inject(ctx)
	if err != nil {
		return fmt.Errorf("inject messages: %w", err)
	}
	for _, r := range more {
		p.remember(r)
	}
	return nil
}

// emit hands over a record; it is durable when emit returns nil.
func (p *pass) emit(r claybot.Record) error {
	if r.Type == claybot.RecordSummary { // what it stands for may be gone one day
		r.Tainted = r.Tainted || tools.Tainted(p.history)
	}
	if !p.yield(r, nil) {
		return errConsumed
	}
	p.remember(r)
	return nil
}

func (p *pass) remember(r claybot.Record) {
	p.history = append(p.history, r)
	p.progress.add(r)
}

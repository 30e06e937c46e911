// Package react is the engine of chat agents: the model reasons, its tool calls
// act, their results are observed, until it answers without a call.
//
// Everything the loop knows about a run it reads from the run's records, the
// limits included, so a run broken anywhere goes on where it stopped. A tool
// that may act only once is started at most once. Each call gets exactly one
// result. A call that waits for others ends the pass; the next one makes it again.
//
// A conversation that outgrows the model's context is compacted: a summary record
// stands for all but its newest records. What is too large all the same is cut
// in the request alone, so that there is always one to send.
//
// Only cmd imports it.
package react

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
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
	// Ready waits, before a run goes on with calls that have no result yet, for tools with
	// these names that are about to be there; nil: there are none.
	Ready func(ctx context.Context, names []string)
	// Prompt is the system prompt of a run, or of no run where the Turn has no
	// messages. An error ends the run; looking after the context does without.
	Prompt func(*runs.Turn) (string, error)
	// Parts are the sizes of the parts of that prompt; nil: it is shown as a whole.
	Parts func(*runs.Turn) []runs.PartSize
	// Index lists the notes and skills of a run, which stand behind its prompt. If it
	// fails, Owner still holds. nil: there are none.
	Index    func(*runs.Turn) (claybot.Index, error)
	Approve  func(claybot.Agent) Rules // nil: only the tools themselves ask
	MaxSteps func(claybot.Agent) int   // below 1: DefaultMaxSteps
	// RequireTool is how many answers without a call of a tool a run pushes back; nil, or below
	// 1: none. Its tools need tools.Finish.
	RequireTool func(claybot.Agent) int
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

	once  sync.Once
	chats *storage.Recent[claybot.AgentID, kept] // see recent
}

var (
	_ runs.Engine    = (*Loop)(nil)
	_ runs.Compactor = (*Loop)(nil)
)

// Run advances a run until the model has answered. Its errors are *runs.Error,
// save those of the turn's functions and the cause of a canceled ctx.
func (l *Loop) Run(ctx context.Context, t *runs.Turn) iter.Seq2[claybot.Record, error] {
	return func(yield func(claybot.Record, error) bool) {
		p := l.ready(ctx, t, yield)
		err := promptError(p.prompt)
		if err == nil {
			err = p.run(ctx)
			l.keepChat(t.Agent.ID, p.compaction.window.kept)
		}
		if err != nil && !errors.Is(err, errConsumed) {
			yield(claybot.Record{}, err)
		}
	}
}

// ready is pass, after the tools of the calls that are left from an earlier pass are there.
func (l *Loop) ready(ctx context.Context, t *runs.Turn, yield func(claybot.Record, error) bool) *pass {
	p := l.pass(t, yield)
	var names []string
	for _, c := range p.talk.progress.pending {
		names = append(names, c.Name)
	}
	if len(names) == 0 || l.Ready == nil {
		return p
	}
	l.Ready(ctx, names)
	return l.pass(t, yield) // of the tools that are there now: p may be of those before
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

// Compact implements runs.Compactor. It compacts whatever the newest messages leave,
// however much room there is; two messages are not worth it. When the model
// fails, nothing changes and the error says why.
func (l *Loop) Compact(ctx context.Context, t *runs.Turn) iter.Seq2[claybot.Record, error] {
	return func(yield func(claybot.Record, error) bool) {
		if err := l.pass(t, yield).compaction.compact(ctx); err != nil && !errors.Is(err, errConsumed) {
			yield(claybot.Record{}, err)
		}
	}
}

// Measure implements runs.Compactor.
func (l *Loop) Measure(t *runs.Turn) runs.ContextSize {
	set := l.tools(t.Agent)
	w, _ := l.window(t, set, t.History)
	size := runs.ContextSize{
		Window: w.total, Reserve: reserve(w.total),
		System: llm.Tokens(len(w.prompt)), Tools: llm.Tokens(w.fixed() - len(w.system)), Groups: groups(set, w.tools, set.Added(t.History)),
		Last: t.Agent.State.Context,
	}
	if l.Parts != nil {
		size.Parts = l.Parts(t)
	}
	summary, rest := llm.Folded(t.History)
	if summary != nil {
		size.Summary = llm.Tokens(w.weight(summary))
	}
	talk, results, notes, files := 0, 0, len(w.system)-len(w.prompt), 0
	if first, known := indexes(t.History); first != nil {
		files = len(first.Files)
		notes -= files
	} else if known == nil && l.Index != nil { // the next run shows it
		if now, err := l.Index(t); err == nil {
			notes, files = notes+len(now.Text), len(now.Files)
		}
	}
	for _, r := range rest {
		switch r.Type {
		case claybot.RecordTool:
			results += w.weight(&r)
		case claybot.RecordIndex:
			notes += w.weight(&r)
		default:
			talk += w.weight(&r)
		}
	}
	size.Conversation, size.Results = llm.Tokens(talk), llm.Tokens(results)
	size.Notes, size.Files = llm.Tokens(notes), llm.Tokens(files)
	return size
}

// groups are the sizes of the groups of declared tools, in the order of their names.
func groups(set *tools.Set, declared []llm.Tool, added []string) (all []runs.GroupSize) {
	bytes := make(map[string]int)
	for _, t := range declared {
		bytes[set.GroupOf(t.Name)] += t.Bytes()
	}
	for _, name := range slices.Sorted(maps.Keys(bytes)) {
		all = append(all, runs.GroupSize{Name: name, Tokens: llm.Tokens(bytes[name]), Added: slices.Contains(added, name)})
	}
	return all
}

// Package plan is the engine that plans before it acts, and the one that takes
// back what a run did. Both are graphs:
//
//	classify → planner → confirm → executor → summarize → END
//	    └─────────┴─────────┴─────────┴→ fallback → END
//
//	confirm → undo → summarize → END
//
// A plan is a list of tool calls that depend on each other. Nothing of it runs
// before confirm has settled what is missing, what the policy says and who
// approves. After that the plan stays as it is: what ran is what was shown, and
// each step acts at most once, whatever is interrupted. A step whose tool may act
// only once and was cut off is reported and never run again.
//
// The plan and its answers are in the records of the nodes; the calls and results
// of the steps are records like those of the loop of model and tools, so both
// engines can work on one history.
//
// Events that no record tells of, such as those of steps, are stored at most once
// or, where a pass was cut off directly behind one, twice.
//
// Only cmd imports it.
package plan

import (
	"context"
	"log/slog"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/tools"
)

// The nodes of the graphs.
const (
	nodeClassify  = "classify"
	nodePlanner   = "planner"
	nodeConfirm   = "confirm"
	nodeExecutor  = "executor"
	nodeUndo      = "undo"
	nodeSummarize = "summarize"
	nodeFallback  = "fallback"
)

// stepTime limits the node that runs the steps, retries included.
const stepTime = 2 * time.Hour

// Config is what the engines work with. Its functions are asked at each pass, so
// that changed settings hold from the next one on; each of them may be nil. They
// must be safe for concurrent use.
type Config struct {
	Model func(claybot.Agent) llm.Model // nil result: nothing is configured
	// Tools are those of the agent; nil result: none. Undo calls the hidden ones,
	// too.
	Tools   func(claybot.Agent) *tools.Set
	Policy  func(claybot.Agent) Policy
	Intents func(claybot.Agent) []Intent
	// Ready waits, before steps are approved and run, for tools with these names that are about to
	// be there, as after a restart; nil: there are none.
	Ready func(ctx context.Context, names []string)
	// Prompt is the system prompt, which stands before what the engine adds. An
	// error fails the run.
	Prompt func(*runs.Turn) (string, error)
	// Guard keeps steps from tools that are broken or used too often; nil: none.
	Guard *tools.Guard
	// Approved are the tools that need no approval any more, by a rule.
	Approved func(claybot.Agent) []string
	// Rules are when calls ask, besides what the Policy says; nil: as the tools say.
	// Their quorum and approvers are those of the Policy.
	Rules func(claybot.Agent) tools.Rules
	// Limits bound what the tools of a run may take; nil: the defaults. A plan has
	// no limit of its calls.
	Limits func(claybot.Agent) tools.Limits
	// Place says where the tools of an agent act, as workspace.Workspace does;
	// approvals are bound to it. nil, or an empty result: nowhere in particular.
	Place func(claybot.Agent) string
	// Dry agents only say what they would do, unless a tool has no effect; nil:
	// none.
	Dry func(claybot.Agent) bool
	// People are all owner ids of the person who has this one; nil: only itself.
	People func(owner string) []string
	// Zone is where the person is; nil: UTC.
	Zone func(claybot.Agent) *time.Location
	Log  *slog.Logger // nil discards
}

// An Intent is one kind of thing that people may ask for.
type Intent struct {
	Name        string
	Description string
	// Inputs are what must be known, by their keys. What is required and not said
	// is asked for.
	Inputs []claybot.Question
	Tools  []string // globs of the tools that its plans may use; empty: all
}

// The graph types of this package.
type (
	// Graph is an engine of this package.
	Graph = runs.Graph[Scratch, Output]
	state = runs.State[Scratch, Output]
)

// New makes the engine that plans.
func New(c Config) *Graph {
	e := newParts(c, false)
	return &Graph{
		Name: claybot.EnginePlan, Start: nodeClassify, NodeTime: stepTime,
		Nodes: map[string]runs.Node[Scratch, Output]{
			nodeClassify: e.planner.classify, nodePlanner: e.planner.plan, nodeConfirm: e.confirm.plan,
			nodeExecutor: e.executor.execute, nodeSummarize: e.summarizer.summarize, nodeFallback: fallback,
		},
		Edges: map[string][]string{
			nodeClassify:  {nodePlanner, nodeFallback},
			nodePlanner:   {nodeConfirm, nodeFallback},
			nodeConfirm:   {nodeExecutor, nodeSummarize, nodeFallback},
			nodeExecutor:  {nodeSummarize, nodeFallback},
			nodeSummarize: {runs.End},
			nodeFallback:  {runs.End},
		},
	}
}

// NewUndo makes the engine for runs that take back the effects of another one,
// the last effect first. It needs no model. What cannot be taken back keeps it
// from nothing: it is reported.
func NewUndo(c Config) *Graph {
	e := newParts(c, true)
	return &Graph{
		Name: claybot.EngineUndo, Start: nodeConfirm, NodeTime: stepTime,
		Nodes: map[string]runs.Node[Scratch, Output]{
			nodeConfirm: e.confirm.undo, nodeUndo: e.executor.execute, nodeSummarize: report, nodeFallback: fallback,
		},
		Edges: map[string][]string{
			nodeConfirm:   {nodeUndo, nodeSummarize, nodeFallback},
			nodeUndo:      {nodeSummarize},
			nodeSummarize: {runs.End},
			nodeFallback:  {runs.End},
		},
	}
}

// parts are the parts of both graphs.
type parts struct {
	planner    *planner
	confirm    *confirmation
	executor   *executor
	summarizer *summarizer
}

// newParts connects the parts. undo: of the graph that takes back.
func newParts(c Config, undo bool) parts {
	may := &permissions{cfg: &c, undoes: undo}
	check := &checker{cfg: &c, may: may}
	model := &prompter{cfg: &c}
	return parts{
		planner: &planner{cfg: &c, model: model, check: check},
		confirm: &confirmation{
			cfg: &c, quiet: &quietHours{zone: c.zone}, inputs: &inputs{intent: c.intent, check: check},
			approvals: &approvals{cfg: &c, may: may, undoes: undo},
		},
		executor:   &executor{cfg: &c, may: may, undoes: undo},
		summarizer: &summarizer{log: c.log, model: model},
	}
}

// digest is what a call is known by in its run, wherever it runs.
func digest(s *state, call claybot.ToolCall) string {
	return tools.Digest(s.Turn.Agent.ID, "", call)
}

// fail leads to the fallback with what the person is told, and the cause in a few
// words for operators.
func fail(s *state, cause, say string) (string, error) {
	s.Scratch.Fault, s.Scratch.Cause, s.Output.Error = say, cause, say
	s.Because(cause)
	return nodeFallback, nil
}

// tell emits an event where a person has to wait for what follows it.
func tell(ctx context.Context, s *state, ev ...claybot.Event) error {
	return s.Emit(ctx, true, ev...)
}

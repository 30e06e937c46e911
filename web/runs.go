package web

import (
	"context"
	"encoding/json"
	"iter"
	"maps"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
)

// Runs lists and follows runs.
type Runs interface {
	RunPage(ctx context.Context, q storage.RunQuery) ([]claybot.Run, error)
	// Run loads a run. The id may be a reserved one, see storage.Runs.
	Run(ctx context.Context, id claybot.RunID) (claybot.Run, error)
	// Events yields the events of a run after a seq, up to now.
	Events(ctx context.Context, id claybot.RunID, after int64) iter.Seq2[claybot.Event, error]
	// Watch yields the events of a run after a seq, stored ones and new ones, until
	// its last event or until ctx is done; see runs.Watch.
	Watch(ctx context.Context, id claybot.RunID, after int64) iter.Seq2[runs.Update, error]
	// RunRecords returns the records of a run, oldest first, also those that its agent no
	// longer remembers; none where they were removed.
	RunRecords(ctx context.Context, run claybot.Run) ([]claybot.Record, error)
	// Receipt returns the receipt of a message, or storage.ErrNotFound.
	Receipt(ctx context.Context, id claybot.MessageID) (storage.Receipt, error)
}

// A Starter posts messages for agents.
type Starter interface {
	// StartRun posts a message to an agent and reserves the id of the run that will take it.
	// Repeating the message with the same id returns the same ids and has no further effect;
	// another message with that id fails with agentsystem.ErrUsed.
	StartRun(ctx context.Context, to agentsystem.Address, m claybot.AgentMessage) (agentsystem.Accepted, error)
	// Known returns the result of an earlier message that StartRun or AnswerSaid accepted;
	// known is false if there is none with that id. It needs the id, the text, and of each
	// file the id or the SHA256; it rejects another message as StartRun does. It creates no
	// agent.
	Known(ctx context.Context, to agentsystem.Address, m claybot.AgentMessage) (a agentsystem.Accepted, known bool, err error)
}

// RunControl cancels runs, and undoes their side effects.
type RunControl interface {
	// CancelRun cancels a run and returns its earlier state. A run that has ended does not
	// change.
	CancelRun(ctx context.Context, id claybot.RunID, by string) (claybot.Run, error)
	// UndoRun starts a run that undoes the side effects of another one, and returns it; a run
	// is undone once. A Refusal explains why it cannot be.
	UndoRun(ctx context.Context, id claybot.RunID, by string) (agentsystem.Accepted, error)
	// UndoneBy returns the run that undid another one or is undoing it; empty if UndoRun may
	// be called.
	UndoneBy(ctx context.Context, id claybot.RunID) (claybot.RunID, error)
}

// A Drawing is an engine that is a graph.
type Drawing struct {
	Name    string              `json:"name" doc:"Name of the engine."`
	Start   string              `json:"start"`
	Nodes   []string            `json:"nodes" doc:"The start node first; a run ends at END."`
	Edges   map[string][]string `json:"edges" doc:"Edges of each graph node, the usual one first."`
	Mermaid string              `json:"mermaid" doc:"The graph as a Mermaid flowchart."`
}

// A Drawings has all engines that are graphs.
type Drawings struct {
	Graphs []Drawing `json:"graphs"`
}

// A PlanView is the plan of a run and its current position.
type PlanView struct {
	Run    claybot.RunID    `json:"runId"`
	Engine string           `json:"engine,omitempty"`
	State  claybot.RunState `json:"state"`
	runs.PlanView
}

// A RunView is a run.
type RunView struct {
	ID       claybot.RunID       `json:"runId" doc:"The run's own id, if you requested it by a reserved id."`
	Agent    claybot.AgentID     `json:"agentId"`
	State    claybot.RunState    `json:"state"`
	Messages []claybot.MessageID `json:"messages" doc:"The messages it processes."`
	Requests []string            `json:"requests,omitempty" doc:"The X-Request-Id of the requests that brought its messages. Not in lists."`
	LastSeq  int64               `json:"lastSeq" doc:"seq of the newest event."`
	Attempts int                 `json:"attempts" doc:"Attempts since the last progress."`
	Cancel   string              `json:"cancel,omitempty" doc:"Who canceled it."`
	Awaiting *AwaitingView       `json:"awaiting,omitempty"`
	Output   string              `json:"output,omitempty" doc:"The reply, truncated to 2 KiB; GET /agents/runs/{run}/output has all of it."`
	Usage    claybot.Usage       `json:"usage" doc:"Of an active run: so far. Lists and responses to changes count up to its last pause."`
	Error    *claybot.RunError   `json:"error,omitempty"`
	Engine   string              `json:"engine,omitempty" doc:"The engine: react, plan, explore, undo or a graph of GET /graphs. Lists show it after the first pause or the end."`
	Result   json.RawMessage     `json:"result,omitempty" doc:"Output of a graph so far, an object. Not in lists."`
	Undo     []EffectView        `json:"undo,omitempty" doc:"Side effects that people may want to undo. Not in lists."`
	Dry      bool                `json:"dry,omitempty" doc:"A dry run of a workflow, in which nothing acts. Not in responses to changes."`
	UndoOf   claybot.RunID       `json:"undoOf,omitempty" doc:"The run whose side effects this run undoes."`
	Feedback []claybot.Feedback  `json:"feedback,omitempty" doc:"What people said of it by reactions to its messages, oldest first; not what they withdrew."`
	Node     string              `json:"node,omitempty" doc:"The cluster member that processes it now. Not in lists."`
	Started  claybot.Time        `json:"started,omitempty"`
	Ended    claybot.Time        `json:"ended,omitempty"`
	Stream   string              `json:"stream"`
}

// A RunOutput is what a run came to, with one page of its messages.
type RunOutput struct {
	ID       claybot.RunID     `json:"runId"`
	State    claybot.RunState  `json:"state"`
	Output   string            `json:"output" doc:"The whole text of the last reply; of a run that has not ended, so far."`
	Messages []claybot.Record  `json:"messages" doc:"The records of the run, oldest first, as in GET /agents/{agent}/history."`
	Partial  bool              `json:"partial,omitempty" doc:"Messages that the run took have no record: it ended before it read them, or retention.history has removed their records."`
	Usage    claybot.Usage     `json:"token_usage" doc:"Of the run alone, without its subagents."`
	Result   json.RawMessage   `json:"result,omitempty" doc:"What the nodes of a graph put out, an object."`
	Error    *claybot.RunError `json:"error,omitempty"`
	Next     string            `json:"next,omitempty" doc:"Pass it as after to get the next page of messages."`
}

// An AwaitingView is what a paused run waits for.
type AwaitingView struct {
	Reason    claybot.AwaitReason `json:"reason,omitempty"`
	Until     claybot.Time        `json:"until"`
	Answers   []claybot.MessageID `json:"answers" doc:"The ids of the answers."`
	Questions []claybot.Question  `json:"questions,omitempty" doc:"Answer them with POST /agents/runs/{run}/answers."`
}

// A RunList is one page of runs.
type RunList struct {
	Runs []RunView `json:"runs"`
	Next string    `json:"next,omitempty" doc:"Pass it as before to get the next page."`
}

// A StartRequest starts a run. Without AgentID and Descriptor it creates an agent.
type StartRequest struct {
	AgentID    claybot.AgentID `json:"agentId,omitempty" doc:"The agent to message. Set this or descriptor, or neither for a new agent."`
	Descriptor *Target         `json:"descriptor,omitempty"`
	Text       string          `json:"text,omitempty" doc:"The message, at most 100,000 characters. Optional if there are files."`
	Key        string          `json:"idempotencyKey,omitempty" doc:"1 to 128 letters, digits and . _ : -. A retry with the same key does nothing new and returns the same ids; another message with it is refused."`
	Files      []FileGiven     `json:"files,omitempty" doc:"At most 10 files."`
	Engine     string          `json:"engine,omitempty" doc:"The engine of the run: react, plan, explore or another graph of GET /graphs, or flow: and the name of a workflow, which has an agent of its own. Default: the engine of the agent's profile. A message that joins an active run does not change its engine. If the agent's engine is plan, any other needs the scope admin."`
	Stateless  bool            `json:"stateless,omitempty" doc:"The run sees nothing of earlier runs of the agent, and later runs nothing of it."`
}

// A Target names the agent of a user in a channel; the first message creates it.
type Target struct {
	Type      claybot.AgentType `json:"type,omitempty" doc:"Only user, which is the default."`
	Connector string            `json:"connector,omitempty" doc:"Default: api. Any other needs the scope admin."`
	ChannelID string            `json:"channelId" doc:"The thread, an id of your choice."`
	UserID    string            `json:"userId,omitempty" doc:"Default: the name of your token. Any other needs the scope admin."`
}

// A MessageRequest is a message for the agent in the path.
type MessageRequest struct {
	Text  string      `json:"text,omitempty" doc:"At most 100,000 characters."`
	Key   string      `json:"idempotencyKey,omitempty" doc:"See POST /agents/runs."`
	Files []FileGiven `json:"files,omitempty" doc:"At most 10 files."`
}

// An Accepted is the result of a message.
type Accepted struct {
	agentsystem.Accepted
	Stream string `json:"stream" doc:"Path of the event stream of the run."`
}

// An EffectView is one side effect of a run.
type EffectView struct {
	Step string `json:"step" doc:"The step of the plan, or the id of the call."`
	Tool string `json:"tool"`
	What string `json:"what" doc:"The side effect in a few words."`
	Can  bool   `json:"can" doc:"Whether it can be undone."`
}

// Draw describes an engine that is a graph.
func Draw(name string, s runs.Shape) Drawing {
	d := Drawing{Name: name, Start: s.Start, Nodes: s.Order(), Edges: s.Edges, Mermaid: s.Mermaid()}
	if d.Nodes == nil {
		d.Nodes = []string{}
	}
	if d.Edges == nil {
		d.Edges = make(map[string][]string)
	}
	return d
}

// DrawAll describes graphs in the order of their names.
func DrawAll(all map[string]runs.Shape) []Drawing {
	out := make([]Drawing, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, Draw(name, all[name]))
	}
	return out
}

// FoldPlan reads the plan of a run from its events, at most up to the one numbered
// last; 0: all.
func FoldPlan(ctx context.Context, from Runs, id claybot.RunID, last int64) (runs.PlanView, error) {
	v := runs.PlanOf(nil)
	for e, err := range from.Events(ctx, id, 0) {
		if err != nil {
			return v, err
		}
		if v.Add(e); last > 0 && e.Seq >= last {
			break
		}
	}
	return v, nil
}

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

// Runs lists, follows and cancels runs.
type Runs interface {
	RunPage(ctx context.Context, q storage.RunQuery) ([]claybot.Run, error)
	// Run loads a run. The id may be one that was reserved, see storage.Runs.
	Run(ctx context.Context, id claybot.RunID) (claybot.Run, error)
	// Events yields the events of a run after a seq, up to now.
	Events(ctx context.Context, id claybot.RunID, after int64) iter.Seq2[claybot.Event, error]
	// Watch yields the events of a run after a seq, stored ones and new ones, until
	// its last event or until ctx is done; see runs.Watch.
	Watch(ctx context.Context, id claybot.RunID, after int64) iter.Seq2[runs.Update, error]
	// CancelRun cancels a run, and returns the run as it was. A run that has ended
	// stays as it is.
	CancelRun(ctx context.Context, id claybot.RunID, by string) (claybot.Run, error)
}

// A Starter posts messages for agents.
type Starter interface {
	// StartRun gives an agent a message and reserves the id of the run that
	// will take it. The same message under the same id gives the same ids and
	// nothing new; another one is refused with agentsystem.ErrUsed.
	StartRun(ctx context.Context, to agentsystem.Address, m claybot.AgentMessage) (agentsystem.Accepted, error)
	// Known returns what became of a message that StartRun or AnswerSaid took
	// before; known is false when there was none with that id. It needs the id,
	// the text, and of each file the id or the SHA256; it refuses another message
	// as StartRun does. It creates no agent.
	Known(ctx context.Context, to agentsystem.Address, m claybot.AgentMessage) (a agentsystem.Accepted, known bool, err error)
}

// Undos undoes the side effects of runs.
type Undos interface {
	// UndoRun starts a run that undoes the side effects of another one, and returns
	// it; a run is undone once. A Refusal says in a sentence why not.
	UndoRun(ctx context.Context, id claybot.RunID, by string) (agentsystem.Accepted, error)
	// UndoneBy returns the run that undid another one or is undoing it; empty when
	// UndoRun may be called.
	UndoneBy(ctx context.Context, id claybot.RunID) (claybot.RunID, error)
}

// A Drawing is an engine that is a graph.
type Drawing struct {
	Name    string              `json:"name" doc:"Of the engine."`
	Start   string              `json:"start"`
	Nodes   []string            `json:"nodes" doc:"The start first; END is where a run ends."`
	Edges   map[string][]string `json:"edges" doc:"Where each node may lead, the usual way first."`
	Mermaid string              `json:"mermaid" doc:"The graph as a flowchart of mermaid."`
}

// A Drawings is all engines that are graphs.
type Drawings struct {
	Graphs []Drawing `json:"graphs"`
}

// A PlanView is the plan of a run, and where the run is.
type PlanView struct {
	Run    claybot.RunID    `json:"runId"`
	Engine string           `json:"engine,omitempty"`
	State  claybot.RunState `json:"state"`
	runs.PlanView
}

// A RunView is a run.
type RunView struct {
	ID       claybot.RunID       `json:"runId" doc:"Of the run itself, when it was asked for by a reserved id."`
	Agent    claybot.AgentID     `json:"agentId"`
	State    claybot.RunState    `json:"state"`
	Messages []claybot.MessageID `json:"messages" doc:"What it works on."`
	LastSeq  int64               `json:"lastSeq" doc:"Of the newest event."`
	Attempts int                 `json:"attempts" doc:"Passes since the last progress."`
	Cancel   string              `json:"cancel,omitempty" doc:"Who asked for its end."`
	Awaiting *AwaitingView       `json:"awaiting,omitempty"`
	Output   string              `json:"output,omitempty" doc:"The reply, at most 2 KiB of it; all of it is in the history of the agent."`
	Usage    claybot.Usage       `json:"usage" doc:"Of a run under way: so far. In lists and in answers to changes, that is up to its last pause."`
	Error    *claybot.RunError   `json:"error,omitempty"`
	Engine   string              `json:"engine,omitempty" doc:"What advances it: react, plan, explore or undo. In lists, it is known from the first pause or the end on."`
	Result   json.RawMessage     `json:"result,omitempty" doc:"What a graph has put out so far, an object. Not in lists."`
	Undo     []EffectView        `json:"undo,omitempty" doc:"What it did that people may want to take back. Not in lists."`
	UndoOf   claybot.RunID       `json:"undoOf,omitempty" doc:"The run whose effects this one takes back."`
	Node     string              `json:"node,omitempty" doc:"The name of the node that works on it now, where several share the store. Not in lists."`
	Started  claybot.Time        `json:"started,omitempty"`
	Ended    claybot.Time        `json:"ended,omitempty"`
	Stream   string              `json:"stream"`
}

// An AwaitingView is what a paused run waits for.
type AwaitingView struct {
	Reason    claybot.AwaitReason `json:"reason,omitempty"`
	Until     claybot.Time        `json:"until"`
	Answers   []claybot.MessageID `json:"answers" doc:"The ids that the answers will have."`
	Questions []claybot.Question  `json:"questions,omitempty" doc:"POST /agents/runs/{run}/answers answers them."`
}

// A RunList is one page of runs.
type RunList struct {
	Runs []RunView `json:"runs"`
	Next string    `json:"next,omitempty" doc:"Give it as before to get the next page."`
}

// A StartRequest gives an agent something to do. Without AgentID and Descriptor
// the message is for an agent of its own.
type StartRequest struct {
	AgentID    claybot.AgentID `json:"agentId,omitempty" doc:"The agent that is told. Give this or descriptor, or neither for a new agent."`
	Descriptor *Target         `json:"descriptor,omitempty"`
	Text       string          `json:"text,omitempty" doc:"What it is told, at most 100,000 characters. It may be left out when there are files."`
	Key        string          `json:"idempotencyKey,omitempty" doc:"1 to 128 letters, digits and . _ : -; a repeat under the same key does nothing new and gets the same ids; another message under it is refused."`
	Files      []FileGiven     `json:"files,omitempty" doc:"At most 10."`
	Engine     string          `json:"engine,omitempty" doc:"What advances the run: react, plan, explore or another graph of GET /graphs. Without it, the engine of the agent's profile. A message that joins a run under way does not change its engine. Another one than plan needs the scope admin where that of the agent is plan."`
	Stateless  bool            `json:"stateless,omitempty" doc:"Not supported; leave out agentId and descriptor for an agent without a past."`
}

// A Target names the agent of a person in a channel; it is made at its first
// message.
type Target struct {
	Type      claybot.AgentType `json:"type,omitempty" doc:"Only user, the default."`
	Connector string            `json:"connector,omitempty" doc:"api, the default; another one needs the scope admin."`
	ChannelID string            `json:"channelId" doc:"The thread, of your own choice."`
	UserID    string            `json:"userId,omitempty" doc:"The name of your token, the default; another one needs the scope admin."`
}

// A MessageRequest is a message for an agent that is named by the path.
type MessageRequest struct {
	Text  string      `json:"text,omitempty" doc:"At most 100,000 characters."`
	Key   string      `json:"idempotencyKey,omitempty" doc:"As for POST /agents/runs."`
	Files []FileGiven `json:"files,omitempty" doc:"At most 10."`
}

// An Accepted is what became of a message.
type Accepted struct {
	agentsystem.Accepted
	Stream string `json:"stream" doc:"The path of the run's events."`
}

// An EffectView is one effect of a run.
type EffectView struct {
	Step string `json:"step" doc:"Of the plan, or the id of the call."`
	Tool string `json:"tool"`
	What string `json:"what" doc:"The effect in a few words."`
	Can  bool   `json:"can" doc:"Something takes it back."`
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

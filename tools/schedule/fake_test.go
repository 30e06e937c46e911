package schedule_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/schedule"
)

// tasks notes what it is asked, and answers as it is told.
type tasks struct {
	all      []connectors.Task
	problems []connectors.Problem
	asked    []any // name of the method, then its arguments
	err      error
	memory   string
}

func (f *tasks) Ledger(context.Context, string, int) ([]connectors.Firing, error) {
	panic("no tool reads the ledger")
}

func (f *tasks) Tasks(context.Context) ([]connectors.Task, []connectors.Problem, error) {
	return f.all, f.problems, nil // asked beside the others
}

func (f *tasks) Add(_ context.Context, t connectors.TaskSpec, dry bool) (connectors.Task, error) {
	f.asked = []any{"add", t}
	if dry {
		f.asked[0] = "preview"
	}
	return connectors.Task{TaskSpec: t, Slug: "made", Next: next()}, f.err
}

func (f *tasks) Change(_ context.Context, ref string, c connectors.TaskChange) (connectors.Task, error) {
	f.asked = []any{"change", ref, text(c)}
	return connectors.Task{Slug: "changed", Next: next()}, f.err
}

// text is a change as one can compare it.
func text(c connectors.TaskChange) string {
	b, _ := json.Marshal(c)
	var set map[string]any
	_ = json.Unmarshal(b, &set)
	for name, v := range set {
		if v == nil {
			delete(set, name)
		}
	}
	return fmt.Sprint(set)
}

func (f *tasks) Remove(_ context.Context, ref string) error {
	f.asked = []any{"remove", ref}
	return f.err
}

func (f *tasks) RunNow(_ context.Context, ref, key string) (connectors.Task, error) {
	f.asked = []any{"run", ref, key}
	return connectors.Task{Slug: "ran", TaskSpec: connectors.TaskSpec{Route: "none"}}, f.err
}

func (f *tasks) Memory(_ context.Context, ref string) (string, error) {
	if f.asked == nil { // else asked beside the others
		f.asked = []any{"memory", ref}
	}
	return f.memory, f.err
}

func (f *tasks) Remember(_ context.Context, ref, text string, add bool) error {
	f.asked = []any{"remember", ref, text, add}
	return f.err
}

// next are two instants around a change of the clocks.
func next() []time.Time {
	zone := time.FixedZone("Europe/Berlin", 3600)
	return []time.Time{time.Date(2026, 3, 28, 9, 0, 0, 0, zone), time.Date(2026, 3, 30, 9, 0, 0, 0, zone)}
}

// heartbeats is the like for the heartbeat.
type heartbeats struct {
	all      []connectors.HeartbeatTask
	problems []connectors.Problem
	asked    []any
	err      error
}

func (f *heartbeats) Heartbeats(context.Context) ([]connectors.HeartbeatTask, []connectors.Problem, error) {
	return f.all, f.problems, nil
}

func (f *heartbeats) AddHeartbeat(_ context.Context, b connectors.HeartbeatTask) (connectors.HeartbeatTask, error) {
	f.asked = []any{"add", b}
	return b, f.err
}

func (f *heartbeats) RemoveHeartbeat(_ context.Context, id string) error {
	f.asked = []any{"remove", id}
	return f.err
}

func (f *heartbeats) RunHeartbeats(_ context.Context, key string, ids ...string) (int, error) {
	f.asked = []any{"run", key, fmt.Sprint(ids)}
	return len(ids), f.err
}

// family is tools.Directory as far as its list goes.
type family struct {
	tools.Directory
	all   []tools.AgentInfo
	err   error
	place string // where others read as well
}

func (f *family) Readers(context.Context, tools.Env) claybot.Audience {
	return claybot.Audience{Place: f.place}
}

func (f *family) ListAgents(context.Context, tools.Env) ([]tools.AgentInfo, error) {
	return f.all, f.err
}

const (
	annID    = "a23456789012345678901234"
	childID  = "b23456789012345678901234"
	grandID  = "c23456789012345678901234"
	foreign  = "d23456789012345678901234"
	circleID = "e23456789012345678901234"
)

// envOf is a call of an agent.
func envOf(a claybot.Agent) tools.Env { return tools.Env{Agent: a, Run: "run1", CallID: "call1"} }

// ann writes from a thread of a Slack channel.
func ann() tools.Env {
	return envOf(claybot.Agent{
		ID: annID, Descriptor: claybot.User("slack", "T1/C1", "U1"),
		State: claybot.AgentState{Routing: &claybot.Route{Connector: "slack", ChannelID: "T1/C1", UserID: "U1", ThreadID: "17.1"}},
	})
}

// A world is all that the tools work on.
type world struct {
	tasks      *tasks
	heartbeats *heartbeats
	family     *family
	tools      []tools.Tool
	set        *tools.Set
}

func newWorld() world {
	w := world{tasks: new(tasks), heartbeats: new(heartbeats), family: &family{all: []tools.AgentInfo{
		{ID: annID, Self: true},
		{ID: childID, Parent: annID},
		{ID: grandID, Parent: childID},
		{ID: foreign},
		{ID: circleID, Parent: circleID},
	}}}
	w.tools = append(schedule.Tools(w.tasks, w.heartbeats, w.family), schedule.MemoryTools(w.tasks)...)
	var err error
	if w.set, err = tools.NewSet(w.tools...); err != nil {
		panic(err)
	}
	return w
}

// call checks the arguments as a Set does, and calls the tool.
func (w world) call(t *testing.T, env tools.Env, name, args string) (string, error) {
	t.Helper()
	if err := w.set.Check(claybot.ToolCall{ID: "c", Name: name, Args: args}); err != nil {
		return "", err
	}
	for _, tool := range w.tools {
		if tool.Spec().Name == name {
			r, err := tool.Call(t.Context(), env, json.RawMessage(args))
			return r.Text, err
		}
	}
	t.Fatalf("no tool %s", name)
	return "", nil
}

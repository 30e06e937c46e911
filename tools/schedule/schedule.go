// Package schedule has the tools with which an agent schedules work: cron_add,
// cron_list, cron_update, cron_delete and cron_run for tasks with a schedule,
// cron_read_memory and cron_write_memory for the agent of such a task, and
// heartbeat_add, heartbeat_list, heartbeat_run and heartbeat_remove.
//
// It limits an agent to the tasks of its own owner, and their output to its own chat.
// Tasks and Heartbeats decide what a task is and when it runs.
//
// Only cmd imports it.
package schedule

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/tools"
)

// Limits of what a model may write, in bytes.
const (
	maxName        = 100
	maxDescription = 2 << 10
	maxPrompt      = 32 << 10
	maxMemory      = 16 << 10
	maxField       = 200
)

// minEvery is the shortest interval of the tasks that agents create. A file written by hand
// may go below it.
const minEvery = time.Minute

// maxList bounds a list in a result, in bytes.
const maxList = 24 << 10

// Tasks are the tasks of cron. Their errors are sentences for the caller.
type Tasks interface {
	// Tasks lists all, by slug, with the files that could not be read.
	Tasks(ctx context.Context) ([]connectors.Task, []connectors.Problem, error)
	// Add creates a task, whose Slug and UID it chooses; dry checks it alone, and
	// finds out its next five instants. It refuses a Limited task above the limits of its
	// owner.
	Add(ctx context.Context, t connectors.TaskSpec, dry bool) (connectors.Task, error)
	// Change replaces what is set in t. The ledger stays.
	Change(ctx context.Context, ref string, t connectors.TaskChange) (connectors.Task, error)
	// Remove deletes a task; its folder goes to .done.
	Remove(ctx context.Context, ref string) error
	// RunNow runs a task once, outside its schedule; key makes repeats of the call
	// harmless.
	RunNow(ctx context.Context, ref, key string) (connectors.Task, error)
}

// Heartbeats are the tasks of the heartbeat. Their errors are sentences for the caller.
type Heartbeats interface {
	// Heartbeats lists all tasks in the order in which they run.
	Heartbeats(ctx context.Context) ([]connectors.HeartbeatTask, []connectors.Problem, error)
	// AddHeartbeat creates a task, or replaces the one with this id.
	AddHeartbeat(ctx context.Context, b connectors.HeartbeatTask) (connectors.HeartbeatTask, error)
	// RemoveHeartbeat deletes a task.
	RemoveHeartbeat(ctx context.Context, id string) error
	// RunHeartbeats runs the tasks named, or all, as one run in the background, and
	// returns how many; key makes repeats of the call harmless.
	RunHeartbeats(ctx context.Context, key string, ids ...string) (int, error)
}

// Tools are the tools for tasks over t and for the heartbeat over b. Those of a
// nil one are left out. a lists the subagents of a caller, which may
// get the output of its tasks; with nil only the caller itself may.
func Tools(t Tasks, b Heartbeats, a tools.Directory) []tools.Tool {
	var all []tools.Tool
	if t != nil {
		c := cron{t, a}
		all = append(all, c.add(), c.list(), c.update(), c.remove(), c.run())
	}
	if b != nil {
		h := heart{b}
		all = append(all, h.add(), h.list(), h.run(), h.remove())
	}
	return all
}

// spec is what all tools of this package have in common.
func spec(name, description string, effect tools.Effect) tools.Spec {
	s := tools.Spec{Tool: llm.Tool{Name: name, Description: description}, Effect: effect, Scopes: []string{"schedule"}}
	if effect != tools.ReadOnly { // looking at tasks schedules nothing
		s.Class, s.Public = tools.Schedule, name != "cron_update" // which shows what the task was
	}
	return s
}

// A rule is what a text of a model must be like.
type rule struct {
	limit   int  // bytes
	must    bool // not be empty
	oneLine bool // what it is written into is read by line
}

// check trims a field and refuses what breaks the rule.
func (r rule) check(field string, s *string) (err error) {
	if *s, err = tools.Optional(field, *s, r.limit); err != nil {
		return err
	}
	if r.must {
		if *s, err = tools.Required(field, *s, r.limit); err != nil {
			return err
		}
	}
	if r.oneLine && strings.ContainsAny(*s, "\r\n") {
		return fmt.Errorf("field %s: must be one line", field)
	}
	return nil
}

// list is a tool that lists tasks, after the files with problems.
func list[T any](name, description, none string, all func(context.Context, tools.Env) ([]T, []connectors.Problem, error), describe func(T) string) tools.Tool {
	return tools.New(spec(name, description, tools.ReadOnly), func(ctx context.Context, env tools.Env, _ struct{}) (tools.Result, error) {
		found, problems, err := all(ctx, env)
		if err != nil {
			return tools.Result{}, err
		}
		var entries []string
		for _, p := range problems {
			entries = append(entries, problem(p))
		}
		for _, t := range found {
			entries = append(entries, describe(t))
		}
		return fit(entries, none), nil
	})
}

// key names a call, so that its repeat after a crash is recognised.
func key(env tools.Env) string { return string(env.Run) + "/" + env.CallID }

// instant writes a time with its zone, by offset and by name.
func instant(t time.Time) string {
	s := t.Format("Mon 2006-01-02 15:04:05 -07:00")
	if zone := t.Location().String(); zone != "" && zone != "Local" {
		s += " (" + zone + ")"
	}
	return s
}

// upcoming is a sentence with the next runs.
func upcoming(next []time.Time) string {
	if len(next) == 0 {
		return "No further runs."
	}
	lines := []string{"Next runs:"}
	for _, t := range next {
		lines = append(lines, "- "+instant(t))
	}
	return strings.Join(lines, "\n")
}

// fit joins entries until there is no room, and says how many are missing.
func fit(entries []string, none string) tools.Result {
	if len(entries) == 0 {
		return tools.Result{Text: none}
	}
	size := 0
	for i, e := range entries {
		if size += len(e) + 2; size > maxList {
			rest := fmt.Sprintf("[%d more left out for length]", len(entries)-i)
			return tools.Result{Text: strings.Join(append(slices.Clone(entries[:i]), rest), "\n\n")}
		}
	}
	return tools.Result{Text: strings.Join(entries, "\n\n")}
}

// problem is a file that could not be read, as a sentence.
func problem(p connectors.Problem) string {
	if p.Line > 0 {
		return fmt.Sprintf("problem in %s, line %d: %s", p.File, p.Line, tools.Short(p.Text, maxField))
	}
	return fmt.Sprintf("problem in %s: %s", p.File, tools.Short(p.Text, maxField))
}

// output is a sentence about where the output of a task goes.
func output(route string) string {
	if route == "" || route == nowhere {
		return "its output stays in its history"
	}
	return "its output goes to " + route
}

// nowhere is the route of a task whose output stays in its history.
const nowhere = "none"

// place is the chat of the caller as a route, nowhere when it has none. A
// thread is left out: it may be gone when the task runs.
func place(a claybot.Agent) string {
	r := a.Descriptor.Route()
	if a.State.Routing != nil {
		r = *a.State.Routing
	}
	if r.Connector == "" || r.ChannelID == "" {
		return nowhere
	}
	return r.Connector + "/" + r.ChannelID
}

// route checks where a task's output shall go: the caller's chat, which is also
// meant by an empty string, the caller itself or an agent below it, or nowhere.
// A task must not write into other people's chats.
func (c cron) route(ctx context.Context, env tools.Env, s string) (string, error) {
	s = strings.TrimSpace(s)
	if env.Undo && s != "" {
		return s, nil // where it went before
	}
	own := place(env.Agent)
	if s == "" || s == own {
		return own, nil
	}
	if s == nowhere {
		return nowhere, nil
	}
	if id, ok := strings.CutPrefix(s, "agent:"); ok {
		if err := c.below(ctx, env, claybot.AgentID(id)); err != nil {
			return "", err
		}
		return s, nil
	}
	if own == nowhere {
		return "", fmt.Errorf("field route: %.80q is not yours; want none or agent:%s", s, env.Agent.ID)
	}
	return "", fmt.Errorf("field route: %.80q is not this chat; want %s, none or agent:%s", s, own, env.Agent.ID)
}

// below reports, as an error, an agent that is neither the caller nor one that
// it or its subagents started.
func (c cron) below(ctx context.Context, env tools.Env, id claybot.AgentID) error {
	if id == env.Agent.ID {
		return nil
	}
	refused := fmt.Errorf("field route: agent %.80q is neither you nor one of your subagents", string(id))
	if c.agents == nil || id.Validate() != nil {
		return refused
	}
	all, err := c.agents.ListAgents(ctx, env)
	if err != nil {
		return fmt.Errorf("look for the agent of field route: %w", err)
	}
	parents := make(map[claybot.AgentID]claybot.AgentID, len(all))
	for _, i := range all {
		parents[i.ID] = i.Parent
	}
	for range all { // no chain is longer, also when it runs in a circle
		parent := parents[id]
		if parent == "" {
			break
		}
		if parent == env.Agent.ID {
			return nil
		}
		id = parent
	}
	return refused
}

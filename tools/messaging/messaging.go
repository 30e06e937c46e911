// Package messaging holds the tools with which an agent starts, asks, writes to
// and looks after other agents, and leaves notes for itself in time:
// start_subagent, spawn_and_wait, ask_agent, send_agent_message, list_agents,
// read_agent_history, search_history, stop_agent, remind_me, list_reminders, cancel_reminder.
//
// It checks what a model wrote and words what came of it. Who may reach whom,
// limits and durability are the business of tools.Agents, which knows each call
// by its Env; so a call that a crash cut off may be made again.
//
// Only cmd imports it.
package messaging

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
)

const (
	maxTask   = 64 << 10
	maxPrompt = 64 << 10
	maxText   = 64 << 10
	maxNote   = 4 << 10
	maxName   = 100
	maxModel  = 200
	maxID     = 200
)

const maxGiven = 200

// Tools are all tools of this package but TaskTool.
func Tools(a tools.Agents, d tools.Directory, r tools.Reminders) []tools.Tool {
	return []tools.Tool{
		startSubagent(a), spawnAndWait(a, d), askAgent(a, d), sendAgentMessage(a, d),
		listAgents(d), readAgentHistory(d), searchHistory(d), stopAgent(a),
		remindMe(r), listReminders(r), cancelReminder(r),
	}
}

const (
	scopeAgents   = "agents"
	scopeSchedule = "schedule" // reminders
	scopeMemory   = "memory"
)

// later are the tools that act later, or through a new agent. Those that talk to
// agents of the same owner stay inside.
var later = []string{"start_subagent", "spawn_and_wait", "task", "remind_me"}

// silent are the tools whose results say no more than that the call was made.
var silent = []string{"start_subagent", "send_agent_message", "stop_agent", "remind_me", "cancel_reminder"}

func spec(name, description string, effect tools.Effect, scope string) tools.Spec {
	s := tools.Spec{Tool: llm.Tool{Name: name, Description: description}, Effect: effect, Scopes: []string{scope}}
	if slices.Contains(later, name) {
		s.Class = tools.Schedule
	}
	s.Public = slices.Contains(silent, name)
	return s
}

// reaching makes a tool one that reaches the agent which its argument field names: rules
// about it are about that agent, and it asks where it discloses something.
func reaching(s tools.Spec, d tools.Directory, field string, way tools.Way) tools.Spec {
	argument := func(args json.RawMessage, name string) (value string, given bool) {
		var in map[string]any
		_ = json.Unmarshal(args, &in) // what does not fit is refused before
		value, given = in[name].(string)
		return strings.TrimSpace(value), given
	}
	s.Subject = func(args json.RawMessage) string {
		to, _ := argument(args, field)
		return to
	}
	s.Discloses = func(ctx context.Context, env tools.Env, args json.RawMessage) *tools.Disclosure {
		if text, given := argument(args, "text"); given && text == "" {
			return nil // the call fails
		}
		return d.Discloses(ctx, env, s.Subject(args), way)
	}
	return s
}

func answer(v any) (tools.Result, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return tools.Result{}, fmt.Errorf("write the result: %w", err)
	}
	return tools.Result{Text: string(b)}, nil
}

// maxList bounds a list, in bytes: a result above 32 KiB would be cut in the
// middle, which JSON does not survive.
const maxList = 24 << 10

// fit writes as many items as a result can hold, those that are important
// before the others, in the order given. It returns how many are missing.
func fit[T any](items []T, important func(T) bool) (kept []json.RawMessage, leftOut int, err error) {
	written := make([]json.RawMessage, len(items))
	room := maxList
	for _, turn := range []bool{true, false} {
		for i, item := range items {
			if important(item) != turn {
				continue
			}
			b, err := json.Marshal(item)
			if err != nil {
				return nil, 0, fmt.Errorf("write the list: %w", err)
			}
			if room -= len(b) + 1; room >= 0 {
				written[i] = b
			}
		}
	}
	kept = []json.RawMessage{}
	for _, b := range written {
		if b == nil {
			leftOut++
		} else {
			kept = append(kept, b)
		}
	}
	return kept, leftOut, nil
}

func startSubagent(a tools.Agents) tools.Tool {
	type input struct {
		Task   string   `json:"task" jsonschema:"all it needs to know; it sees nothing of this conversation"`
		Name   string   `json:"name,omitempty" jsonschema:"a short name for people"`
		Model  string   `json:"model,omitempty" jsonschema:"the model it uses; yours when absent"`
		Prompt string   `json:"prompt,omitempty" jsonschema:"its system prompt; the usual one when absent"`
		Tools  []string `json:"tools,omitempty" jsonschema:"names of the tools it may use, only from among yours; all of yours when absent"`
		Engine string   `json:"engine,omitempty" jsonschema:"how it works, such as plan; as usual when absent"`
		Report bool     `json:"report,omitempty" jsonschema:"true: you get its result"`
		Limits limits   `json:"permissions,omitzero" jsonschema:"takes away what the subagent does not need; it never gets more than you have"`
	}
	s := spec("start_subagent", "Starts an agent on a task in the background and returns its id. If it fails, you get a message.", tools.Idempotent, scopeAgents)
	s.Brief = []string{"task", "report"}
	return tools.New(s, func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		sub, err := order{in.Task, in.Name, in.Model, in.Prompt, in.Engine, in.Tools}.check("")
		if err != nil {
			return tools.Result{}, err
		}
		sub.Report, sub.Permissions = in.Report, in.Limits.permissions()
		id, err := a.StartSubagent(ctx, env, sub)
		if err != nil {
			return tools.Result{}, err
		}
		return tools.Result{Text: fmt.Sprintf("agent %s started", id), What: fmt.Sprintf(texts.DidStartAgent, called(sub.Name, id))}, nil
	})
}

// limits are the permissions that the creator of a subagent can take away.
type limits struct {
	Web       *bool    `json:"web,omitempty" jsonschema:"false: no web"`
	ReadDirs  []string `json:"readDirs,omitempty" jsonschema:"only these directories of the workspace can be read; this takes the shell away, too"`
	WriteDirs []string `json:"writeDirs,omitempty" jsonschema:"only these directories of the workspace can be written; this takes the shell away, too"`
	Routes    []string `json:"routes,omitempty" jsonschema:"only these agents, by id, can be written to besides you; none when empty"`
	Tools     struct {
		Allow []string `json:"allow,omitempty" jsonschema:"only these tools"`
		Deny  []string `json:"deny,omitempty" jsonschema:"not these tools"`
	} `json:"tools,omitzero"`
}

func (l limits) permissions() claybot.Permissions {
	return claybot.Permissions{Web: l.Web, ReadDirs: l.ReadDirs, WriteDirs: l.WriteDirs, Routes: l.Routes, Tools: claybot.ToolPermissions{Allow: l.Tools.Allow, Deny: l.Tools.Deny}}
}

func called(name string, id claybot.AgentID) string {
	if name == "" {
		return string(id)
	}
	return fmt.Sprintf("%s (%s)", name, id)
}

// maxTasks is the most subagents that one spawn_and_wait starts.
const maxTasks = 64

func spawnAndWait(a tools.Agents, d tools.Directory) tools.Tool {
	type task struct {
		Task    string   `json:"task" jsonschema:"what this subagent shall do; it knows nothing of this conversation"`
		Input   any      `json:"input,omitempty" jsonschema:"data for the task, any JSON value"`
		Agent   string   `json:"agent,omitempty" jsonschema:"id of an existing agent that does it in its own conversation; self or absent: a new agent like you"`
		Engine  string   `json:"engine,omitempty" jsonschema:"how a new agent works, such as plan; as usual when absent"`
		Name    string   `json:"name,omitempty" jsonschema:"a short name for people"`
		Model   string   `json:"model,omitempty" jsonschema:"the model it uses; yours when absent"`
		Prompt  string   `json:"prompt,omitempty" jsonschema:"its system prompt; the usual one when absent"`
		Tools   []string `json:"tools,omitempty" jsonschema:"names of the tools it may use, only from among yours; all of yours when absent"`
		Timeout string   `json:"timeout,omitempty" jsonschema:"how long it may take, such as 90s, 10m or 2h (a bare number counts seconds); 10m when absent"`
		Target  string   `json:"target,omitempty" jsonschema:"flow:NAME starts the workflow of that name in place of a subagent, with the task as its text, for up to 24h"`
		Payload any      `json:"payload,omitempty" jsonschema:"the event of that workflow"`
	}
	type input struct {
		Tasks []task `json:"tasks" jsonschema:"1 to 64 tasks; each gets a subagent of its own"`
	}
	s := spec("spawn_and_wait", "Starts one subagent for each task, all at the same time, and waits until all have ended. "+
		"Returns their results in the order of the tasks; one that failed or took too long is an entry with ok false.", tools.Idempotent, scopeAgents)
	s.Discloses = func(ctx context.Context, env tools.Env, args json.RawMessage) *tools.Disclosure {
		var in input
		_ = json.Unmarshal(args, &in) // what does not fit is refused before
		var all *tools.Disclosure
		for _, t := range in.Tasks {
			if to, err := existing("agent", t.Agent); err == nil && to != "" {
				all = both(all, d.Discloses(ctx, env, to, tools.BothWays))
			}
		}
		return all
	}
	return tools.New(s, func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		if len(in.Tasks) == 0 || len(in.Tasks) > maxTasks {
			return tools.Result{}, fmt.Errorf("field tasks: %d entries, want 1 to %d", len(in.Tasks), maxTasks)
		}
		subs := make([]tools.Subagent, len(in.Tasks))
		for i, t := range in.Tasks {
			field := fmt.Sprintf("tasks[%d].", i)
			sub, err := order{t.Task, t.Name, t.Model, t.Prompt, t.Engine, t.Tools}.check(field)
			if err != nil {
				return tools.Result{}, err
			}
			if sub.Task, err = withInput(field, sub.Task, t.Input); err != nil {
				return tools.Result{}, err
			}
			if sub.Agent, err = existing(field+"agent", t.Agent); err != nil {
				return tools.Result{}, err
			}
			if sub.Timeout, err = timeout(field+"timeout", t.Timeout); err != nil {
				return tools.Result{}, err
			}
			if t.Target != "" {
				if sub, err = flowOf(field, t.Target, t.Payload, sub); err != nil {
					return tools.Result{}, err
				}
			}
			subs[i] = sub
		}
		r, err := a.SpawnAndWait(ctx, env, subs)
		r.What = fmt.Sprintf(texts.DidSpawn, strconv.Itoa(len(subs)))
		return r, err
	})
}

// flowOf makes a task that of a workflow.
func flowOf(field, target string, payload any, sub tools.Subagent) (flow tools.Subagent, err error) {
	name, ok := strings.CutPrefix(strings.TrimSpace(target), "flow:")
	if !ok || name == "" {
		return flow, fmt.Errorf("field %starget: %.80q: want flow:NAME", field, target)
	}
	if sub.Model != "" || sub.Prompt != "" || sub.Tools != nil || sub.Agent != "" || sub.Engine != "" {
		return flow, fmt.Errorf("field %starget: a workflow takes no model, prompt, tools, agent or engine", field)
	}
	flow = tools.Subagent{Flow: name, Task: sub.Task, Timeout: sub.Timeout}
	if flow.Timeout == 0 {
		flow.Timeout = maxTimeout
	}
	if payload != nil {
		flow.Payload, err = json.Marshal(payload)
	}
	return flow, err
}

// self is the word for a new agent like the caller.
const self = "self"

// existing checks the id of an agent that is to do a task; empty for a new one.
func existing(field, id string) (string, error) {
	if id = strings.TrimSpace(id); id == "" || id == self {
		return "", nil
	}
	return receiver(field, id)
}

// withInput adds the data of a task to it.
func withInput(field, task string, data any) (string, error) {
	if data == nil {
		return task, nil
	}
	b, err := json.Marshal(data)
	if err != nil {
		return "", fmt.Errorf("field %sinput: %w", field, err)
	}
	return tools.Required(field+"task and input", task+"\n\nInput:\n"+string(b), maxTask)
}

// both is what two parts of a call disclose together.
func both(a, b *tools.Disclosure) *tools.Disclosure {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	all := tools.Disclosure{Owners: slices.Clone(a.Owners), Program: a.Program || b.Program, Text: a.Text}
	for _, owner := range b.Owners {
		if !slices.Contains(all.Owners, owner) {
			all.Owners = append(all.Owners, owner)
		}
	}
	if len(a.Owners) == 0 || len(b.Owners) == 0 { // where they cannot be found out, no person may approve
		all.Owners = nil
	}
	if b.Text != a.Text {
		all.Text += ", and " + b.Text
	}
	return &all
}

type order struct {
	task, name, model, prompt, engine string
	tools                             []string
}

func (o order) check(prefix string) (sub tools.Subagent, err error) {
	if sub.Task, err = tools.Required(prefix+"task", o.task, maxTask); err != nil {
		return sub, err
	}
	if sub.Name, err = tools.Optional(prefix+"name", o.name, maxName); err != nil {
		return sub, err
	}
	sub.Name = tools.Short(sub.Name, maxName)
	if sub.Model, err = tools.Optional(prefix+"model", o.model, maxModel); err != nil {
		return sub, err
	}
	if sub.Prompt, err = tools.Optional(prefix+"prompt", o.prompt, maxPrompt); err != nil {
		return sub, err
	}
	if sub.Engine, err = tools.Optional(prefix+"engine", o.engine, maxName); err != nil {
		return sub, err
	}
	if len(o.tools) > maxGiven {
		return sub, fmt.Errorf("field %stools: %d names, the limit is %d", prefix, len(o.tools), maxGiven)
	}
	if o.tools != nil { // an empty list is a wish as well: no tools
		sub.Tools = make([]string, len(o.tools))
	}
	for i, name := range o.tools {
		if sub.Tools[i], err = tools.Required(fmt.Sprintf("%stools[%d]", prefix, i), name, maxName); err != nil {
			return sub, err
		}
	}
	return sub, nil
}

// agentID checks the form of a receiver's id; whether there is such an agent,
// tools.Agents knows.
func agentID(field, s string) (string, error) {
	id, err := tools.Required(field, s, maxID)
	if err != nil {
		return "", err
	}
	if err := claybot.AgentID(id).Validate(); err != nil {
		return "", fmt.Errorf("field %s: invalid agent id %.80q; list_agents shows them", field, id)
	}
	return id, nil
}

package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors/telegram/telegramtest"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/workspace/local"
)

// What becomes of a call, as in the table of docs/security.md.
const (
	flowPasses  = "readable"
	flowRefused = "refused"
	flowNothing = "nothing"
)

// The agents of the test: two people, a group of both, and who works for them.
var flowAgents = []string{"direct", "linked", "group", "other", "helper", "task"}

// flowColumns are the agents that the table shows, with their words.
var flowColumns = [][2]string{
	{"linked", "their other account"}, {"group", "a group"}, {"helper", "its subagent"}, {"task", "a task there"}, {"other", "another person"},
}

// flowChats are the chats in which people read these agents. That of the other person is in send_to.
var flowChats = map[string]string{"direct": "7", "linked": "9", "group": "-100", "other": "8", "helper": "-100", "task": "-100"}

// A flow is a way from the conversation of one person, or what they keep, to another
// agent: the agent that is named first reads with a tool, or the person's own agent sends.
type dataFlow struct {
	tool string
	row  string                                          // of the table; rows of tools that share one are equal
	args func(w *flowWorld, who string) map[string]any   // of the call of who reads, or to whom is sent
	send bool                                            // the person's own agent makes the call, to who
	sink func(w *flowWorld, who string) claybot.Audience // of send, if it is not that of an agent
}

// dataFlows are the ways of each tool that has some.
var dataFlows = []dataFlow{
	{tool: "read_agent_history", row: "the conversation, by `read_agent_history`", args: func(w *flowWorld, _ string) map[string]any { return map[string]any{"id": w.agents["direct"].ID} }},
	{tool: "ask_agent", row: "the conversation, by `ask_agent` or `spawn_and_wait`", args: func(w *flowWorld, _ string) map[string]any {
		return map[string]any{"to": w.agents["direct"].ID, "text": "say it"}
	}},
	{tool: "spawn_and_wait", row: "the conversation, by `ask_agent` or `spawn_and_wait`", args: func(w *flowWorld, _ string) map[string]any {
		return map[string]any{"tasks": []any{map[string]any{"task": "a"}, map[string]any{"agent": w.agents["direct"].ID, "task": "say it"}}}
	}},
	{tool: "search_history", row: "the conversation, by `search_history`", args: func(*flowWorld, string) map[string]any { return map[string]any{"query": "CANARY"} }},
	{tool: "list_agents", row: "names and last texts, by `list_agents`", args: none},
	{tool: "memory_list", row: "notes of the person", args: scoped},
	{tool: "memory_read", row: "notes of the person", args: func(*flowWorld, string) map[string]any { return map[string]any{"scope": "owner", "path": "a.md"} }},
	{tool: "memory_search", row: "notes of the person", args: func(*flowWorld, string) map[string]any { return map[string]any{"scope": "owner", "query": "CANARY"} }},
	{tool: "memory_search", row: "notes, searched without a scope", args: func(*flowWorld, string) map[string]any { return map[string]any{"query": "CANARY"} }},
	{tool: "memory_list", row: "notes of the agent", args: none},
	{tool: "memory_read", row: "notes of the agent", args: func(*flowWorld, string) map[string]any { return map[string]any{"path": "own.md"} }},
	{tool: "read_file", row: "files", args: func(*flowWorld, string) map[string]any { return map[string]any{"path": "a.md"} }},
	{tool: "grep", row: "files", args: func(*flowWorld, string) map[string]any { return map[string]any{"pattern": "CANARY"} }},
	{tool: "search_files", row: "files", args: func(*flowWorld, string) map[string]any { return map[string]any{"pattern": "CANARY"} }},
	{tool: "cron_list", row: "tasks", args: none},
	{tool: "list_reminders", row: "reminders", args: none},
	{tool: "send_agent_message", row: "a message to it, by `send_agent_message`", send: true, args: func(w *flowWorld, who string) map[string]any {
		return map[string]any{"to": w.agents[who].ID, "text": "CANARY"}
	}},
	{tool: "send_message", row: "a message to its chat, by `send_message`", send: true, args: func(_ *flowWorld, who string) map[string]any {
		return map[string]any{"to": "telegram:" + flowChats[who], "text": "CANARY"}
	}},
	{tool: "memory_write", row: "notes for all", send: true, args: func(*flowWorld, string) map[string]any {
		return map[string]any{"scope": "global", "path": "all.md", "text": "CANARY"}
	}, sink: func(*flowWorld, string) claybot.Audience { return claybot.Everybody }},
}

func none(*flowWorld, string) map[string]any   { return map[string]any{} }
func scoped(*flowWorld, string) map[string]any { return map[string]any{"scope": "owner"} }

// within says why a tool has no way of its own from one conversation to another.
var within = map[string]string{
	"find_tools":   "shows the agent's own tools",
	"current_time": "knows nothing", "wait": "knows nothing",
	"ask_user": "asks in the conversation", "send_file": "sends to the conversation", "set_reaction": "sends to the conversation",
	"start_subagent": "has the audience of its conversation", "task": "has the audience of its conversation",
	"read_chat":  "of the chat in which its person wrote",
	"stop_agent": "reads nothing, and stops only its own", "remind_me": "comes to the conversation", "cancel_reminder": "of the conversation",
	"cron_add": "answers in the conversation, or nowhere", "cron_update": "of tasks that cron_list shows", "cron_delete": "of tasks that cron_list shows",
	"cron_run": "of tasks that cron_list shows", "cron_pause": "of tasks that cron_list shows", "cron_resume": "of tasks that cron_list shows",
	"memory_append": "as memory_write", "memory_update": "as memory_write", "memory_delete": "as memory_write",
	"write_file": "in the store that read_file reads", "edit_file": "in the store that read_file reads", "apply_patch": "in the store that read_file reads", "delete_file": "in the store that read_file reads",
	"cron_read_memory": "of the task itself", "cron_write_memory": "of the task itself",
	"list_files": "as grep", "search_files": "as read_file",
	"ls": "as grep", "glob": "as grep", "write_todos": "of the conversation", "read_todos": "of the conversation",
	"shell":        "in the workspace that read_file reads; its network has a door of its own",
	"process_list": "in the workspace that read_file reads", "process_log": "in the workspace that read_file reads",
	"process_input": "as shell", "process_stop": "in the workspace that read_file reads",
	"fetch_url": "see web.unlisted", "web_search": "see web.unlisted",
}

// A flowWorld is an idle daemon in which one person told their agent something.
type flowWorld struct {
	d      *daemon
	agents map[string]claybot.Agent
	rules  tools.Rules
}

// newFlowWorld lets the agents have files of one kind.
func newFlowWorld(t *testing.T, files string, more ...func(*configs.Profile)) *flowWorld {
	platform := telegramtest.New(telegramtest.Config{})
	t.Cleanup(platform.Close)
	url, err := platform.Start()
	if err != nil {
		t.Fatal(err)
	}
	d := idleDaemon(t, func(c *configs.Config) {
		p := c.Agents.Profiles[configs.DefaultProfile]
		p.Notes.Global, p.SendTo = true, []string{"telegram:" + flowChats["other"]}
		switch files {
		case "workspace":
			p.Workspace.Provider, p.Workspace.Per = configs.WorkspaceLocal, configs.PerOwner
			p.Workspace.Network, p.Workspace.Container.Unsafe = configs.NetworkHostUnsafe, []string{local.Unconfined}
		default:
			p.Engine.Deep = &configs.Deep{Files: files, Todos: true, Subagents: []configs.Helper{{Name: "mole", Description: "digs", SystemPrompt: "dig"}}}
		}
		for _, set := range more {
			set(&p)
		}
		c.Agents.Profiles[configs.DefaultProfile] = p
		c.Connectors.Telegram.Token, c.Connectors.Telegram.APIURL = configs.NewSecret("TELEGRAM_BOT_TOKEN", telegramtest.Token), url
		c.Agents.Scope = configs.ScopeAll
		c.Access.Mode = configs.AccessAllowlist
		for _, id := range []string{"7", "8", "9", "-100"} {
			c.Access.Allow = append(c.Access.Allow, configs.Allowed{Connector: "telegram", Subject: id})
		}
		c.Access.People = map[string][]string{"ann": {"telegram/7", "telegram/9"}}
	})
	life, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.run(life) }()
	t.Cleanup(func() { stop(); <-ended })
	select {
	case <-d.listeners.web.Up():
	case err := <-ended:
		ended <- err
		t.Fatal(err)
	}
	w := &flowWorld{d: d, agents: make(map[string]claybot.Agent)}
	agent := func(to claybot.Descriptor) claybot.Agent {
		a, err := d.stores.agents.AgentFor(t.Context(), to)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	w.agents["direct"], w.agents["linked"] = agent(claybot.User("telegram", "7", "7")), agent(claybot.User("telegram", "9", "9"))
	w.agents["group"], w.agents["other"] = agent(claybot.User("telegram", "-100", "7")), agent(claybot.User("telegram", "8", "8"))
	helper, err := d.stores.agents.NewAgent(t.Context(), claybot.Descriptor{
		Type: claybot.AgentSubagent, UID: "one", Parent: w.agents["group"].ID, Root: w.agents["group"].ID, Depth: 1, Owner: "telegram/7",
	}, claybot.Background{})
	if err != nil {
		t.Fatal(err)
	}
	task := agent(claybot.Descriptor{Type: claybot.AgentCron, UID: "task", Owner: "telegram/7"})
	task.State.Routing = &claybot.Route{Connector: "telegram", ChannelID: "-100"}
	if err := d.stores.agents.SaveState(t.Context(), storage.Lease{Agent: task.ID, Node: "n", Token: 1 << 40}, task.State); err != nil {
		t.Fatal(err)
	}
	w.agents["helper"], w.agents["task"] = helper, task
	w.plant(t)
	return w
}

// plant lets the person tell their agent a secret, which it keeps wherever it can.
func (w *flowWorld) plant(t *testing.T) {
	direct := w.agents["direct"]
	h, err := w.d.stores.agents.OpenHistory(t.Context(), storage.Lease{Agent: direct.ID, Node: "n", Token: 1 << 40})
	if err != nil {
		t.Fatal(err)
	}
	err = h.Append(t.Context(), claybot.Record{Type: claybot.RecordUser, At: claybot.Now(), Run: "earlier", MessageID: "m", Text: "CANARY", From: &claybot.Sender{UserID: "7"}})
	if err != nil {
		t.Fatal(err)
	}
	for tool, args := range map[string]map[string]any{
		"memory_write": {"scope": "owner", "path": "a.md", "text": "CANARY"}, "memory_append": {"path": "own.md", "text": "CANARY"},
		"write_file": {"path": "a.md", "text": "CANARY"}, "remind_me": {"note": "CANARY", "in": "2d"},
		"cron_add": {"name": "CANARY", "prompt": "CANARY", "every": "24h"},
	} {
		if got := w.do(t, "direct", tool, args); got != flowPasses {
			t.Fatalf("%s: %s", tool, got)
		}
	}
}

func (w *flowWorld) env(who string) tools.Env {
	env := tools.Env{Agent: w.agents[who], Run: "r", CallID: "c" + who}
	if who == "task" {
		env.Route = claybot.Route{Connector: "telegram", ChannelID: "-100"}
	}
	return env
}

// do makes a call as the engine does, and returns what became of it: passes, refused, the
// people who are asked, or the text of an error.
func (w *flowWorld) do(t *testing.T, who, tool string, args map[string]any) string {
	text, outcome := w.call(t, who, tool, args)
	if outcome == flowPasses && strings.HasPrefix(text, "error: ") {
		return text
	}
	return outcome
}

func (w *flowWorld) call(t *testing.T, who, tool string, args map[string]any) (text, outcome string) {
	t.Helper()
	b, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	set, env := w.d.tooling.box.of(w.agents[who]), w.env(who)
	call := claybot.ToolCall{ID: env.CallID + tool, Name: tool, Args: string(b)}
	spec, ok := set.Spec(tool)
	if !ok {
		return "", flowNothing
	}
	switch d := w.rules.Decide(t.Context(), env, spec, call, nil); d.Verdict {
	case tools.Ask:
		return d.Why, "asks " + strings.Join(d.Owners, " and ")
	case tools.Refuse:
		return d.Why, flowRefused
	}
	o := set.Do(t.Context(), env, call)
	return o.Record.Text, flowPasses
}

// became is what becomes of the secret by one way.
func (f dataFlow) became(t *testing.T, w *flowWorld, who string) string {
	caller := who
	if f.send {
		caller = "direct"
	}
	text, outcome := w.call(t, caller, f.tool, f.args(w, who))
	if outcome == flowPasses && (f.send && strings.HasPrefix(text, "error: ") || !f.send && f.tool != "ask_agent" && f.tool != "spawn_and_wait" && !strings.Contains(text, "CANARY")) {
		return flowNothing
	}
	return outcome
}

// TestFlows tries every way of every tool from what a person told their agent to every
// other agent, and compares what becomes of it with who may read it, and with the table in
// docs/security.md. A tool without an entry fails it.
func TestFlows(t *testing.T) {
	rows := make(map[string]map[string]string)
	var order []string
	for _, files := range []string{configs.FilesStore, configs.FilesState, configs.FilesFilesystem, "workspace"} {
		w := newFlowWorld(t, files)
		for _, who := range flowAgents {
			for _, name := range w.d.tooling.box.names(w.agents[who]) {
				if _, ok := within[name]; !ok && !slices.ContainsFunc(dataFlows, func(f dataFlow) bool { return f.tool == name }) {
					t.Errorf("the tool %s has no entry in dataFlows or within", name)
				}
			}
		}
		for _, f := range dataFlows {
			row := f.row
			if row == "files" {
				row += " (`" + files + "`)"
			}
			if rows[row] == nil {
				rows[row] = make(map[string]string)
				order = append(order, row)
			}
			if _, ok := w.d.tooling.box.of(w.agents["direct"]).Spec(f.tool); !ok {
				continue
			}
			if got := f.became(t, w, "direct"); !f.send && f.tool != "list_agents" && f.row != dataFlows[1].row && got != flowPasses {
				t.Errorf("%s, %s: %s for the agent itself", row, f.tool, got)
			}
			for _, who := range flowAgents[1:] {
				w.try(t, f, row, who, rows[row])
			}
		}
	}
	var table strings.Builder
	table.WriteString("| what a person told their agent |")
	for _, c := range flowColumns {
		table.WriteString(" " + c[1] + " |")
	}
	table.WriteString("\n|---|" + strings.Repeat("---|", len(flowColumns)) + "\n")
	for _, row := range order {
		table.WriteString("| " + row + " |")
		for _, c := range flowColumns {
			table.WriteString(" " + rows[row][c[0]] + " |")
		}
		table.WriteString("\n")
	}
	doc, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(doc, []byte(table.String())) {
		t.Errorf("docs/security.md does not have this table:\n%s", table.String())
	}
}

// try tries one way, and notes what became of it in a row of the table.
func (w *flowWorld) try(t *testing.T, f dataFlow, row, who string, cells map[string]string) {
	got := f.became(t, w, who)
	direct, sink := w.agents["direct"], w.d.tooling.box.audience(w.env(who))
	if f.sink != nil {
		sink = f.sink(w, who)
	}
	discloses := w.d.system.People.Discloses(w.d.system.People.AudienceOf(direct.Descriptor, claybot.Route{}), sink)
	if discloses && got == flowPasses {
		t.Errorf("%s, %s: passes, though %+v cannot read it", row, who, sink)
	}
	cell := strings.NewReplacer("telegram/7", "the person", "telegram/9", "the person", "telegram/8", "the other").Replace(got)
	if was, ok := cells[who]; ok && was != cell {
		t.Errorf("%s, %s: %s, and %s with another tool", row, who, cell, was)
	}
	cells[who] = cell
}

// publicTools are the tools whose results hold nothing that not everybody may read, or only
// what was said in the conversation. The results of all others make the web ask.
var publicTools = []string{
	"ask_user", "current_time", "find_tools", "wait", "fetch_url", "web_search", "use_skill", "read_skill_file", "write_todos", "read_todos",
	"send_file", "set_reaction", "send_message", "remind_me", "cancel_reminder", "start_subagent", "send_agent_message", "stop_agent",
	"memory_write", "memory_append", "memory_update", "memory_delete", "write_file", "edit_file", "apply_patch", "delete_file",
	"cron_add", "cron_delete", "cron_run", "cron_write_memory",
}

// What tools read makes a conversation private, unless their results are public.
func TestPublicTools(t *testing.T) {
	for _, files := range []string{configs.FilesStore, "workspace"} {
		w := newFlowWorld(t, files)
		for who, a := range w.agents {
			set := w.d.tooling.box.of(a)
			for _, name := range w.d.tooling.box.names(a) {
				if spec, _ := set.Spec(name); spec.Public != slices.Contains(publicTools, name) {
					t.Errorf("%s, %s: public is %v", who, name, spec.Public)
				}
			}
		}
		if !w.d.tooling.box.hasRead(w.env("direct")) {
			t.Error("the prompt shows notes, and the run has read nothing")
		}
		if w.d.tooling.box.hasRead(w.env("other")) || w.d.tooling.box.hasRead(w.env("group")) {
			t.Error("a run without notes has read something")
		}
		record, _ := w.d.tooling.box.of(w.agents["other"]).Call(t.Context(), w.env("other"), claybot.ToolCall{ID: "c", Name: "memory_list", Args: "{}"})
		if !record.Private || !w.d.tooling.box.hasRead(w.env("other").Aware([]claybot.Record{record})) {
			t.Errorf("what a list of notes says is public: %+v", record)
		}
	}
}

// storeReaders says who reads what is in each table of the database. A new table without
// an entry fails TestStores.
var storeReaders = map[string]string{
	"agents": "operators; agents by list_agents", "messages": "the agent of the conversation", "runs": "operators, and who asked",
	"events": "who may watch the run", "questions": "who may answer", "outbox": "the conversation", "reminders": "the agent",
	"memories": "by scope: the agent, the agents of the person, all", "memories_words": "as memories", "memory_versions": "as memories",
	"documents": "the agents with the key of the store: of one, or of one person in one place",
	"grants":    "operators", "pairings": "operators", "settings": "operators", "keys": "no agent", "counters": "operators",
	"extensions": "operators", "budgets": "operators", "reservations": "operators", "spent": "operators", "spent_days": "operators",
	"ledger": "operators; the owner of the task", "latencies": "operators", "marks": "the agents of a group read what was said there; all else no agent", "parked": "operators",
	"relays": "operators", "sinks": "operators", "workspaces": "operators",
}

func TestStores(t *testing.T) {
	d := idleDaemon(t, func(*configs.Config) {})
	db, err := sql.Open("sqlite", "file:"+filepath.Join(d.config.began.DataDir, "claybot.db")+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), `SELECT name FROM sqlite_master WHERE type IN ('table', 'view')`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	known := 0
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		switch {
		case storeReaders[name] != "":
			known++
		case !strings.HasPrefix(name, "sqlite_") && !strings.HasPrefix(name, "memories_words_"):
			t.Errorf("the table %s has no entry in storeReaders", name)
		}
	}
	if err := rows.Err(); err != nil || known != len(storeReaders) {
		t.Errorf("%d of %d tables are there, %v", known, len(storeReaders), err)
	}
}

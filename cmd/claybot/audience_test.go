package main

import (
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/memory"
	"github.com/claybot/claybot/web"
)

// The notes of a person, and a workspace that their agents share, are those of
// conversations that the person alone reads, whichever agent works for these.
func TestAudiences(t *testing.T) {
	d := idleDaemon(t, func(c *configs.Config) {
		p := c.Agents.Profiles[configs.DefaultProfile]
		p.Workspace.Provider, p.Workspace.Per = configs.WorkspaceLocal, configs.PerOwner
		c.Agents.Profiles[configs.DefaultProfile] = p
	})
	ctx := t.Context()
	agent := func(to claybot.Descriptor) claybot.Agent {
		a, err := d.stores.agents.AgentFor(ctx, to)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	below := func(root claybot.Agent, uid string) claybot.Agent {
		a, err := d.stores.agents.NewAgent(ctx, claybot.Descriptor{
			Type: claybot.AgentSubagent, UID: uid, Parent: root.ID, Root: root.ID, Depth: 1, Owner: root.Descriptor.OwnerID(),
		}, claybot.Background{})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	direct, group := agent(claybot.User("telegram", "7", "7")), agent(claybot.User("telegram", "-100", "7"))
	task := agent(claybot.Descriptor{Type: claybot.AgentCron, UID: "task", Owner: "telegram/7"})
	note := storage.Memory{Path: "a.md", Text: "CANARY of a note", MemoryChange: storage.MemoryChange{Agent: direct.ID, Run: "r", Call: "c"}}
	if err := d.stores.db.SaveMemory(ctx, "owner/telegram/7", note, memory.MaxScope); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		agent claybot.Agent
		route *claybot.Route
		place string // where others read as well
	}{
		{"a direct chat", direct, nil, ""},
		{"a group", group, nil, "telegram/-100"},
		{"a subagent of the direct chat", below(direct, "one"), nil, ""},
		{"a subagent of the group", below(group, "two"), nil, "telegram/-100"},
		{"a task of the direct chat", task, &claybot.Route{Connector: "telegram", ChannelID: "7", UserID: "7"}, ""},
		{"a task that answers in a group", task, &claybot.Route{Connector: "telegram", ChannelID: "-100"}, "telegram/-100"},
		{"a task that answers nowhere", task, &claybot.Route{}, ""},
		{"a subagent without a root", claybot.Agent{ID: "lost", Descriptor: claybot.Descriptor{Type: claybot.AgentSubagent, Root: "gone", Owner: "telegram/7"}}, nil, "?/lost"},
	} {
		turn := &runs.Turn{Agent: tt.agent, Messages: []claybot.AgentMessage{{Type: claybot.MessageSystem, Route: tt.route}}}
		if got := d.tooling.box.audience(tools.Env{Agent: tt.agent, Route: turn.Route(), Place: turn.Place()}); got != (claybot.Audience{Owner: "telegram/7", Place: tt.place}) {
			t.Errorf("%s: the audience is %+v", tt.name, got)
		}
		prompt, err := d.engines.prompts.prompt(turn)
		if err != nil || strings.Contains(prompt, "CANARY") != (tt.place == "") {
			t.Errorf("%s: the prompt is %q, %v", tt.name, prompt, err)
		}
		index, err := d.engines.prompts.index(turn)
		if err != nil || strings.Contains(index.Text, "CANARY") != (tt.place == "") || index.Owner != (tt.place == "") || index.Private != (tt.place == "") {
			t.Errorf("%s: the index is %+v, %v", tt.name, index, err)
		}
	}
	for name, a := range map[string]claybot.Agent{"direct": direct, "below": below(direct, "three")} {
		if want, _ := d.tooling.workspaces.want(tools.Env{Agent: a}); want.Key != "owner/telegram/7" {
			t.Errorf("%s: the workspace is %s", name, want.Key)
		}
	}
	for name, a := range map[string]claybot.Agent{"group": group, "below": below(group, "four")} {
		if want, _ := d.tooling.workspaces.want(tools.Env{Agent: a}); want.Key != "owner/telegram/7/in/telegram/-100" {
			t.Errorf("%s: the workspace is %s", name, want.Key)
		}
	}
	// The person says so for this group.
	if err := d.system.Profiles.ApproveAlways(ctx, group.ID, memory.ListsOwner, "telegram/7"); err != nil {
		t.Fatal(err)
	}
	prompt, err := d.engines.prompts.prompt(&runs.Turn{Agent: group})
	if err != nil || !strings.Contains(prompt, "CANARY") {
		t.Errorf("after an approval for good: %q, %v", prompt, err)
	}
}

// What a program writes into the notes of all agents is marked, and its words stay out of
// prompts; what the operator writes is not.
func TestNotesOfPrograms(t *testing.T) {
	d := idleDaemon(t, func(*configs.Config) {})
	bench := toolbench{stores: d.stores}
	ctx := t.Context()
	for by, want := range map[string]bool{web.Operator: false, "token:ci": true} {
		path := strings.ReplaceAll(by, ":", "-") + ".md"
		if err := bench.SaveNote(ctx, "global", path, "CANARY by "+by, by); err != nil {
			t.Fatal(err)
		}
		if m, err := d.stores.db.Memory(ctx, "global", path); err != nil || m.Tainted != want {
			t.Errorf("by %s: tainted %v, %v", by, m.Tainted, err)
		}
	}
	a, err := d.stores.agents.AgentFor(ctx, claybot.User("telegram", "7", "7"))
	if err != nil {
		t.Fatal(err)
	}
	prompt, err := d.engines.prompts.prompt(&runs.Turn{Agent: a})
	if err != nil || strings.Contains(prompt, "CANARY by token:ci") || !strings.Contains(prompt, "CANARY by operator") {
		t.Errorf("the prompt is %q, %v", prompt, err)
	}
	versions, err := bench.NoteVersions(ctx, "global", "operator.md")
	if err != nil || len(versions) != 1 {
		t.Fatal(versions, err)
	}
	if err := bench.RevertNote(ctx, "global", versions[0].Version, "token:ci"); err != nil {
		t.Fatal(err)
	}
	if m, err := d.stores.db.Memory(ctx, "global", "operator.md"); err != nil || !m.Tainted {
		t.Errorf("a program brought a note back: %+v, %v", m, err)
	}
}

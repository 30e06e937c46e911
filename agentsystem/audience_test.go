package agentsystem_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/tools"
)

// What a group would be able to read of a direct chat is asked for, also where the agent of the
// chat, its subagent, or an agent that has been quiet for too long to be written to holds it.
// While that cannot be found out, nothing is read.
func TestDisclosuresOfQuietAgents(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		agent := func(d claybot.Descriptor) claybot.Agent {
			a, err := r.agents.AgentFor(r.Context(), d)
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		direct, group := agent(claybot.User("telegram", "7", "7")), agent(claybot.User("telegram", "-100", "7"))
		helper, err := r.agents.NewAgent(r.Context(), claybot.Descriptor{
			Type: claybot.AgentSubagent, UID: "one", Parent: direct.ID, Root: direct.ID, Depth: 1, Owner: "telegram/7",
		}, claybot.Background{})
		if err != nil {
			t.Fatal(err)
		}
		after(8 * 24 * time.Hour)
		env := tools.Env{Agent: group}
		for name, id := range map[string]claybot.AgentID{"the direct chat": direct.ID, "its subagent": helper.ID} {
			d := r.system.Subagents.Directory.Discloses(r.Context(), env, string(id), tools.FromOther)
			if d == nil || len(d.Owners) != 1 || d.Owners[0] != "telegram/7" {
				t.Errorf("reading %s: %+v", name, d)
			}
			if d := r.system.Subagents.Directory.Discloses(r.Context(), env, string(id), tools.ToOther); d != nil {
				t.Errorf("writing to %s: %+v", name, d)
			}
		}
		if d := r.system.Subagents.Directory.Discloses(r.Context(), env, string(group.ID), tools.BothWays); d != nil {
			t.Errorf("reading itself: %+v", d)
		}
		if d := r.system.Subagents.Directory.Discloses(r.Context(), env, "abcdefghijklmnopqrstuvwx", tools.BothWays); d != nil {
			t.Errorf("reading nobody: %+v", d)
		}
		gone, cancel := context.WithCancel(r.Context())
		cancel()
		if d := r.system.Subagents.Directory.Discloses(gone, env, string(direct.ID), tools.FromOther); d == nil || len(d.Owners) != 0 {
			t.Errorf("while the store does not answer: %+v", d)
		}
	})
}

// A memory of a workflow is read where its chat is; what a workflow in a group starts, where the message of
// its run said, also where the task says nothing, as those of earlier versions do. The agent of a workflow
// may have had several places, so what it said is its person's alone.
func TestAudiencesOfWorkflows(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		agent := func(d claybot.Descriptor) claybot.Agent {
			a, err := r.agents.NewAgent(r.Context(), d, claybot.Background{})
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		const owner = "telegram/7"
		group := claybot.Route{Connector: "telegram", ChannelID: "-100", UserID: "7"}
		flow := agent(claybot.Descriptor{Type: claybot.AgentFlow, UID: "f", Owner: owner})
		helper := agent(claybot.Descriptor{Type: claybot.AgentSubagent, UID: "h", Parent: flow.ID, Root: flow.ID, Depth: 1, Owner: owner})
		if err := r.system.Post(r.Context(), flow.Descriptor, claybot.AgentMessage{
			ID: "began", Type: claybot.MessageSystem, Kind: claybot.KindTrigger, Text: "go", Route: &group, Alone: true, Flow: &claybot.FlowStart{Name: "f"},
		}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		memory := func(chat string) claybot.Agent {
			return agent(claybot.Thread(claybot.ThreadKey(owner, chat, "f", "n"), owner))
		}
		for _, tt := range []struct {
			name  string
			agent claybot.Agent
			place claybot.Route
			want  string
		}{
			{"a memory of the direct chat", memory("telegram/7"), claybot.Route{}, ""},
			{"a memory of the group", memory("telegram/-100"), claybot.Route{}, "telegram/-100"},
			{"a memory without a chat", memory(""), claybot.Route{}, ""},
			{"a memory without a chat, at work for the group", memory(""), group, "telegram/-100"},
			{"an agent of the workflow", helper, group, "telegram/-100"},
			{"an agent of the workflow, of an earlier version", helper, claybot.Route{}, "telegram/-100"},
			{"the workflow", flow, claybot.Route{}, "telegram/-100"},
		} {
			if got := r.system.Subagents.Directory.Audience(r.Context(), tt.agent, tt.place); got != (claybot.Audience{Owner: owner, Place: tt.want}) {
				t.Errorf("%s: %+v", tt.name, got)
			}
		}
		env := tools.Env{Agent: helper, Place: group}
		for name, id := range map[string]claybot.AgentID{"the memory of the direct chat": memory("telegram/7").ID, "the workflow": flow.ID} {
			if d := r.system.Subagents.Directory.Discloses(r.Context(), env, string(id), tools.FromOther); d == nil || len(d.Owners) != 1 {
				t.Errorf("reading %s: %+v", name, d)
			}
		}
		if d := r.system.Subagents.Directory.Discloses(r.Context(), env, string(memory("telegram/-100").ID), tools.BothWays); d != nil {
			t.Errorf("the memory of the group: %+v", d)
		}
		direct := tools.Env{Agent: agent(claybot.User("telegram", "7", "7"))}
		for name, id := range map[string]claybot.AgentID{"the memory of the group": memory("telegram/-100").ID, "an agent of the workflow": helper.ID} {
			if d := r.system.Subagents.Directory.Discloses(r.Context(), direct, string(id), tools.ToOther); d == nil {
				t.Errorf("writing to %s from the direct chat asks nothing", name)
			}
		}
	})
}

// What agents tell each other carries on what they have read: a subagent has read what its
// parent had, and what another conversation says is not for everybody.
func TestMarksOfMessages(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		direct, err := r.agents.AgentFor(r.Context(), claybot.User("telegram", "7", "7"))
		if err != nil {
			t.Fatal(err)
		}
		group, err := r.agents.AgentFor(r.Context(), claybot.User("telegram", "-100", "7"))
		if err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct{ tainted, private bool }{{}, {tainted: true}, {private: true}} {
			env := tools.Env{Agent: direct, Run: claybot.RunID("r" + claybot.NewID()), CallID: "c", Tainted: tt.tainted, Private: tt.private}
			id, err := r.system.Subagents.StartSubagent(r.Context(), env, tools.Subagent{Task: "dig"})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if task := r.heard(id, claybot.KindTask); task.Tainted != tt.tainted || task.Private != tt.private {
				t.Errorf("%+v: the task is %+v", tt, task)
			}
			if _, err := r.system.Subagents.SendAgentMessage(r.Context(), env, string(group.ID), "news", false); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if said := r.heard(group.ID, claybot.KindMessage); said.Tainted != tt.tainted || !said.Private {
				t.Errorf("%+v: the message is %+v", tt, said)
			}
		}
	})
}

// heard returns the newest record of a system message of an agent.
func (r *rig) heard(id claybot.AgentID, kind claybot.SystemKind) (newest claybot.Record) {
	r.Helper()
	records, err := r.agents.Records(r.Context(), id)
	if err != nil {
		r.Fatal(err)
	}
	for _, x := range records {
		if x.Type == claybot.RecordSystem && x.Kind == kind {
			newest = x
		}
	}
	if newest.Type == "" {
		r.Fatalf("agent %s has no message of kind %s", id, kind)
	}
	return newest
}

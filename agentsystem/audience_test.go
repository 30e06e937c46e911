package agentsystem_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/tools"
)

// What a group would be able to read of a direct chat is asked for, whoever holds it: the
// agent of the chat, its subagent, and one that has been quiet for so long that nobody may
// write to it any more. While that cannot be found out, nothing is read.
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

package agentsystem_test

import (
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/subagents"
)

// A call of spawn_and_wait gives tasks to agents that are there and to new ones, and has an entry for each: one
// that cannot be asked is an error at once, and the others work.
func TestSpawnExisting(t *testing.T) {
	t.Parallel()
	room := claybot.User("chat", "room", "ann")
	bubble(t, func(r *rig) {
		r.society = subagents.DefaultLimits
		r.society.Engines = func(claybot.Agent) []string { return []string{"react"} }
		r.start()
		r.post(room, msg("hello", "hello"))
		after(time.Second)
		r.say("hi")
		after(time.Second)
		there := string(r.agent(room))
		r.mind.plan("begin", llmtest.Use(with("spawn_and_wait", obj{"tasks": []obj{
			{"task": "what is up", "agent": there, "input": obj{"n": 7}},
			{"task": "alpha", "agent": "self", "engine": "react"},
			{"task": "lost", "agent": strings.Repeat("z", 24)},
			{"task": "loop", "agent": string(r.agent(ann))},
		}})), llmtest.Say("all in"))
		r.mind.plan("what is up\n\nInput:\n{\"n\":7}", use("work"), llmtest.Say("the sky"))
		r.mind.plan("alpha", llmtest.Say("beta"))
		r.say("begin")
		after(time.Hour)
		r.wants("re: hello", "re: hi", "all in")
		got := r.answers(ann)
		if len(got) != 4 {
			t.Fatalf("answers %+v", got)
		}
		child := r.children(ann)
		if len(child) != 1 || got[1].AgentID != child[0].ID || !got[1].OK || got[1].Output != "beta" {
			t.Errorf("the new agent: %+v, children %d", got[1], len(child))
		}
		if !got[0].OK || got[0].Output != "the sky" || string(got[0].AgentID) != there || got[0].RunID == "" {
			t.Errorf("the agent that was there: %+v", got[0])
		}
		if got[2].OK || !strings.Contains(got[2].Error, "no agent") || got[3].OK || !strings.Contains(got[3].Error, "that agent is you") {
			t.Errorf("those that cannot be asked: %+v %+v", got[2], got[3])
		}
	})
}

// Without any that can be asked, the call has its entries at once; an agent that is there keeps its settings,
// and an engine that is not allowed refuses the call.
func TestSpawnRefuses(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		unknown := strings.Repeat("z", 24)
		r.mind.plan("begin", llmtest.Use(with("spawn_and_wait", obj{"tasks": []obj{{"task": "lost", "agent": unknown}}})), llmtest.Say("none"))
		r.say("begin")
		after(time.Second)
		if got := r.answers(ann); len(got) != 1 || got[0].OK || string(got[0].AgentID) != unknown {
			t.Errorf("answers %+v", got)
		}
		for text, tt := range map[string]struct {
			task obj
			want string
		}{
			"first":  {obj{"task": "x", "agent": unknown, "model": "other"}, "an existing agent has a name, a model"},
			"second": {obj{"task": "x", "engine": "explore"}, `engine "explore" cannot be given to a subagent of yours`},
		} {
			r.mind.plan(text, llmtest.Use(with("spawn_and_wait", obj{"tasks": []obj{tt.task}})), llmtest.Say("refused"))
			r.say(text)
			after(time.Second)
			if rec := r.result(ann, "spawn_and_wait"); rec.OK || !strings.Contains(rec.Text, tt.want) {
				t.Errorf("%s: %+v", text, rec)
			}
		}
	})
}

package agentsystem_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/subagents"
)

var bob = claybot.User("chat", "dm-bob", "bob")

// with is a call of a tool with arguments.
func with(tool string, args any) claybot.ToolCall {
	b, err := json.Marshal(args)
	if err != nil {
		panic(err) // maps of strings always marshal
	}
	return claybot.ToolCall{Name: tool, Args: string(b)}
}

type obj = map[string]any

// start makes the model start one helper for each task, then answer.
func startAll(report bool, tasks ...string) llmtest.Reply {
	var calls []claybot.ToolCall
	for _, task := range tasks {
		calls = append(calls, with("start_subagent", obj{"task": task, "name": strings.ToUpper(task), "report": report}))
	}
	return llmtest.Use(calls...)
}

// spawn makes the model wait for one helper for each task.
func spawn(timeout string, tasks ...string) llmtest.Reply {
	var list []obj
	for _, task := range tasks {
		t := obj{"task": task, "name": strings.ToUpper(task)}
		if timeout != "" {
			t["timeout"] = timeout
		}
		list = append(list, t)
	}
	return llmtest.Use(with("spawn_and_wait", obj{"tasks": list}))
}

var fails = llmtest.Reply{Err: &llm.Error{Class: llm.Permanent, Status: 400, Text: "refused for the test"}}

// children are the helpers of d's agent, in the order in which they were made.
func (r *rig) children(d claybot.Descriptor) []storage.IndexEntry {
	r.Helper()
	list, err := r.db.Children(r.Context(), r.agent(d))
	if err != nil {
		r.Fatal(err)
	}
	return list
}

// systemTexts are the system messages that an agent remembers, by kind.
func (r *rig) systemTexts(id claybot.AgentID, kind claybot.SystemKind) (texts []string) {
	r.Helper()
	all, err := r.agents.Records(r.Context(), id)
	if err != nil {
		r.Fatal(err)
	}
	for _, rec := range all {
		if rec.Type == claybot.RecordSystem && rec.Kind == kind {
			texts = append(texts, rec.Text)
		}
	}
	return texts
}

// result is the newest result of a tool that an agent remembers.
func (r *rig) result(d claybot.Descriptor, tool string) claybot.Record {
	r.Helper()
	for _, rec := range slices.Backward(r.records(d)) {
		if rec.Type == claybot.RecordTool && rec.Name == tool {
			return rec
		}
	}
	r.Fatalf("no result of %s", tool)
	return claybot.Record{}
}

// answers are the entries of the newest spawn_and_wait.
func (r *rig) answers(d claybot.Descriptor) (list []claybot.Result) {
	r.Helper()
	rec := r.result(d, "spawn_and_wait")
	if err := json.Unmarshal([]byte(rec.Text), &list); err != nil {
		r.Fatalf("%v: %s", err, rec.Text)
	}
	return list
}

func TestSubagentReports(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.mind.plan("begin", startAll(true, "dig"), llmtest.Say("started"))
		r.mind.plan("dig", llmtest.Say("found gold"))
		r.mind.plan("found gold", llmtest.Say("my helper found gold"))
		r.start()
		r.say("begin")
		after(time.Minute)
		r.wants("started", "my helper found gold")
		c := r.children(ann)
		if len(c) != 1 || c[0].Descriptor.Name != "DIG" || c[0].Descriptor.Depth != 1 || c[0].Descriptor.Root != r.agent(ann) ||
			c[0].Descriptor.OwnerID() != "chat/ann" {
			t.Errorf("children %+v", c)
		}
		if text := r.result(ann, "start_subagent").Text; !strings.Contains(text, string(c[0].ID)) {
			t.Errorf("the tool said %q", text)
		}
		if got := r.systemTexts(r.agent(ann), claybot.KindResult); !slices.Equal(got, []string{"found gold"}) {
			t.Errorf("results %q", got)
		}
		if got := r.systemTexts(r.agent(ann), claybot.KindFailure); len(got) != 0 {
			t.Errorf("a success made notices %q", got)
		}
	})
}

// What a subagent hears of those below it is work for the same runs of workflows, and spends from their budgets;
// the agent with which the chain began has those of its own messages.
func TestReportKeepsBudgets(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.mind.plan("begin", startAll(true, "mid"), llmtest.Say("started"))
		r.mind.plan("mid", startAll(true, "dig"), startAll(false, "sink"), llmtest.Say("under way"))
		r.mind.plan("dig", llmtest.Say("found gold"))
		r.mind.plan("sink", fails)
		r.start()
		budget := claybot.RunBudget{Flow: "mine", Run: "r1", Tokens: 1_000_000}
		m := msg("begin", "begin")
		m.Budgets = []claybot.RunBudget{budget}
		r.post(ann, m)
		after(time.Hour)
		mid := r.children(ann)[0].ID
		reports := func(of claybot.AgentID) (all []claybot.AgentMessage) {
			run := r.lastOf(of)
			for _, prefix := range []string{"result/", "failure/"} {
				if got, err := r.db.Receipt(r.Context(), claybot.MessageID(prefix+string(run.ID))); err == nil {
					all = append(all, got.Message)
				}
			}
			return all
		}
		below := r.childrenOf(mid)
		if len(below) != 2 {
			r.Fatalf("%+v", below)
		}
		for _, c := range below {
			if all := reports(c.ID); len(all) != 1 || !slices.Equal(all[0].Budgets, m.Budgets) {
				r.Errorf("%s reports %+v", c.Descriptor.Name, all)
			}
		}
		if got := r.systemTexts(r.agent(ann), claybot.KindResult); len(got) == 0 {
			r.Error("the first agent hears of nothing")
		}
	})
}

func TestSameNameTwoAgents(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.mind.plan("begin", startAll(false, "dig", "dig"), llmtest.Say("started"))
		r.start()
		r.say("begin")
		after(time.Minute)
		r.wants("started")
		if c := r.children(ann); len(c) != 2 || c[0].ID == c[1].ID {
			t.Errorf("children %+v", c)
		}
	})
}

// Every way in which a helper can fail makes one notice, and none other does.
func TestFailureNotices(t *testing.T) {
	t.Parallel()
	stopped := func(r *rig) {
		after(time.Second)
		if _, err := r.system.Control.Stop(r.Context(), r.children(ann)[0].ID); err != nil {
			r.Error(err)
		}
	}
	kills := func(r *rig) { r.dieOf("dig\n") }
	tests := []struct {
		name     string
		plan     []llmtest.Reply
		hold     bool
		limit    time.Duration
		meantime func(r *rig)
		notices  int
		word     string
	}{
		{"success", []llmtest.Reply{llmtest.Say("fine")}, false, 0, nil, 0, ""},
		{"model", []llmtest.Reply{fails}, false, 0, nil, 1, "model_refused"},
		{"circles", slices.Repeat([]llmtest.Reply{use("look")}, 20), false, 0, nil, 1, "repeating"},
		{"deadline", []llmtest.Reply{llmtest.Say("late")}, true, time.Minute, nil, 1, "deadline"},
		{"operator", []llmtest.Reply{llmtest.Say("late")}, true, 0, stopped, 1, "stopped by the operator"},
		{"killed", []llmtest.Reply{llmtest.Say("late")}, true, 0, kills, 1, "interrupted"},
		{"killed once", []llmtest.Reply{llmtest.Say("fine")}, true, 0, func(r *rig) { after(time.Second); r.crash(); r.start() }, 0, ""},
		{"parent stops all", []llmtest.Reply{llmtest.Say("late")}, true, 0, func(r *rig) {
			after(time.Second)
			r.post(ann, typed("stop", claybot.MessageCancel, "all"))
		}, 0, ""},
		{"parent is reset", []llmtest.Reply{fails}, true, 0, func(r *rig) {
			after(time.Second)
			r.post(ann, typed("reset", claybot.MessageReset, ""))
		}, 1, "model_refused"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.profile.Deadline = tt.limit
				r.mind.plan("begin", startAll(false, "dig"), llmtest.Say("started"))
				r.mind.plan("failed in run", llmtest.Say("I heard of it"))
				r.mind.plan("dig", tt.plan...)
				if tt.hold {
					r.mind.hold("dig\n", 10*time.Minute)
				}
				r.start()
				r.say("begin")
				if tt.meantime != nil {
					tt.meantime(r)
				}
				after(time.Hour)
				got := r.systemTexts(r.agent(ann), claybot.KindFailure)
				if len(got) != tt.notices || tt.notices > 0 && !strings.Contains(got[0], tt.word) {
					t.Errorf("notices %q, want %d with %q", got, tt.notices, tt.word)
				}
				heard := slices.Contains(r.chat.seen(), "I heard of it")
				if heard != (tt.notices > 0) {
					t.Errorf("people see %q", r.chat.seen())
				}
			})
		})
	}
}

// A notice whose parent is gone goes to the owner's most recent agent, never to
// another owner's.
func TestParentIsDeleted(t *testing.T) {
	t.Parallel()
	other := claybot.User("chat", "room", "ann")
	bubble(t, func(r *rig) {
		r.mind.plan("begin", startAll(false, "dig"), llmtest.Say("started"))
		r.mind.plan("failed in run", llmtest.Say("I heard of it"))
		r.mind.plan("dig", fails)
		r.mind.hold("dig\n", time.Minute)
		r.start()
		r.post(other, msg("hello", "hello"))
		r.say("begin")
		after(time.Second)
		r.post(bob, msg("me too", "me too")) // the most recent of all, but not hers
		after(time.Second)
		child := r.children(ann)[0].ID
		if err := r.system.Control.Delete(r.Context(), r.agent(ann)); err != nil {
			t.Fatal(err)
		}
		after(time.Hour)
		if got := r.systemTexts(r.agent(other), claybot.KindFailure); len(got) != 1 {
			t.Errorf("her other agent has %q", got)
		}
		if got := r.systemTexts(r.agent(bob), claybot.KindFailure); len(got) != 0 {
			t.Errorf("another owner has %q", got)
		}
		if _, err := r.agents.Agent(r.Context(), child); err != nil {
			t.Errorf("the child: %v", err)
		}
		r.say("again") // a new agent
		after(time.Minute)
		if seen := r.chat.seen(); seen[len(seen)-1] != "re: again" {
			t.Errorf("people see %q", seen)
		}
	})
}

func TestSpawnAndWait(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.mind.plan("begin", spawn("", "alpha", "bravo", "charlie"), llmtest.Say("all in"))
		r.mind.plan("alpha", use("work"), llmtest.Say("one"))
		r.mind.plan("bravo", fails)
		r.mind.plan("charlie", llmtest.Say("three"))
		r.mind.hold("charlie\n", time.Minute)
		r.start()
		r.say("begin")
		after(10 * time.Second)
		run := r.receipt("begin").Run
		if run.State != claybot.RunAwaiting || len(run.Awaiting.Answers) != 3 {
			t.Fatalf("meanwhile %+v", run)
		}
		r.say("patience")
		after(10 * time.Second)
		r.wants() // it waits its turn
		after(time.Hour)
		r.wants("all in", "re: patience")
		got := r.answers(ann)
		if len(got) != 3 || !got[0].OK || got[0].Output != "one" || got[1].OK || !strings.Contains(got[1].Error, "model_refused") || got[2].Output != "three" {
			t.Errorf("answers %+v", got)
		}
		if n := r.systemTexts(r.agent(ann), claybot.KindFailure); len(n) != 0 {
			t.Errorf("notices beside the entry: %q", n)
		}
		pauses, resumes := 0, 0
		for _, e := range r.events(run.ID) {
			switch e.Type {
			case claybot.EventAwaitingInput:
				pauses++
			case claybot.EventRunResumed:
				resumes++
			}
		}
		if pauses != 1 || resumes != 1 {
			t.Errorf("%d pauses, %d resumes", pauses, resumes)
		}
	})
}

// A child that takes too long is an entry, and is ended.
func TestSpawnTimesOut(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.mind.plan("begin", spawn("30s", "alpha", "bravo"), llmtest.Say("all in"))
		r.mind.hold("bravo\n", time.Hour)
		r.start()
		r.say("begin")
		after(40 * time.Second)
		r.wants("all in")
		got := r.answers(ann)
		if len(got) != 2 || !got[0].OK || got[1].OK || !strings.Contains(got[1].Error, "deadline") {
			t.Errorf("answers %+v", got)
		}
		for _, c := range r.children(ann) {
			if c.Run != "" {
				t.Errorf("%s still runs", c.Descriptor.Name)
			}
		}
	})
}

// A stop ends the waiting run and those it waits for, and sends no notice.
func TestStopWhileWaiting(t *testing.T) {
	t.Parallel()
	for _, stop := range []claybot.AgentMessage{typed("stop", claybot.MessageCancel, ""), typed("stop", claybot.MessageReset, "")} {
		t.Run(string(stop.Type), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.mind.plan("begin", spawn("", "alpha", "bravo"), llmtest.Say("all in"))
				r.mind.plan("alpha", spawn("", "delta"), llmtest.Say("never"))
				r.mind.hold("delta\n", time.Hour)
				r.start()
				r.say("begin")
				after(10 * time.Second)
				helpers := r.children(ann)
				alpha := helpers[slices.IndexFunc(helpers, func(e storage.IndexEntry) bool { return e.Descriptor.Name == "ALPHA" })]
				r.post(ann, stop)
				after(10 * time.Second)
				if run := r.receipt("begin").Run; run.State != claybot.RunCanceled {
					t.Errorf("the run is %s", run.State)
				}
				below, err := r.db.Children(r.Context(), alpha.ID)
				if err != nil || len(below) != 1 || below[0].Run != "" {
					t.Errorf("below: %+v, %v", below, err)
				}
				r.say("next")
				after(time.Hour)
				seen := r.chat.seen()
				if len(seen) != 2 || seen[1] != "re: next" {
					t.Errorf("people see %q", seen)
				}
				if n := r.systemTexts(r.agent(ann), claybot.KindFailure); len(n) != 0 {
					t.Errorf("notices: %q", n)
				}
			})
		})
	}
}

func TestLimitsOfSubagents(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		society subagents.Limits
		tasks   []string
		want    string
	}{
		{"depth", subagents.Limits{MaxDepth: 0, MaxChildren: 8, MaxStarts: 30}, []string{"a"}, "nested 0 deep"},
		{"children", subagents.Limits{MaxDepth: 3, MaxChildren: 2, MaxStarts: 30}, []string{"a", "b", "c"}, "over the limit of 2"},
		{"starts", subagents.Limits{MaxDepth: 3, MaxChildren: 8, MaxStarts: 2}, []string{"a", "b", "c"}, "over the limit of 2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.society = tt.society
				r.mind.plan("begin", spawn("", tt.tasks...), llmtest.Say("done"))
				r.start()
				r.say("begin")
				after(time.Minute)
				r.wants("done")
				if rec := r.result(ann, "spawn_and_wait"); rec.OK || !strings.Contains(rec.Text, tt.want) {
					t.Errorf("the tool said %q", rec.Text)
				}
				if c := r.children(ann); len(c) != 0 {
					t.Errorf("%d children", len(c))
				}
			})
		})
	}
}

// A message without a receiver reaches the agent that the person wrote to last, under
// whichever of their ids, in the thread where they did.
func TestMostRecentForeground(t *testing.T) {
	t.Parallel()
	room := claybot.User("chat", "room", "ann")
	for _, linked := range []bool{false, true} {
		t.Run(fmt.Sprint("linked ", linked), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				if linked {
					r.society.Identities = func(string) []string { return []string{"chat/ann", "chat/bob"} }
				}
				r.mind.plan("begin", startAll(false, "dig"), llmtest.Say("started"))
				r.mind.plan("dig", use("work"), llmtest.Use(with("send_agent_message", obj{"text": "gold here"})), llmtest.Say("dug"))
				r.mind.plan("gold here", llmtest.Say("there is gold"))
				r.bench.work = func(ctx context.Context) { _ = rest(ctx, time.Minute) }
				r.start()
				r.say("begin")
				after(time.Second)
				m := msg("in the room", "in the room")
				m.Context.ThreadID = "t7"
				r.post(room, m)
				after(time.Second)
				r.post(bob, msg("latest", "latest"))
				after(time.Second)
				r.crash() // also right after a restart
				r.start()
				after(time.Hour)
				want := room.Route().Dest()
				if linked {
					want = bob.Route().Dest()
				}
				var dests []string
				for _, p := range r.chat.posts {
					if p.text == "there is gold" {
						dests = append(dests, p.out.Route.Dest())
						if !linked && p.out.Route.ThreadID != "t7" {
							t.Errorf("in thread %q", p.out.Route.ThreadID)
						}
					}
				}
				if !slices.Equal(dests, []string{want}) {
					t.Errorf("it went to %q, want %q", dests, want)
				}
			})
		})
	}
}

// What is refused posts nothing.
func TestRefusedAmongAgents(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		r.post(bob, msg("hi", "hi"))
		after(time.Second)
		for i, tt := range []struct {
			tool string
			args obj
			want string
		}{
			{"send_agent_message", obj{"text": "x"}, "no other agent of a person"}, // bob's is out of reach
			{"send_agent_message", obj{"text": "x", "to": "parent"}, "no parent"},
			{"send_agent_message", obj{"text": "x", "to": "nobody"}, "invalid agent id"},
			{"send_agent_message", obj{"text": "x", "to": string(r.agent(bob))}, "no agent"},
			{"send_agent_message", obj{"text": " ", "to": "parent"}, "empty"},
			{"ask_agent", obj{"text": "x", "to": string(r.agent(bob))}, "no agent"},
			{"read_agent_history", obj{"id": string(r.agent(bob))}, "no agent"},
			{"stop_agent", obj{"id": string(r.agent(bob))}, "no agent"},
			{"start_subagent", obj{"task": "x", "model": "dear"}, "not configured"},
		} {
			word := fmt.Sprint("go ", i, ".")
			r.mind.plan(word, llmtest.Use(with(tt.tool, tt.args)), llmtest.Say("ok"))
			r.say(word)
			after(time.Minute)
			if rec := r.result(ann, tt.tool); rec.OK || !strings.Contains(rec.Text, tt.want) {
				t.Errorf("%s %v said %q, want %q", tt.tool, tt.args, rec.Text, tt.want)
			}
		}
		r.mind.plan("self", llmtest.Use(with("send_agent_message", obj{"text": "x", "to": string(r.agent(ann))})), llmtest.Say("ok"))
		r.say("self")
		after(time.Minute)
		if rec := r.result(ann, "send_agent_message"); rec.OK || !strings.Contains(rec.Text, "is you") {
			t.Errorf("to itself: %q", rec.Text)
		}
		if got := r.history(bob); len(got) != 2 {
			t.Errorf("bob's agent remembers %q", got)
		}
	})
}

package agentsystem_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/budgets"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/runs/react"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools"
)

// everyone is the agent that all members of the room share.
var everyone = claybot.User("chat", "room", claybot.Everyone)

// by is a message that a person writes in the room.
func by(user, id, text string) claybot.AgentMessage {
	m := in("", id, text)
	m.From = claybot.Sender{UserID: user, Name: "Mx " + user}
	return m
}

// inRoom posts messages of the room as their senders write them.
func (r *rig) inRoom(ms ...claybot.AgentMessage) {
	r.Helper()
	for _, m := range ms {
		r.post(claybot.User("chat", "room", m.From.UserID), m)
	}
}

// sharing starts a rig in which the members of groups share an agent.
func sharing(t *testing.T, test func(r *rig)) {
	t.Helper()
	bubble(t, func(r *rig) {
		r.profile.Shared = true
		test(r)
	})
}

// All members of a group talk to one agent, in the order in which they write, after restarts
// as well; each message names its sender, and its reply goes to them.
func TestSharedAgent(t *testing.T) {
	t.Parallel()
	sharing(t, func(r *rig) {
		r.start()
		for n, user := range []string{"ann", "bob", "eve", "ann"} {
			r.inRoom(by(user, fmt.Sprint("m", n), fmt.Sprint("m", n)))
			synctest.Wait()
			r.restart()
		}
		r.wants("re: m0", "re: m1", "re: m2", "re: m3")
		var heard []string
		for _, rec := range r.records(everyone) {
			if rec.Type == claybot.RecordUser {
				heard = append(heard, rec.From.Name+": "+rec.Text)
			}
		}
		if want := []string{"Mx ann: m0", "Mx bob: m1", "Mx eve: m2", "Mx ann: m3"}; !slices.Equal(heard, want) {
			r.Errorf("the agent heard %q, want %q", heard, want)
		}
		for n, user := range []string{"ann", "bob", "eve", "ann"} {
			want := claybot.Route{Connector: "chat", ChannelID: "room", UserID: user, Group: true}
			if got := r.chat.posts[n].out.Route; got != want {
				r.Errorf("answer %d went to %+v, want %+v", n, got, want)
			}
		}
		a, err := r.agents.Agent(r.Context(), r.agent(everyone))
		if want := everyone.Route(); err != nil || a.State.Routing == nil || *a.State.Routing != want {
			r.Errorf("the place of the agent is %+v, %v, want %+v", a.State.Routing, err, want)
		}
	})
}

// Direct chats stay with agents of their own, and so does a group without the setting; a change
// of it leaves the earlier conversations as they are.
func TestSharedAgentsAreOnlyOfGroups(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		r.inRoom(by("ann", "own", "own"))
		synctest.Wait()
		r.mu.Lock()
		r.profile.Shared = true
		r.mu.Unlock()
		r.inRoom(by("ann", "shared", "shared"))
		r.say("direct")
		synctest.Wait()
		r.mu.Lock()
		r.profile.Shared = false
		r.mu.Unlock()
		r.inRoom(by("ann", "again", "again"))
		r.inRoom(by("ann", "shared", "shared")) // redelivered
		synctest.Wait()
		own := claybot.User("chat", "room", "ann")
		for d, want := range map[claybot.Descriptor][]string{own: {"own", "again"}, everyone: {"shared"}, ann: {"direct"}} {
			if got := r.userTexts(d); !slices.Equal(got, want) {
				r.Errorf("%v heard %q, want %q", d, got, want)
			}
		}
	})
}

// Where threads are conversations of their own, the members share one agent per thread, and a
// command without a thread concerns the one to which any member wrote last.
func TestSharedThreads(t *testing.T) {
	t.Parallel()
	sharing(t, func(r *rig) {
		r.ownThreads = true
		r.start()
		said := func(user, thread, id string) claybot.AgentMessage {
			m := by(user, id, id)
			m.Context.ThreadID = thread
			return m
		}
		for _, m := range []claybot.AgentMessage{said("ann", "1", "a"), said("bob", "2", "b"), said("bob", "1", "c")} {
			r.inRoom(m)
			synctest.Wait()
		}
		one, two := everyone, everyone
		one.ThreadID, two.ThreadID = "1", "2"
		if got := r.userTexts(one); !slices.Equal(got, []string{"a", "c"}) {
			r.Errorf("thread 1 heard %q", got)
		}
		slash := by("eve", "s", "")
		slash.Type, slash.Context.MessageID = claybot.MessageReset, ""
		r.inRoom(slash)
		synctest.Wait()
		if got, other := r.userTexts(one), r.userTexts(two); len(got) != 0 || !slices.Equal(other, []string{"b"}) {
			r.Errorf("after a reset thread 1 remembers %q, thread 2 %q", got, other)
		}
		for i, thread := range []string{"1", "2", "1", "1"} {
			if got := r.chat.posts[i].out.Route.ThreadID; got != thread {
				r.Errorf("answer %d went to thread %q, want %q", i, got, thread)
			}
		}
	})
}

// A run answers one person: what different people write meanwhile waits for a run of its own,
// in order, whether messages are collected or join runs.
func TestSharedRunsAnswerOnePerson(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]inbox.Policy{"debounce": {Debounce: time.Second}, "inject": {WhenBusy: inbox.InjectAfterTools, Debounce: time.Second}} {
		sharing(t, func(r *rig) {
			r.setPolicy(p)
			r.start()
			r.inRoom(by("ann", "a1", "a1"), by("ann", "a2", "a2"), by("bob", "b1", "b1"), by("ann", "a3", "a3"))
			after(time.Minute)
			for id, want := range map[claybot.MessageID][]claybot.MessageID{"a1": {"a1", "a2"}, "b1": {"b1"}, "a3": {"a3"}} {
				if got := r.ranWith(id); !slices.Equal(got, want) {
					r.Errorf("%s: %s ran with %q, want %q", name, id, got, want)
				}
			}
			if got := r.userTexts(everyone); !slices.Equal(got, []string{"a1", "a2", "b1", "a3"}) {
				r.Errorf("%s: the agent heard %q", name, got)
			}
		})
	}
}

// A question is for the person whose message the run answers: what others write is a message,
// their buttons and commands decide nothing.
func TestSharedQuestions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		asked askedFor
		give  func(r *rig, user string, q claybot.Question)
	}{
		{"button", payment("Pay?"), func(r *rig, user string, q claybot.Question) {
			got := r.press(claybot.User("chat", "room", user), q.ID, "approve")
			if want := user == "ann"; got.OK != want {
				r.Errorf("%s presses: %+v", user, got)
			}
		}},
		{"command", payment("Pay?"), func(r *rig, user string, q claybot.Question) {
			m := by(user, "c-"+user, q.ID)
			m.Type, m.Command = claybot.MessageCommand, "approve"
			r.inRoom(m)
		}},
		{"bare command", payment("Pay?"), func(r *rig, user string, q claybot.Question) {
			m := by(user, "c-"+user, "")
			m.Type, m.Command = claybot.MessageCommand, "approve"
			r.inRoom(m)
		}},
		{"yes", payment("Pay?"), func(r *rig, user string, q claybot.Question) { r.inRoom(by(user, "y-"+user, "yes")) }},
		{
			"text",
			askedFor{Question: claybot.Question{Key: "Pay?", Text: "How much?", Type: claybot.QuestionText, Required: true}, Wait: time.Hour},
			func(r *rig, user string, q claybot.Question) { r.inRoom(by(user, "t-"+user, "ten")) },
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sharing(t, func(r *rig) {
				r.line = platforms[0].line
				r.engine = engineFunc(asks)
				r.start()
				r.inRoom(by("bob", "hi", "hi"))
				synctest.Wait()
				q := r.asksIn("ann", tt.asked)
				if q.Person != "chat/ann" {
					r.Errorf("the question is for %q", q.Person)
				}
				time.Sleep(2 * time.Second)
				tt.give(r, "bob", q)
				synctest.Wait()
				if said := r.saidTo(q); said != "" {
					r.Fatalf("bob answered %q", said)
				}
				r.restart()
				tt.give(r, "ann", q)
				synctest.Wait()
				if r.saidTo(q) == "" {
					r.Errorf("ann did not answer; people see %q", r.chat.seen())
				}
				if got, err := r.system.Questions.Answers.Question(r.Context(), q.ID); err != nil || got.Answer == nil || got.Answer.By != "chat/ann" {
					r.Errorf("the answer is %+v, %v", got.Answer, err)
				}
			})
		})
	}
}

// asksIn makes a message of a person to the shared agent ask, and returns the question.
func (r *rig) asksIn(user string, asked askedFor) claybot.Question {
	r.Helper()
	text, err := json.Marshal([]askedFor{asked})
	if err != nil {
		r.Fatal(err)
	}
	r.inRoom(by(user, "ask", string(text)))
	synctest.Wait()
	open, err := r.system.Questions.Answers.OpenQuestions(r.Context(), r.agent(everyone))
	if err != nil || len(open) != 1 {
		r.Fatalf("open are %+v, %v; people see %q", open, err, r.chat.seen())
	}
	return open[0].Question
}

// Named approvers decide, independent of who asked.
func TestSharedApprovers(t *testing.T) {
	t.Parallel()
	sharing(t, func(r *rig) {
		r.line = platforms[0].line
		r.engine = engineFunc(asks)
		r.start()
		q := r.asksIn("ann", payment("Pay?", "chat/bob"))
		if got := r.press(claybot.User("chat", "room", "ann"), q.ID, "approve"); got != refusal {
			r.Errorf("ann is told %+v", got)
		}
		if got := r.press(claybot.User("chat", "room", "bob"), q.ID, "approve"); !got.OK {
			r.Errorf("bob is told %+v", got)
		}
	})
}

// Any member stops the shared agent, and begins a new conversation for all.
func TestSharedCommands(t *testing.T) {
	t.Parallel()
	sharing(t, func(r *rig) {
		r.mind.hold("long", time.Minute)
		r.start()
		r.inRoom(by("ann", "long", "long"))
		synctest.Wait()
		stop := by("bob", "stop", "")
		stop.Type = claybot.MessageCancel
		r.inRoom(stop)
		after(5 * time.Minute)
		if run := r.receipt("long").Run; run == nil || run.State != claybot.RunCanceled {
			r.Errorf("the run is %+v", run)
		}
		reset := by("eve", "new", "")
		reset.Type = claybot.MessageReset
		r.inRoom(reset)
		synctest.Wait()
		if got := r.userTexts(everyone); len(got) != 0 {
			r.Errorf("the agent remembers %q", got)
		}
	})
}

// Each sender is checked on their own: who loses access loses their run and what waits, the
// others go on.
func TestRevokeMemberOfSharedAgent(t *testing.T) {
	t.Parallel()
	outside := func(id, text string) claybot.AgentMessage {
		m := by("T2/eve", id, text)
		m.From.Outsider = true
		return m
	}
	for _, tt := range []struct {
		name string
		runs claybot.AgentMessage
		want claybot.RunState
	}{
		{"their run", outside("long", "long"), claybot.RunCanceled},
		{"another run", by("ann", "long", "long"), claybot.RunSucceeded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pairing(t, func(r *rig) {
				r.profile.Shared = true
				r.mind.hold("long", time.Minute)
				r.start()
				r.inRoom(outside("unknown", "unknown"))
				for _, id := range []string{"room", "T2/eve"} {
					if err := r.system.People.Allow(r.Context(), "chat", id); err != nil {
						r.Fatal(err)
					}
				}
				r.inRoom(tt.runs, outside("waits", "waits"), by("ann", "stays", "stays"))
				synctest.Wait()
				if err := r.system.Control.Revoke(r.Context(), "chat", "T2/eve"); err != nil {
					r.Fatal(err)
				}
				r.inRoom(outside("late", "late"))
				after(5 * time.Minute)
				if run := r.receipt("long").Run; run == nil || run.State != tt.want {
					r.Errorf("the run is %+v, want %s", run, tt.want)
				}
				if got := r.receipt("waits"); got.Skipped != inbox.SkippedRevoked {
					r.Errorf("what waited was %q", got.Skipped)
				}
				if got := strings.Join(r.userTexts(everyone), " "); got != "long stays" {
					r.Errorf("the agent heard %q", got)
				}
				if got := r.chat.seen(); got[len(got)-1] != "re: stays" {
					r.Errorf("people see %q", got)
				}
			})
		})
	}
}

// An agent of a person finds nothing that was said to the shared agent, which finds nothing but
// its own conversations; neither reaches the other.
func TestSharedAgentAndPrivateAgents(t *testing.T) {
	t.Parallel()
	sharing(t, func(r *rig) {
		r.start()
		r.say("secret of ann")
		r.post(ann, msg("direct", "secret"))
		r.inRoom(by("ann", "group", "secret of all"))
		r.post(claybot.User("chat", "other", "ann"), by("ann", "other", "secret elsewhere"))
		synctest.Wait()
		for _, tt := range []struct {
			d    claybot.Descriptor
			want []string
		}{
			{ann, []string{"secret of ann", "secret"}},
			{everyone, []string{"secret of all"}},
		} {
			a, err := r.agents.Agent(r.Context(), r.agent(tt.d))
			if err != nil {
				r.Fatal(err)
			}
			found, err := r.system.Subagents.Directory.SearchHistory(r.Context(), tools.Env{Agent: a}, []string{"secret"}, 0, 20)
			if err != nil {
				r.Fatal(err)
			}
			var got []string
			for _, f := range found.Found {
				if f.Record.Type == claybot.RecordUser {
					got = append(got, f.Record.Text)
				}
			}
			slices.Sort(got)
			slices.Sort(tt.want)
			if !slices.Equal(got, tt.want) {
				r.Errorf("%v finds %q, want %q", tt.d, got, tt.want)
			}
		}
		if r.system.People.Reaches(everyone, ann) || r.system.People.Reaches(ann, everyone) {
			r.Error("one reaches the other")
		}
	})
}

// What a shared agent costs counts for the person whose message it answers, and for the group
// where it answers no person.
func TestSharedBudgets(t *testing.T) {
	t.Parallel()
	banking(t, talks(10), func(b *bank) {
		b.profile.Shared = true
		b.rules = []budgets.Rule{{Per: budgets.PerOwner, Every: budgets.EveryAlways, Unit: storage.UnitTokens, Limit: 1 << 40, Hard: true}}
		b.start()
		for _, user := range []string{"ann", "bob"} {
			b.inRoom(by(user, user, "hello"))
			synctest.Wait()
		}
		b.post(everyone, claybot.AgentMessage{ID: "r1", Type: claybot.MessageSystem, Kind: claybot.KindReminder, Text: "wake up"})
		after(time.Minute)
		input, output := b.server.Tokens()
		var sum int64
		for _, owner := range []string{"chat/ann", "chat/bob", "chat/room/*"} {
			spent := b.budget("owner/" + owner + "/").Spent
			if spent == 0 {
				b.Errorf("nothing counts for %s", owner)
			}
			sum += spent
		}
		if sum != input+output {
			b.Errorf("%d tokens count, the server has %d", sum, input+output)
		}
	})
}

// A call that needs approval is approved by the person whose message the run answers, once: what
// one member approves, another one does not get for the session.
func TestSharedToolApprovals(t *testing.T) {
	t.Parallel()
	sharing(t, func(r *rig) {
		r.line = platforms[0].line
		set := r.bench.set(r.T)
		r.engine = &react.Loop{
			Model:   func(claybot.Agent) llm.Model { return r.mind },
			Tools:   func(claybot.Agent) *tools.Set { return set },
			Approve: func(claybot.Agent) react.Rules { return react.Rules{Ask: []string{"pay"}} },
		}
		r.mind.plan("go", llmtest.Use(claybot.ToolCall{ID: "c1", Name: "pay", Args: "{}"}), llmtest.Say("paid"))
		r.start()
		r.inRoom(by("ann", "go", "go"))
		synctest.Wait()
		open, err := r.system.Questions.Answers.OpenQuestions(r.Context(), r.agent(everyone))
		if err != nil || len(open) != 1 {
			r.Fatalf("open are %+v, %v", open, err)
		}
		q := open[0].Question
		if !q.Once || q.Person != "chat/ann" || !strings.Contains(q.Text, "Asked by the agent that all members of chat/room share, for `Mx ann`.") {
			r.Errorf("the question is %+v", q)
		}
		if got := r.press(claybot.User("chat", "room", "bob"), q.ID, "approve"); got != refusal {
			r.Errorf("bob is told %+v", got)
		}
		if got := r.press(claybot.User("chat", "room", "ann"), q.ID, "approve"); !got.OK {
			r.Errorf("ann is told %+v", got)
		}
		after(time.Minute)
		if got := r.chat.seen("room"); !slices.Contains(got, "paid") {
			r.Errorf("people see %q", got)
		}
	})
}

// An emoji of any member stops the shared agent, as their /stop does.
func TestSharedStopByReaction(t *testing.T) {
	t.Parallel()
	sharing(t, func(r *rig) {
		r.profile.Reactions = reacting
		r.grow(streams, half1+half2)
		r.start()
		r.inRoom(by("ann", "begin", "begin"))
		after(time.Second)
		stop := emoji(claybot.User("chat", "room", "bob"), "p1", "octagonal_sign")
		stop.Group = true
		r.react(stop)
		after(time.Minute)
		if got := r.state("begin"); got != claybot.RunCanceled {
			r.Errorf("the run is %s, want it canceled", got)
		}
	})
}

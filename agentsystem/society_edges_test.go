package agentsystem_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/storage"
)

// What a helper reports is answered in the group and thread where the person
// wrote, also where only the group was let in.
func TestReportInGroup(t *testing.T) {
	t.Parallel()
	room := claybot.User("chat", "room", "ann")
	bubble(t, func(r *rig) {
		r.access = people.Access{Mode: people.AccessAllowlist, Allow: []string{"chat:room"}}
		r.mind.plan("begin", startAll(true, "dig"), llmtest.Say("started"))
		r.mind.plan("dig", llmtest.Say("found gold"))
		r.mind.plan("found gold", llmtest.Say("my helper found gold"))
		r.start()
		m := msg("begin", "begin")
		m.Context = claybot.MessageContext{ThreadID: "t1", Group: true}
		r.post(room, m)
		after(time.Minute)
		r.wants("started", "my helper found gold")
		if route := r.chat.posts[1].out.Route; route.ThreadID != "t1" || !route.Group {
			t.Errorf("it went to %+v", route)
		}
	})
}

// A report waits for company as other messages do.
func TestReportIsDebounced(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.mind.plan("begin", startAll(true, "dig"), llmtest.Say("started"))
		r.mind.plan("dig", use("work"), llmtest.Say("found gold"))
		r.bench.work = func(ctx context.Context) { _ = rest(ctx, time.Minute) }
		r.start()
		r.say("begin")
		after(time.Second)
		r.setPolicy(inbox.Policy{Debounce: 10 * time.Second})
		after(59 * time.Second)
		r.say("one")
		after(3 * time.Second)
		r.say("two")
		after(time.Hour)
		if got := r.ranWith("one"); len(got) != 3 {
			t.Errorf("one run took %q", got)
		}
	})
}

// An agent that is deleted while it works lets its worker go.
func TestDeleteAtWork(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var releases atomic.Int64
		r.decorate = func(s agentsystem.Stores) agentsystem.Stores {
			s.Inbox = releasing{s.Inbox, &releases}
			return s
		}
		r.mind.hold("begin", time.Minute)
		r.start()
		r.say("begin")
		after(time.Second)
		if err := r.system.Control.Delete(r.Context(), r.agent(ann)); err != nil {
			t.Fatal(err)
		}
		after(time.Hour)
		if n := releases.Load(); n > 3 {
			t.Errorf("%d releases of an agent that is gone", n)
		}
		r.say("again")
		after(time.Hour)
		if seen := r.chat.seen(); len(seen) == 0 || seen[len(seen)-1] != "re: again" {
			t.Errorf("people see %q", seen)
		}
	})
}

type releasing struct {
	agentsystem.Inbox
	n *atomic.Int64
}

func (x releasing) Release(ctx context.Context, l storage.Lease, w storage.Wait, orderly bool) error {
	x.n.Add(1)
	return x.Inbox.Release(ctx, l, w, orderly)
}

// No work is done for a revoked person any more: not by a paused run, nor by
// subagents, reminders, or tasks.
func TestRevokedPerson(t *testing.T) {
	t.Parallel()
	waits := func(r *rig) {
		r.mind.plan("begin", spawn("", "dig"), use("pay"), llmtest.Say("done"))
		r.mind.plan("dig", use("work"), use("pay"), llmtest.Say("dug"))
	}
	for name, plan := range map[string]func(r *rig){
		"paused run": waits,
		"helper": func(r *rig) {
			r.mind.plan("begin", startAll(true, "dig"), llmtest.Say("started"))
			r.mind.plan("dig", use("work"), use("pay"), llmtest.Say("dug"))
			r.mind.plan("dug", use("pay"), llmtest.Say("heard"))
		},
		"reminder": func(r *rig) {
			r.mind.plan("begin", llmtest.Use(with("remind_me", obj{"in": "2m", "note": "tea"})), llmtest.Say("noted"))
			r.mind.plan("tea", use("pay"), llmtest.Say("tea time"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.access.Mode = people.AccessAllowlist
				r.bench.work = func(ctx context.Context) { _ = rest(ctx, time.Minute) }
				plan(r)
				r.start()
				if err := r.system.People.Allow(r.Context(), "chat", "ann"); err != nil {
					t.Fatal(err)
				}
				r.say("begin")
				after(10 * time.Second)
				if err := r.system.Control.Revoke(r.Context(), "chat", "ann"); err != nil {
					t.Fatal(err)
				}
				after(time.Hour)
				if paid := r.bench.times("pay"); len(paid) != 0 {
					t.Errorf("it paid %v", paid)
				}
				for e, err := range r.db.IndexedAgents(r.Context()) {
					if err != nil || e.Busy {
						t.Errorf("%s is at work: %v", e.ID, err)
					}
				}
			})
		})
	}
	t.Run("task", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(r *rig) {
			r.access.Mode = people.AccessAllowlist
			r.mind.plan("count", use("pay"), llmtest.Say("three"))
			r.start()
			if err := r.system.People.Allow(r.Context(), "chat", "ann"); err != nil {
				t.Fatal(err)
			}
			task := claybot.Descriptor{Type: claybot.AgentCron, UID: "abc", Owner: "chat/ann"}
			fire := func(id string) {
				r.post(task, claybot.AgentMessage{
					ID: claybot.MessageID(id), Type: claybot.MessageSystem, Kind: claybot.KindCron, Text: "count",
					Route: &claybot.Route{Connector: "chat", ChannelID: "dm-ann"},
				})
				after(time.Minute)
			}
			r.say("hello")
			after(time.Minute)
			fire("t1")
			r.wants("re: hello", "three")
			if err := r.system.Control.Revoke(r.Context(), "chat", "ann"); err != nil {
				t.Fatal(err)
			}
			fire("t2")
			if rec := r.receipt("t2"); rec.Skipped != "not_allowed" || len(r.bench.times("pay")) != 1 {
				t.Errorf("%+v, paid %v", rec, r.bench.times("pay"))
			}
		})
	})
}

// Silent messages change nothing about where and to what a turn answers, and
// never make one.
func TestSilentCompany(t *testing.T) {
	t.Parallel()
	whisper := func(r *rig, id string) {
		_, err := r.db.Post(r.Context(), storage.Posting{To: r.agent(ann), Message: claybot.AgentMessage{
			ID: claybot.MessageID(id), Type: claybot.MessageSystem, Kind: claybot.KindMessage, Text: "psst", Silent: true,
		}})
		if err != nil {
			r.Fatal(err)
		}
	}
	t.Run("route", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(r *rig) {
			r.setPolicy(inbox.Policy{Debounce: time.Second})
			r.start()
			r.say("hello")
			after(time.Minute)
			m := msg("one", "one")
			m.Context = claybot.MessageContext{ThreadID: "t1", ReplyTo: "m1"}
			r.post(ann, m)
			whisper(r, "w1")
			after(time.Minute)
			p := r.chat.posts[1].out
			if p.Route.ThreadID != "t1" || p.Route.ReplyTo != "m1" || p.Message != "one" {
				t.Errorf("answered with %+v", p)
			}
		})
	})
	t.Run("before compact", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(r *rig) {
			r.start()
			r.say("hello")
			after(time.Minute)
			whisper(r, "w1")
			asked := len(r.mind.asked())
			r.post(ann, command("c1", "compact"))
			after(time.Minute)
			r.wants("re: hello", "There is nothing to compact yet.")
			if n := len(r.mind.asked()); n != asked {
				t.Errorf("%d model calls", n-asked)
			}
		})
	})
	t.Run("many", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(r *rig) {
			r.start()
			r.say("hello")
			after(time.Minute)
			for i := range 150 {
				whisper(r, fmt.Sprint("w", i))
			}
			r.say("two")
			after(time.Minute)
			r.wants("re: hello", "re: two")
			if got := r.ranWith("two"); len(got) != 151 {
				t.Errorf("the run took %d messages", len(got))
			}
		})
	})
	t.Run("child", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(r *rig) {
			r.society.MaxChildren = 1
			r.mind.plan("begin", startAll(false, "dig"), llmtest.Say("started"))
			r.start()
			r.say("begin")
			after(time.Minute)
			r.mind.plan("whisper", llmtest.Use(with("send_agent_message", obj{"to": string(r.children(ann)[0].ID), "text": "psst", "silent": true})), llmtest.Say("ok"))
			r.say("whisper")
			after(time.Minute)
			r.mind.plan("more", startAll(false, "delve"), llmtest.Say("started more"))
			r.say("more")
			after(time.Minute)
			if n := len(r.children(ann)); n != 2 {
				t.Errorf("%d helpers: %s", n, r.result(ann, "start_subagent").Text)
			}
		})
	})
}

// Long answers are shortened one by one, and none is lost.
func TestLongAnswers(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.mind.plan("begin", spawn("", "alpha", "bravo", "charlie"), llmtest.Say("all in"))
		r.mind.plan("alpha", llmtest.Say(strings.Repeat("a\"", 15_000)))
		r.mind.plan("bravo", llmtest.Say("short"))
		r.mind.plan("charlie", llmtest.Say(strings.Repeat("c", 30_000)))
		r.start()
		r.say("begin")
		after(time.Minute)
		got := r.answers(ann)
		if len(got) != 3 || got[1].Output != "short" || len(got[0].Output) < 1000 || len(got[2].Output) < 1000 {
			t.Errorf("%d answers: %.300q", len(got), fmt.Sprint(got))
		}
	})
}

// A child that is deleted is an entry, and nothing is started anew for it.
func TestChildIsDeleted(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.society.MaxStarts = 3
		r.mind.plan("begin", spawn("", "alpha", "bravo", "charlie"), llmtest.Say("all in"))
		r.mind.hold("alpha", time.Hour)
		r.start()
		r.say("begin")
		after(time.Minute)
		for _, c := range r.children(ann) {
			if c.Descriptor.Name == "ALPHA" {
				if err := r.system.Control.Delete(r.Context(), c.ID); err != nil {
					t.Fatal(err)
				}
			}
		}
		after(time.Hour)
		r.wants("all in")
		got := r.answers(ann)
		if len(got) != 3 || got[0].OK || got[0].Error == "" || got[1].Output != "re: bravo" || got[2].Output != "re: charlie" {
			t.Errorf("%+v", got)
		}
		if n := len(r.children(ann)); n != 2 {
			t.Errorf("%d helpers", n)
		}
	})
}

// The process dies between the end of a stopped run and the stop of those it
// waited for.
func TestOrphansAreStopped(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.mind.plan("begin", spawn("1h", "dig"), llmtest.Say("done"))
		r.mind.plan("dig", use("work"), use("pay"), llmtest.Say("dug"))
		r.bench.work = func(ctx context.Context) { _ = rest(ctx, 10*time.Minute) }
		blind := true
		r.decorate = func(s agentsystem.Stores) agentsystem.Stores {
			s.Index = childless{s.Index, &blind}
			return s
		}
		r.start()
		r.say("begin")
		after(time.Second)
		r.post(ann, typed("stop", claybot.MessageCancel, ""))
		after(time.Second)
		r.crash()
		blind = false
		r.start()
		after(time.Hour)
		if paid := r.bench.times("pay"); len(paid) != 0 {
			t.Errorf("it paid %v", paid)
		}
	})
}

// childless finds no children, as if the process died before it looked.
type childless struct {
	agentsystem.Index
	blind *bool
}

func (x childless) Children(ctx context.Context, id claybot.AgentID) ([]storage.IndexEntry, error) {
	if *x.blind {
		return nil, nil
	}
	return x.Index.Children(ctx, id)
}

// What is said about a paused run is said at once.
func TestStopOfPausedRunIsQuick(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.mind.plan("begin", spawn("", "dig"), llmtest.Say("done"))
		r.mind.hold("dig", time.Hour)
		r.start()
		r.say("begin")
		after(time.Second)
		r.post(ann, typed("stop", claybot.MessageCancel, ""))
		after(200 * time.Millisecond)
		if run := r.receipt("begin").Run; run.State != claybot.RunCanceled {
			t.Errorf("the run is %s", run.State)
		}
		if !slices.Equal(r.chat.seen(), []string{"Stopped."}) {
			t.Errorf("people see %q", r.chat.seen())
		}
	})
}

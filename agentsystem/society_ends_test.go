package agentsystem_test

import (
	"context"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/storage"
)

// works makes the tool work take so long.
func (r *rig) works(d time.Duration) {
	r.bench.work = func(ctx context.Context) { _ = rest(ctx, d) }
}

func (r *rig) childrenOf(id claybot.AgentID) []storage.IndexEntry {
	r.Helper()
	list, err := r.db.Children(r.Context(), id)
	if err != nil {
		r.Fatal(err)
	}
	return list
}

// The agent that created a subagent may be gone when an operator deletes the subagent: the
// most recent agent of the owner hears of it, once.
func TestDeletedBelowDeleted(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]llmtest.Reply{"started": startAll(false, "dig"), "awaited": spawn("", "dig")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.mind.plan("begin", startAll(false, "mid"), llmtest.Say("started"))
				r.mind.plan("mid", start, use("work"), llmtest.Say("mid done"))
				r.mind.plan("dig", use("work"), llmtest.Say("dug"))
				r.works(10 * time.Minute)
				r.start()
				r.say("begin")
				after(10 * time.Second)
				mid := r.children(ann)[0].ID
				dig := r.childrenOf(mid)[0].ID
				for _, id := range []claybot.AgentID{mid, dig} {
					if err := r.system.Control.Delete(r.Context(), id); err != nil {
						t.Fatal(err)
					}
					after(time.Minute)
				}
				after(time.Hour)
				if got := r.systemTexts(r.agent(ann), claybot.KindFailure); len(got) != 2 {
					t.Errorf("notices %q, want one for each", got)
				}
			})
		})
	}
}

// An operator's stop ends what waits for a helper as well, and its parent hears
// of it once.
func TestStopOfQueuedHelper(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.mind.plan("begin", startAll(true, "dig"), llmtest.Say("started"))
		r.mind.plan("dig", use("pay"), llmtest.Say("dug"))
		r.start()
		r.setPolicy(inbox.Policy{Debounce: 30 * time.Second})
		r.say("begin")
		after(40 * time.Second)
		if n, err := r.system.Control.Stop(r.Context(), r.children(ann)[0].ID); n != 1 || err != nil {
			t.Errorf("stopped %d, %v", n, err)
		}
		after(time.Hour)
		if got := r.systemTexts(r.agent(ann), claybot.KindFailure); len(got) != 1 || len(r.bench.times("pay")) != 0 {
			t.Errorf("notices %q, paid %v", got, r.bench.times("pay"))
		}
	})
}

// A revoked person's tasks end, running and waiting ones.
func TestRevokeEndsTasks(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.access.Mode = people.AccessAllowlist
		r.mind.plan("count", use("work"), use("pay"), llmtest.Say("three"))
		r.works(5 * time.Minute)
		r.start()
		if err := r.system.People.Allow(r.Context(), "chat", "ann"); err != nil {
			t.Fatal(err)
		}
		r.say("hello")
		after(time.Minute)
		r.fire("t1", "count")
		r.fire("t2", "count")
		after(10 * time.Second)
		if err := r.system.Control.Revoke(r.Context(), "chat", "ann"); err != nil {
			t.Fatal(err)
		}
		after(time.Hour)
		if paid := r.bench.times("pay"); len(paid) != 0 {
			t.Errorf("paid %v", paid)
		}
	})
}

var task = claybot.Descriptor{Type: claybot.AgentCron, UID: "abc", Owner: "chat/ann", Name: "Count"}

// fire posts an instant of a task of Ann that answers in her chat.
func (r *rig) fire(instant, text string) {
	r.Helper()
	f := claybot.Firing{Task: "abc", Instant: instant}
	r.post(task, claybot.AgentMessage{
		ID: f.MessageID(), Type: claybot.MessageSystem, Kind: claybot.KindCron, Text: text,
		Route: &claybot.Route{Connector: "chat", ChannelID: "dm-ann"}, Firing: &f,
	})
}

// What the helper of a task reports is answered where the task's output goes.
func TestTaskHearsItsHelper(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.mind.plan("count", startAll(true, "dig"), llmtest.Say("NO_REPLY"))
		r.mind.plan("dig", use("work"), llmtest.Say("gold"))
		r.mind.plan("gold", llmtest.Say("my helper found gold"))
		r.works(time.Minute)
		r.start()
		r.say("hello")
		after(time.Minute)
		r.fire("t1", "count")
		after(time.Hour)
		r.wants("re: hello", "my helper found gold")
	})
}

// A parent that answers each failure with another helper is stopped, and the
// person hears of it.
func TestHelpersForEver(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		again := []llmtest.Reply{startAll(false, "dig"), llmtest.Say("NO_REPLY")}
		r.mind.plan("begin", startAll(false, "dig"), llmtest.Say("started"))
		r.mind.plan("dig", fails)
		r.mind.plan("failed in run", again...)
		r.start()
		r.say("begin")
		after(48 * time.Hour)
		if n := len(r.children(ann)); n < 5 || n > 25 {
			t.Errorf("%d helpers", n)
		}
		if seen := r.chat.seen(); len(seen) != 2 || seen[0] != "started" {
			t.Errorf("people see %q", seen)
		}
	})
}

// What is promised to come does not mind a full inbox.
func TestReminderIntoFullInbox(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		limited := 0
		r.decorate = func(s agentsystem.Stores) agentsystem.Stores {
			s.Later = counting{s.Later, &limited}
			return s
		}
		r.mind.plan("begin", llmtest.Use(with("remind_me", obj{"in": "2m", "note": "tea"})), llmtest.Say("noted"))
		r.start()
		r.say("begin")
		after(time.Hour)
		r.wants("noted", "re: tea")
		if limited != 0 {
			t.Error("the reminder could be turned away")
		}
	})
}

// counting counts reminders that a full inbox would turn away.
type counting struct {
	reminders
	limited *int
}

func (x counting) Remind(ctx context.Context, at claybot.Time, posting func(storage.Reminder) (storage.Posting, error)) (int, claybot.Time, error) {
	return x.reminders.Remind(ctx, at, func(r storage.Reminder) (storage.Posting, error) {
		p, err := posting(r)
		if p.MaxWaiting != 0 {
			*x.limited++
		}
		return p, err
	})
}

package agentsystem_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm/llmtest"
)

// A silent message waits for the next turn and makes none.
func TestSilentMessage(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.mind.plan("begin", startAll(false, "dig"), llmtest.Say("started"))
		r.mind.plan("dig", llmtest.Use(with("send_agent_message", obj{"text": "by the way", "to": "parent", "silent": true})), llmtest.Say("dug"))
		r.start()
		r.say("begin")
		after(time.Hour)
		r.wants("started")
		asked := len(r.mind.asked())
		r.restart()
		after(time.Hour)
		if n := len(r.mind.asked()); n != asked {
			t.Errorf("%d model calls for a silent message", n-asked)
		}
		r.say("next")
		after(time.Minute)
		r.wants("started", "re: next")
		if got := r.history(ann); !slices.Contains(got, "system_message by the way") {
			t.Errorf("history %q", got)
		}
		last := r.mind.asked()[len(r.mind.asked())-1]
		found := false
		for _, m := range last.Messages {
			found = found || strings.Contains(m.Content, "by the way")
		}
		if !found {
			t.Error("the next turn does not see it")
		}
	})
}

func TestNoReplyToAgents(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.mind.plan("begin", startAll(true, "dig"), llmtest.Say("started"))
		r.mind.plan("dig", llmtest.Say("sand"))
		r.mind.plan("sand", llmtest.Say("NO_REPLY"))
		r.start()
		r.say("begin")
		after(time.Hour)
		r.wants("started")
		if got := r.systemTexts(r.agent(ann), claybot.KindResult); len(got) != 1 {
			t.Errorf("results %q", got)
		}
	})
}

// Two agents that only write to each other are stopped, and the person hears of
// it once.
func TestAgentsTalkForEver(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.mind.plan("begin", startAll(false, "dig"), llmtest.Say("started"))
		r.mind.plan("dig", llmtest.Use(with("send_agent_message", obj{"text": "ping", "to": "parent"})), llmtest.Say("NO_REPLY"))
		r.mind.plan("pong", llmtest.Use(with("send_agent_message", obj{"text": "ping", "to": "parent"})), llmtest.Say("NO_REPLY"))
		r.start()
		r.say("begin")
		after(time.Second)
		child := string(r.children(ann)[0].ID)
		r.mind.plan("ping", llmtest.Use(with("send_agent_message", obj{"text": "pong", "to": child})), llmtest.Say("NO_REPLY"))
		r.say("wake up") // the first ping may have come before there was an answer to it
		r.mind.plan("go", llmtest.Use(with("send_agent_message", obj{"text": "pong", "to": child})), llmtest.Say("NO_REPLY"))
		r.say("go")
		after(5 * time.Hour)
		notices := 0
		for _, text := range r.chat.seen() {
			if strings.Contains(text, "without any message from you") {
				notices++
			}
		}
		if n := len(r.systemTexts(r.agent(ann), claybot.KindMessage)); n < 5 || n > 25 || notices != 1 {
			t.Errorf("%d messages, %d notices; people see %q", n, notices, r.chat.seen())
		}
	})
}

// One agent asks another and waits; the other's person hears nothing of it.
func TestAskAgent(t *testing.T) {
	t.Parallel()
	room := claybot.User("chat", "room", "ann")
	bubble(t, func(r *rig) {
		r.start()
		r.post(room, msg("hello", "hello"))
		after(time.Second)
		r.mind.plan("begin", llmtest.Use(with("ask_agent", obj{"to": string(r.agent(room)), "text": "what is up"})), llmtest.Say("I asked"))
		r.mind.plan("what is up", use("work"), llmtest.Say("the sky"))
		r.say("begin")
		after(time.Hour)
		r.wants("re: hello", "I asked")
		var a claybot.Result
		if err := json.Unmarshal([]byte(r.result(ann, "ask_agent").Text), &a); err != nil || !a.OK || a.Output != "the sky" || a.AgentID != r.agent(room) {
			t.Errorf("%v: %+v", err, a)
		}
	})
}

// No agent waits for an agent that waits for it.
func TestAskInCircles(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.mind.plan("begin", spawn("", "alpha"), llmtest.Say("all in"))
		r.mind.plan("alpha", llmtest.Use(with("ask_agent", obj{"to": "parent", "text": "why"})), llmtest.Say("no answer"))
		r.start()
		r.say("begin")
		after(time.Hour)
		r.wants("all in")
		child := r.children(ann)[0].ID
		records, err := r.agents.Records(r.Context(), child)
		if err != nil {
			t.Fatal(err)
		}
		refused := slices.ContainsFunc(records, func(rec claybot.Record) bool {
			return rec.Type == claybot.RecordTool && !rec.OK && strings.Contains(rec.Text, "waits for you already")
		})
		if !refused {
			t.Errorf("%+v", records)
		}
	})
}

// A reminder survives restarts and resets, and comes once, where it was asked
// for.
func TestReminder(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.mind.plan("begin", llmtest.Use(with("remind_me", obj{"in": "90m", "note": "tea"})), llmtest.Say("noted"))
		r.mind.plan("tea", llmtest.Say("it is time for tea"))
		r.start()
		m := msg("begin", "begin")
		m.Context.ThreadID = "t1"
		r.post(ann, m)
		after(time.Minute)
		r.post(ann, typed("reset", claybot.MessageReset, ""))
		after(time.Hour)
		r.crash()
		r.start()
		after(24 * time.Minute)
		if n := len(r.chat.seen()); n != 2 {
			t.Errorf("too early: %q", r.chat.seen())
		}
		after(10 * time.Minute)
		seen := r.chat.seen()
		if len(seen) != 3 || seen[2] != "it is time for tea" || r.chat.posts[2].out.Route.ThreadID != "t1" {
			t.Errorf("people see %q", seen)
		}
		after(24 * time.Hour)
		if n := len(r.chat.seen()); n != 3 {
			t.Errorf("again: %q", r.chat.seen())
		}
	})
}

// A reminder that became due while no process ran comes late, and says so.
func TestLateReminder(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.mind.plan("begin", llmtest.Use(with("remind_me", obj{"in": "1m", "note": "tea"}), with("remind_me", obj{"in": "2h", "note": "cake"})), llmtest.Say("noted"))
		r.start()
		r.say("begin")
		after(time.Second)
		r.crash()
		time.Sleep(time.Hour)
		r.start()
		after(time.Minute)
		got := r.systemTexts(r.agent(ann), claybot.KindReminder)
		if len(got) != 1 || !strings.HasPrefix(got[0], "tea") || !strings.Contains(got[0], "late: it was due at") {
			t.Errorf("reminders %q", got)
		}
	})
}

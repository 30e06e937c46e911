package agentsystem_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/profiles"
)

// A mute line edits, and shows nothing while a run works, like Slack.
type muteLine struct{ *line }

func (muteLine) Streaming(claybot.Route) connectors.Streaming { return streaming }

func mute(l *line) connectors.Connector { return muteLine{l} }

const (
	stillModel = "Still working: waiting for the model."
	stillWork  = "Still working: using work."
)

// slowModel makes the model take d before each answer.
func (r *rig) slowModel(d time.Duration) {
	r.mind.before = func(ctx context.Context, _ llm.Request) error { return rest(ctx, d) }
}

// A model that is silent for 15 s is reported once, and the answer takes the
// place of the report.
func TestStillWorking(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.line = mute
		r.slowModel(185 * time.Second)
		r.start()
		r.say("begin")
		after(14 * time.Second)
		r.wants()
		after(2 * time.Second)
		r.wants(stillModel)
		after(2 * time.Minute)
		r.wants(stillModel)
		if n := len(r.chat.sent()); n != 1 {
			t.Errorf("%d sends", n)
		}
		after(time.Minute)
		r.wants("re: begin")
		if n := len(r.chat.posts); n != 1 {
			t.Errorf("%d messages", n)
		}
	})
}

// A placeholderLine wants a message before the answer, as telegram.delivery: placeholder does.
type placeholderLine struct{ *line }

func (placeholderLine) Streaming(claybot.Route) connectors.Streaming {
	s := streaming
	s.First, s.Wait, s.Placeholder = 0, 0, true
	return s
}

// With placeholders (TG-30), a run for a person begins with a message, and its answer is an edit of it: after a
// long wait as after none. Tasks have none.
func TestPlaceholder(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.line = func(l *line) connectors.Connector { return placeholderLine{l} }
		r.slowModel(time.Minute)
		r.start()
		r.say("slow")
		after(100 * time.Millisecond)
		r.wants("Working…")
		after(20 * time.Second)
		r.wants(stillModel)
		after(time.Minute)
		r.wants("re: slow")
		r.slowModel(0)
		r.say("quick")
		after(time.Second)
		r.wants("re: slow", "re: quick")
		for i, p := range r.chat.posts {
			if p.edits == 0 {
				t.Errorf("message %d is no edit", i)
			}
		}
		r.post(ann, claybot.AgentMessage{ID: "due", Type: claybot.MessageSystem, Kind: claybot.KindReminder, Text: "due", At: claybot.Now()})
		after(time.Minute)
		if n := len(r.chat.posts); n != 3 || r.chat.posts[2].edits != 0 {
			t.Errorf("%d messages: %+v", n, r.chat.posts[n-1])
		}
	})
}

// What people of a group say to each other is no message that a placeholder answers: the agent may keep silent.
func TestNoPlaceholderAmongOthers(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.line = func(l *line) connectors.Connector { return placeholderLine{l} }
		r.mind.plan("aside", llmtest.Say("NO_REPLY"))
		r.profile.Respond = profiles.RespondAll
		r.start()
		m := msg("aside", "aside")
		m.Context.Group, m.Context.Unaddressed = true, true
		room := claybot.User("chat", "room", "ann")
		r.post(room, m)
		after(time.Minute)
		if run := r.receipt("aside").Run; run == nil || run.State != claybot.RunSucceeded {
			t.Errorf("the run is %+v", run)
		}
		if n := len(r.chat.posts); n != 0 {
			t.Errorf("people see %q", r.chat.seen())
		}
		m.ID, m.Text, m.Context.Unaddressed = "to you", "to you", false
		r.post(room, m)
		after(time.Minute)
		if n := len(r.chat.posts); n != 1 || r.chat.posts[0].edits == 0 {
			t.Errorf("people see %q", r.chat.seen())
		}
	})
}

// What a run says after a question has a placeholder of its own, and takes its place: both messages have ids of
// their own, as the outbox wants it.
func TestPlaceholderAfterAQuestion(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.line = func(l *line) connectors.Connector { return placeholderLine{l} }
		r.mind.plan("begin", askColour(nil), llmtest.Say("a fine colour"))
		r.slowModel(time.Minute)
		r.start()
		r.say("begin")
		after(2 * time.Minute)
		before := len(r.chat.seen())
		if before == 0 || r.chat.seen()[0] != "I need your input to continue." {
			t.Fatalf("people see %q", r.chat.seen())
		}
		r.say("red")
		after(5 * time.Second) // what is said of the answer comes first
		if got := r.chat.seen(); len(got) == before || got[len(got)-1] != "Working…" {
			t.Errorf("people see %q", got)
		}
		after(2 * time.Minute)
		if got := r.chat.seen(); len(got) != before+1 || got[0] != "I need your input to continue." || got[before] != "a fine colour" {
			t.Errorf("people see %q", got)
		}
		ids := make(map[string]bool)
		for _, x := range r.chat.sent() {
			if x.out.Edit == "" && ids[x.out.ID] {
				t.Errorf("two messages have the id %s", x.out.ID)
			}
			ids[x.out.ID] = ids[x.out.ID] || x.out.Edit == ""
		}
	})
}

// A person who sees a typing sign needs no other; nor does a task without a waiting person.
func TestStillWorkingIsNotNeeded(t *testing.T) {
	t.Parallel()
	t.Run("typing", func(t *testing.T) {
		bubble(t, func(r *rig) {
			r.line = streams
			r.slowModel(time.Minute)
			r.start()
			r.say("begin")
			after(50 * time.Second)
			r.wants()
		})
	})
	t.Run("no person waits", func(t *testing.T) {
		bubble(t, func(r *rig) {
			r.line = mute
			r.start()
			r.say("begin")
			r.wants("re: begin")
			r.slowModel(time.Minute)
			r.post(ann, claybot.AgentMessage{ID: "due", Type: claybot.MessageSystem, Kind: claybot.KindReminder, Text: "due", At: claybot.Now()})
			after(50 * time.Second)
			r.wants("re: begin")
		})
	})
	t.Run("quick", func(t *testing.T) {
		bubble(t, func(r *rig) {
			r.line = mute
			r.slowModel(14 * time.Second)
			r.start()
			r.say("begin")
			after(time.Minute)
			r.wants("re: begin")
			if p := r.chat.posts[0]; p.edits != 0 {
				t.Errorf("%d edits", p.edits)
			}
		})
	})
}

// A long tool step is named, also behind a text that is visible, which stays.
func TestStillWorkingOnATool(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]struct{ said, want string }{
		"nothing visible": {"", stillWork},
		"behind a text":   {"Let me have a look at this.", "Let me have a look at this.\n\n" + stillWork},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.line = mute
				r.mind.pace = time.Second
				first := use("work")
				first.Text = v.said
				r.mind.plan("begin", first, llmtest.Say(half1+half2))
				r.bench.work = func(ctx context.Context) { _ = rest(ctx, 18*time.Second) }
				r.start()
				r.say("begin")
				after(17500 * time.Millisecond)
				r.wants(v.want)
				after(time.Minute)
				r.wants(half1 + half2)
				if n := len(r.chat.posts); n != 1 {
					t.Errorf("%d messages", n)
				}
			})
		})
	}
}

// However a run ends, its sign of life does not stay.
func TestStillWorkingEnds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		plan []llmtest.Reply
		end  func(r *rig)
		want string
	}{
		{"silence", []llmtest.Reply{llmtest.Say("NO_REPLY")}, func(*rig) {}, "Done. I have nothing to add."},
		{"stop", []llmtest.Reply{llmtest.Say("x")}, func(r *rig) { r.post(ann, stop("s")) }, "*(stopped)*"},
		{"failure", []llmtest.Reply{{Err: &llm.Error{Class: llm.Permanent, Text: "no"}}}, func(*rig) {}, "The model refused this request"},
		{"silence after a text", []llmtest.Reply{
			{Response: llm.Response{Text: half1, Stop: llm.StopTools, Calls: use("work").Calls}}, llmtest.Say("NO_REPLY"),
		}, func(*rig) {}, strings.TrimSpace(half1)},
		{"question", []llmtest.Reply{askColour(nil)}, func(*rig) {}, "I need your input to continue."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.line = mute
				r.slowModel(20 * time.Second)
				r.mind.plan("begin", tt.plan...)
				r.bench.work = func(ctx context.Context) { _ = rest(ctx, 20*time.Second) }
				r.start()
				r.say("begin")
				after(17 * time.Second)
				r.wants(stillModel)
				tt.end(r)
				after(2 * time.Minute)
				got := r.chat.seen()
				if len(got) == 0 || !strings.Contains(got[0], tt.want) || slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, "Still working") }) {
					t.Errorf("people see %q, want %q", got, tt.want)
				}
			})
		})
	}
}

// A run that goes on after a crash does not repeat its sign of life, and ends in
// its place.
func TestStillWorkingSurvivesACrash(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"NO_REPLY": "Done. I have nothing to add.", half1 + half2: half1 + half2} {
		bubble(t, func(r *rig) {
			r.line = mute
			r.slowModel(time.Minute)
			r.mind.plan("begin", llmtest.Say(text))
			r.start()
			r.say("begin")
			after(20 * time.Second)
			r.crash()
			r.start()
			after(50 * time.Second)
			r.wants(stillModel)
			after(time.Minute)
			r.wants(want)
		})
	}
}

// Where texts between tool calls are messages of their own, so is the sign of
// life; it is said once.
func TestStillWorkingAsNotice(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.line = mute
		r.profile.Progress = true
		r.slowModel(time.Minute)
		r.start()
		r.say("begin")
		after(20 * time.Second)
		r.wants(stillModel)
		r.crash()
		r.start()
		after(10 * time.Minute)
		synctest.Wait()
		r.wants(stillModel, "re: begin")
	})
}

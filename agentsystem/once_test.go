package agentsystem_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/send"
)

// scheduled posts to a task, or to the heartbeat, whose output goes to a route.
func (r *rig) scheduled(d claybot.Descriptor, to claybot.Route, text string) {
	r.Helper()
	f := claybot.Firing{Task: d.UID, Instant: "t1"}
	m := claybot.AgentMessage{ID: f.MessageID(), Type: claybot.MessageSystem, Kind: claybot.KindCron, Text: text, Route: &to, Firing: &f}
	if d.Type == claybot.AgentHeartbeat {
		m.ID, m.Kind, m.Firing = "tick", claybot.KindHeartbeat, nil
	}
	r.post(d, m)
}

// TestOnce: the output of a task, and the answer of a run with side effects, are not sent
// again by themselves if their fate is unknown, also after a crash; the person is told so, and
// /resend sends them, once. Other answers, and notices, are sent again with a mark. The notice
// names /resend only where it sends the message again.
func TestOnce(t *testing.T) {
	t.Parallel()
	const failed = "The model refused this request; the operator can see why."
	var (
		here   = claybot.Route{Connector: "chat", ChannelID: "dm-ann"}
		heart  = claybot.Descriptor{Type: claybot.AgentHeartbeat}
		theirs = claybot.Descriptor{Type: claybot.AgentCron, UID: "abd", Owner: "chat/bob"}
		common = claybot.Descriptor{Type: claybot.AgentCron, UID: "abe"}
		bob    = claybot.User("chat", "dm-bob", "bob")
		tells  = func(r *rig) {
			a, err := r.agents.Agent(r.Context(), r.agent(bob))
			if err == nil {
				_, err = r.system.Output.SendMessage(r.Context(), tools.Env{Agent: a, Run: "r1", CallID: "c1"}, "chat:dm-ann", "hi")
			}
			if err != nil {
				r.Fatal(err)
			}
		}
		says = func(text string) func(*rig) { return func(r *rig) { r.say(text) } }
		runs = func(d claybot.Descriptor, to claybot.Route) func(*rig) {
			return func(r *rig) { r.scheduled(d, to, "count") }
		}
		once  = func(text string) []string { return []string{text, mayBeMissing, resending, text, resendNone} }
		twice = func(text string) []string { return []string{text, text, resendNone, resendNone} }
		never = func(text string) []string { return []string{text, maybeLost, resendNone, resendNone} }
		other = func(user string) claybot.Route { to := here; to.UserID = user; return to }
	)
	for name, tt := range map[string]struct {
		notice bool // the platform's policy is to send nothing again
		crash  bool
		work   time.Duration
		act    func(r *rig)
		want   []string
	}{
		"an answer":           {act: says("a"), want: twice("re: a")},
		"a tool that reads":   {act: says("look"), want: twice("seen")},
		"a tool that acts":    {act: says("pay"), want: once("paid")},
		"it acts, and died":   {act: says("pay"), crash: true, want: once("paid")},
		"it died acting":      {act: says("work"), work: time.Minute, crash: true, want: once("worked")},
		"it acts, then fails": {act: says("break"), want: twice(failed)},

		"a task":                  {act: runs(task, here), want: once("counted")},
		"a task, killed":          {act: runs(task, here), crash: true, want: once("counted")},
		"a task that fails":       {act: func(r *rig) { r.fire("t1", "fail") }, want: twice("The scheduled task “Count” failed. " + failed)},
		"a task that writes":      {act: func(r *rig) { r.fire("t1", "write") }, want: once("WRITTEN")},
		"a task of another":       {act: runs(theirs, here), want: never("counted")},
		"the heartbeat":           {act: runs(heart, here), want: once("counted")},
		"a task without an owner": {act: runs(common, here), want: once("counted")},
		"for this person":         {act: runs(common, other("ann")), want: once("counted")},
		"for another person":      {act: runs(common, other("bob")), want: []string{"counted", mayBeMissing, resendNone, resendNone}},

		"no repeats":           {notice: true, act: says("a"), want: []string{mayBeMissing, resending, "re: a", resendNone}},
		"answer of a command":  {notice: true, act: func(r *rig) { r.post(ann, command("h", "tasks")) }, want: []string{maybeLost, resendNone, resendNone}},
		"a message of another": {notice: true, act: tells, want: []string{maybeLost, resendNone, resendNone}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.line = func(l *line) connectors.Connector { return resendingLine{l, !tt.notice} }
				r.profile.SendTo = []string{"chat:dm-ann"}
				r.more = func(s *agentsystem.AgentSystem) []tools.Tool { return send.Tools(s.Output, nil) }
				r.bench.work = func(ctx context.Context) { _ = rest(ctx, tt.work) }
				for key, plan := range map[string][]llmtest.Reply{
					"count": {llmtest.Say("counted")}, "look": {use("look"), llmtest.Say("seen")}, "pay": {use("pay"), llmtest.Say("paid")},
					"work": {use("work"), llmtest.Say("worked")}, "break": {use("pay"), fails}, "fail": {fails},
					"write": {calling("send_message", `{"text":"WRITTEN"}`), llmtest.Say("NO_REPLY")},
				} {
					r.mind.plan(key, plan...)
				}
				r.start()
				r.say("hello")
				synctest.Wait()
				r.post(bob, msg("hello bob", "hello"))
				synctest.Wait()
				if tt.notice {
					r.chat.will(cut)
				} else {
					r.chat.will(lost)
				}
				tt.act(r)
				if tt.crash {
					synctest.Wait()
					r.crash()
					r.start()
				}
				after(10 * time.Minute)
				for _, id := range []string{"c", "c2"} {
					r.post(ann, command(id, "resend"))
					after(time.Minute)
				}
				got := r.chat.seen("dm-ann")
				if want := append([]string{"re: hello"}, tt.want...); strings.Join(got, "\n") != strings.Join(want, "\n") {
					r.Errorf("people see %q, want %q", got, want)
				}
				for _, s := range r.chat.sent()[1:] {
					if first := tt.want[0]; s.out.Copies > 0 && s.out.Text == first && !s.out.Resent {
						r.Errorf("a copy without a mark: %+v", s.out)
					}
				}
			})
		})
	}
}

// TestOnceIsKept: what must not be sent twice by itself must not either where it is sent in
// another way, or by a tool of a task.
func TestOnceIsKept(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("b", 10*partLimit+1)
	for name, tt := range map[string]struct {
		act  func(r *rig)
		kept func(o claybot.Outgoing) bool
		n    int
	}{
		"on another route": {func(r *rig) {
			r.chat.will(refused(true))
			r.say("pay")
		}, func(o claybot.Outgoing) bool { return strings.HasPrefix(o.ID, "rerouted/") }, 1},
		"refused as a file": {func(r *rig) {
			r.chat.judge = func(o claybot.Outgoing) verdict {
				if o.File != nil {
					return refused(false)
				}
				return verdict{}
			}
			r.say("long")
		}, func(o claybot.Outgoing) bool { return strings.HasPrefix(o.ID, "again/") }, 11},
		"a file of a task": {
			func(r *rig) { r.fire("t1", "file") },
			func(o claybot.Outgoing) bool { return strings.HasPrefix(o.ID, "file/") }, 5,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clouded(t, func(r *rig, _ *cloud) {
				r.linked()
				r.withWorkspace()("a.txt", "alpha")
				r.mind.plan("pay", use("pay"), llmtest.Say("paid"))
				r.mind.plan("long", use("pay"), llmtest.Say(long))
				r.mind.plan("file", calling("send_file", `{"path":"a.txt","caption":"`+long[:1900]+`"}`), llmtest.Say("NO_REPLY"))
				r.start()
				r.post(claybot.User("other", "ann2", "ann2"), msg("hello", "hello"))
				synctest.Wait()
				tt.act(r)
				after(time.Minute)
				all, err := r.db.OutgoingPage(r.Context(), storage.OutgoingQuery{Limit: 100})
				if err != nil {
					t.Fatal(err)
				}
				n := 0
				for _, o := range all {
					if tt.kept(o) {
						if n++; !o.Once {
							t.Errorf("%s may be sent twice by itself", o.ID)
						}
					}
				}
				if n != tt.n {
					t.Errorf("%d messages, want %d", n, tt.n)
				}
			})
		})
	}
}

package agentsystem_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/people"
)

// room is where Bob wrote last.
var room = claybot.User("chat", "room", "bob")

// payment is a confirm that approvers answer; none: the agent's own person.
func payment(text string, approvers ...string) askedFor {
	return askedFor{Question: claybot.Question{
		Key: text, Text: text, Type: claybot.QuestionConfirm, Required: true, Tool: "pay", Digest: "d", Approvers: approvers,
	}, Wait: time.Hour}
}

// asksFor makes a run of d ask, and returns what it asks, by key.
func (r *rig) asksFor(d claybot.Descriptor, id string, qs ...askedFor) map[string]claybot.Question {
	r.Helper()
	text, err := json.Marshal(qs)
	if err != nil {
		r.Fatal(err)
	}
	r.post(d, msg(id, string(text)))
	synctest.Wait()
	open, err := r.system.Questions.Answers.OpenQuestions(r.Context(), r.agent(d))
	if err != nil {
		r.Fatal(err)
	}
	all := make(map[string]claybot.Question)
	for _, q := range open {
		all[q.Key] = q.Question
	}
	return all
}

// press answers a question by a button and returns what the user who pressed it reads.
func (r *rig) press(by claybot.Descriptor, question, value string, more ...func(*connectors.Press)) connectors.PressResult {
	r.Helper()
	t := connectors.Press{Connector: by.Connector, UserID: by.UserID, ChannelID: by.ChannelID, Answer: claybot.Answer{Question: question, Text: value}}
	for _, f := range more {
		f(&t)
	}
	got, err := r.system.Answer(r.Context(), t)
	if err != nil {
		r.Fatal(err)
	}
	synctest.Wait()
	return got
}

// shows requires that the n-th message in a channel tells an end, and takes no
// answer any more.
func (r *rig) shows(channel string, n int, end string) {
	r.Helper()
	synctest.Wait()
	seen := r.chat.seen(channel)
	if n >= len(seen) || !strings.Contains(seen[n], end) || strings.Contains(seen[n], "*Answer ") {
		r.Errorf("in %s people see %q, want %q in message %d", channel, seen, end, n)
	}
}

// wantsIn compares how the messages begin that people see in a channel.
func (r *rig) wantsIn(channel string, texts ...string) {
	r.Helper()
	synctest.Wait()
	if got := r.chat.seen(channel); !slices.EqualFunc(got, texts, strings.HasPrefix) {
		r.Errorf("in %s people see %q, want %q", channel, got, texts)
	}
}

// approving starts a rig whose runs ask what their messages say, and lets Bob
// write in two places.
func (r *rig) approving() {
	r.Helper()
	r.line = platforms[0].line
	r.engine = engineFunc(asks)
	r.start()
	r.post(bob, msg("hi", "hi"))
	synctest.Wait()
	time.Sleep(time.Second)
	r.post(room, msg("hello", "hello"))
	synctest.Wait()
}

const (
	othersDecide = "I'm waiting for approval by `Ann`" // as the user bob is called in these tests
	alsoDecides  = "**Pay?**\n\n*Answer with `/approve "
)

var refusal = connectors.PressResult{Text: "This question is not for you."}

// An approver is asked where they wrote last. Only the answers of approvers count,
// and every place shows what came of it.
func TestApproverIsAskedInHisChat(t *testing.T) {
	t.Parallel()
	eve := claybot.User("chat", "dm-eve", "eve")
	for _, tt := range []struct {
		name, ends, told string
		act              func(r *rig, id string)
	}{
		{"approved", "\n\napproved *(answered", "true/button/chat/bob", func(r *rig, id string) {
			if got := r.press(room, id, "approve"); !got.OK {
				r.Errorf("got %+v", got)
			}
		}},
		{"denied from his other chat", "\n\ndenied: too dear *(answered", "false/button/chat/bob", func(r *rig, id string) {
			if got := r.press(bob, id, "deny", func(t *connectors.Press) { t.Answer.Reason = "too dear" }); !got.OK {
				r.Errorf("got %+v", got)
			}
		}},
		{"by an operator", "\n\napproved *(answered on the page", "true/web/operator", func(r *rig, id string) {
			if err := r.system.Questions.Answers.AnswerQuestion(r.Context(), id, claybot.Answer{Text: "approve", By: "operator", Via: claybot.ViaWeb}); err != nil {
				r.Error(err)
			}
		}},
		{"stopped", "*(no longer needs an answer)*", "", func(r *rig, _ string) {
			r.post(ann, typed("stop", claybot.MessageCancel, ""))
		}},
		{"no answer", "\n\ndenied *(no answer in time", "false/default/", func(*rig, string) { after(2 * time.Hour) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.approving()
				id := r.asksFor(ann, "begin", payment("Pay?", "chat/bob"))["Pay?"].ID
				r.wantsIn("dm-ann", othersDecide)
				r.wantsIn("room", "re: hello", alsoDecides)
				r.wantsIn("dm-bob", "re: hi")
				for _, d := range []claybot.Descriptor{ann, eve} {
					if got := r.press(d, id, "approve"); got != refusal {
						t.Errorf("%s reads %+v", d.UserID, got)
					}
				}
				if got := r.press(room, id, "perhaps"); !got.Again || got.OK {
					t.Errorf("perhaps: %+v", got)
				}
				if tt.name == "approved" {
					r.crash()
					r.start()
				}
				tt.act(r, id)
				synctest.Wait()
				r.shows("dm-ann", 0, tt.ends)
				r.shows("room", 1, tt.ends)
				if got := r.press(room, id, "deny"); got.OK || got.Again || got == refusal {
					t.Errorf("a second press: %+v", got)
				}
				if got := r.history(ann); tt.told != "" && got[len(got)-1] != "assistant_message told Pay?="+tt.told {
					t.Errorf("history is %q, want %q told", got, tt.told)
				}
				r.checkEvents(ann)
			})
		})
	}
}

// One of several decides; the others read what he did. What his own person types
// is an answer only where he may give one.
func TestSeveralApprovers(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.approving()
		qs := r.asksFor(ann, "begin", payment("Pay?", "chat/bob", "chat/ann", "chat/zed"), payment("Also?", "chat/bob"))
		if n := len(r.chat.seen("dm-ann")); n != 2 {
			t.Fatalf("ann sees %q", r.chat.seen("dm-ann"))
		}
		r.wantsIn("room", "re: hello", alsoDecides, "**Also?**")
		r.say("approve")
		if got := r.press(room, qs["Pay?"].ID, "deny"); got != (connectors.PressResult{Text: "This question has already been answered: yes"}) {
			t.Errorf("bob reads %+v", got)
		}
		r.say("of course") // nothing is open that she may answer
		synctest.Wait()
		if rec := r.receipt("of course"); rec.Skipped != "" || rec.Run != nil {
			t.Errorf("the text was %q, in run %v", rec.Skipped, rec.Run)
		}
		if got := r.press(bob, qs["Also?"].ID, "approve"); !got.OK {
			t.Errorf("bob reads %+v", got)
		}
		after(time.Second)
		if got := r.history(ann); !slices.Contains(got, "assistant_message told Pay?=true/text/chat/ann Also?=true/button/chat/bob") || got[len(got)-1] != "assistant_message re: of course" {
			t.Errorf("history is %q", got)
		}
		r.shows("room", 1, "approved *(answered in the chat")
		r.shows("room", 2, "approved *(answered")
	})
}

// What an agent in the background asks comes to its owner, where he wrote last;
// where he never did, the agent hears that no person can be asked.
func TestBackgroundApproval(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.approving()
		text, err := json.Marshal([]askedFor{payment("Pay?")})
		if err != nil {
			t.Fatal(err)
		}
		r.fire("t1", string(text))
		synctest.Wait()
		f := claybot.Firing{Task: "abc", Instant: "t1"}
		if run := r.receipt(f.MessageID()).Run; run == nil || run.State != claybot.RunFailed {
			t.Errorf("no person to ask: %+v", run)
		}
		r.post(ann, msg("hey", "hey"))
		after(time.Second)
		before := len(r.chat.seen("dm-ann"))
		r.fire("t2", string(text))
		synctest.Wait()
		seen := r.chat.seen("dm-ann")[before:]
		if len(seen) != 1 || !strings.HasPrefix(seen[0], alsoDecides) {
			t.Fatalf("ann sees %q", seen)
		}
		open, err := r.system.Questions.Answers.OpenQuestions(r.Context(), "")
		if err != nil || len(open) != 1 {
			t.Fatalf("open are %v, %v", open, err)
		}
		if got := r.press(room, open[0].ID, "approve"); got != refusal {
			t.Errorf("bob reads %+v", got)
		}
		r.restart()
		if got := r.press(ann, open[0].ID, "approve"); !got.OK {
			t.Errorf("ann reads %+v", got)
		}
		f.Instant = "t2"
		if run := r.receipt(f.MessageID()).Run; run == nil || run.State != claybot.RunSucceeded || run.Output != "told Pay?=true/button/chat/ann" {
			t.Errorf("the run is %+v", run)
		}
		r.shows("dm-ann", before, "approved *(answered")
	})
}

// Who may not speak to claybot at all reads the same as anybody else, and so
// does an approver who was let in no more.
func TestStrangerPresses(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.approving()
		id := r.asksFor(ann, "begin", payment("Pay?", "chat/bob"))["Pay?"].ID
		r.mu.Lock()
		r.access = people.Access{Mode: people.AccessAllowlist}
		r.mu.Unlock()
		for _, question := range []string{id, "none"} {
			if got := r.press(room, question, "approve"); got != refusal {
				t.Errorf("%s: bob reads %+v", question, got)
			}
		}
		if open := r.open(); len(open) != 1 {
			t.Errorf("open are %v", open)
		}
	})
}

// An outsider who lost their own access answers nothing, although the channel has access.
func TestOutsiderPresses(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.approving()
		q := r.asksFor(ann, "begin", payment("Pay?", "chat/bob"))["Pay?"]
		for _, allow := range [][]string{{"chat:" + room.ChannelID}, {"chat:" + room.ChannelID, "chat:bob"}} {
			r.mu.Lock()
			r.access = people.Access{Mode: people.AccessAllowlist, Allow: allow}
			r.mu.Unlock()
			got := r.press(room, q.ID, "approve", func(t *connectors.Press) { t.Outsider = true })
			if got.OK != (len(allow) > 1) || !got.OK && got != refusal {
				t.Errorf("with %q: bob reads %+v", allow, got)
			}
		}
	})
}

// Always writes a rule for the agent; nothing else does.
func TestApprovedAlways(t *testing.T) {
	t.Parallel()
	for scope, want := range map[claybot.ApprovalScope][]string{
		claybot.ApproveOnce: nil, claybot.ApproveSession: nil, claybot.ApproveAlways: {"pay"},
	} {
		for _, value := range []string{"approve", "deny"} {
			bubble(t, func(r *rig) {
				r.approving()
				for _, id := range []string{"one", "two"} {
					q := r.asksFor(ann, id, payment("Pay?"))["Pay?"]
					if got := r.press(ann, q.ID, value, func(t *connectors.Press) { t.Answer.Scope = scope }); !got.OK {
						t.Errorf("ann reads %+v", got)
					}
				}
				if value == "deny" {
					want = nil
				}
				r.restart()
				if got := r.system.Profiles.OwnSettings(r.agent(ann)).Approved; !slices.Equal(got, want) {
					t.Errorf("%q, %s: approved are %q, want %q", scope, value, got, want)
				}
			})
		}
	}
}

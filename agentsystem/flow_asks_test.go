package agentsystem_test

import (
	"slices"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/runs/flow"
	"github.com/claybot/claybot/storage"
)

// What a workflow asked and what has ended takes no answer any more in any chat: it shows the answer that was
// given elsewhere, or that none came in time, also when the run goes on.
func TestEndedQuestionsOfFlows(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, kind, end, then string
		act                   func(r *rig, id string)
	}{
		{"answered elsewhere", "confirm", "approved *(answered, by chat/bob)*", "paid", func(r *rig, id string) { r.press(bob, id, "yes") }},
		{"an approval expired", "confirm", "*(no answer in time)*", "late", func(*rig, string) { after(2 * time.Hour) }},
		{"a choice expired", "select, options: [cash, card]", "*(no answer in time)*", "late", func(*rig, string) { after(2 * time.Hour) }},
		{"a text expired", "text", "*(no answer in time)*", "late", func(*rig, string) { after(2 * time.Hour) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.line = platforms[0].line
				r.workflows(map[string]string{"order": `
owner: chat/ann
start: pay
nodes:
  pay: {kind: ask, text: "Pay?", type: ` + tt.kind + `, by: [chat/ann, chat/bob], expires: 1h, next: done, expired: late}
  done: {kind: reply, text: paid, next: slow}
  late: {kind: reply, text: late, next: slow}
  slow: {kind: wait, for: 20d, next: END}
`})
				r.start()
				r.post(bob, msg("hi", "hi"))
				after(time.Second)
				r.post(ann, msg("o1", "order tea"))
				after(10 * time.Second)
				open, err := r.system.Questions.Answers.OpenQuestions(r.Context(), "")
				if err != nil || len(open) != 1 {
					r.Fatal(open, err)
				}
				tt.act(r, open[0].ID)
				after(time.Minute)
				if got := r.chat.seen(ann.ChannelID); len(got) != 2 || got[1] != tt.then {
					r.Errorf("ann sees %q", got)
				}
				r.shows(ann.ChannelID, 0, tt.end)
				r.shows(bob.ChannelID, 1, tt.end)
			})
		})
	}
}

// What a run of a workflow says last by a reply is the output of the run.
func TestOutputOfFlowThatReplies(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.workflows(map[string]string{"order": `
owner: chat/ann
start: first
nodes:
  first: {kind: reply, text: first, next: last}
  last: {kind: reply, text: "got {{ trigger.text }}", next: quiet}
  quiet: {kind: template, value: 7, next: END}
`})
		r.start()
		r.say("order tea")
		after(time.Minute)
		if run := r.receipt("order tea").Run; run == nil || run.State != claybot.RunSucceeded || run.Output != "got order tea" {
			r.Errorf("the run is %+v", run)
		}
		if got := r.chat.seen(); !slices.Equal(got, []string{"first", "got order tea"}) {
			r.Errorf("ann sees %q", got)
		}
	})
}

// A live replay of a run that sent a reply to one chat, and not to the next one, sends it only there.
func TestReplayOfPartlySentReply(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		all := map[string]string{"order": `
owner: chat/ann
start: tell
nodes:
  tell: {kind: reply, text: "tea is here", to: [chat/one, gone/two], next: END}
`}
		r.workflows(all)
		r.start()
		r.say("order tea")
		after(time.Minute)
		x := r.receipt("order tea")
		if x.Run == nil || x.Run.State != claybot.RunFailed || !slices.Equal(r.sees("one"), []string{"tea is here"}) {
			r.Fatalf("the run is %+v, one sees %q", x.Run, r.sees("one"))
		}
		r.flows.(shelf)["order"].Nodes[0].Spec.(*flows.Reply).To[1] = "chat/two"
		m := x.Message
		m.ID, m.Flow.Replay = "again", &claybot.FlowReplay{Run: x.Run.ID}
		r.post(claybot.Descriptor{Type: claybot.AgentFlow, UID: "again", Owner: "chat/ann", Name: "order"}, m)
		after(time.Minute)
		if y := r.receipt("again"); y.Run == nil || y.Run.State != claybot.RunSucceeded {
			r.Errorf("the replay is %+v", y.Run)
		}
		for _, chat := range []string{"one", "two"} {
			if got := r.sees(chat); !slices.Equal(got, []string{"tea is here"}) {
				r.Errorf("%s sees %q", chat, got)
			}
		}
	})
}

// What a run sent is kept for a time. A live replay sends nothing again of which it cannot know any more where it went.
func TestReplayOfForgottenReply(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.workflows(map[string]string{"order": `
owner: chat/ann
start: tell
nodes:
  tell: {kind: reply, text: "tea is here", to: [chat/one, gone/two], next: END}
`})
		r.start()
		r.say("order tea")
		after(keptReplies + time.Hour)
		if err := r.db.Prune(r.Context(), time.Now(), storage.Retention{Outgoing: keptReplies}); err != nil {
			r.Fatal(err)
		}
		x := r.receipt("order tea")
		m := x.Message
		m.ID, m.Flow.Replay = "again", &claybot.FlowReplay{Run: x.Run.ID}
		r.post(claybot.Descriptor{Type: claybot.AgentFlow, UID: "again", Owner: "chat/ann", Name: "order"}, m)
		after(time.Minute)
		if y := r.receipt("again"); y.Run == nil || y.Run.Error == nil || y.Run.Error.Code != flow.CodeUnknown {
			r.Errorf("the replay is %+v", y.Run)
		}
		if got := r.sees("one"); !slices.Equal(got, []string{"tea is here"}) {
			r.Errorf("one sees %q", got)
		}
	})
}

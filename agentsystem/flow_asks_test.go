package agentsystem_test

import (
	"testing"
	"time"
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

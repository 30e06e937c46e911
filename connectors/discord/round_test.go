package discord

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors/discord/discordtest"
)

const answerAll = "Answer all…"

func bound(x float64) *float64 { return &x }

// trip are questions of five types.
func trip() []claybot.Question {
	return []claybot.Question{
		{ID: "q1", Text: "**Where** to?", Type: claybot.QuestionText, Required: true},
		{ID: "q2", Text: "How many people are going to come along with you this time?", Type: claybot.QuestionNumber, Min: bound(2), Required: true},
		{ID: "q3", Text: "By what?", Type: claybot.QuestionSelect, Options: []string{"train", "ship"}, Required: true, Default: "ship"},
		{ID: "q4", Text: "Which meals?", Type: claybot.QuestionMultiselect, Options: []string{"lunch", "dinner"}},
		{ID: "q5", Text: "By night?", Type: claybot.QuestionBoolean, Required: true},
	}
}

// askRound sends the questions of a round and returns the id of the last message.
func (b *bot) askRound(t *testing.T, qs ...claybot.Question) (last string) {
	t.Helper()
	b.inbox.asked = qs
	for i, q := range qs {
		if err := q.Valid(); err != nil {
			t.Fatal(err)
		}
		o := out("question/"+q.ID, q.Text)
		o.Question = &q
		if i == len(qs)-1 {
			o.Round = qs
		}
		receipt, err := b.conn.Send(b.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if m := b.Sent(directID(1))[i]; slices.Contains(m.Buttons(), answerAll) != (i == len(qs)-1) {
			t.Errorf("message %d has %q", i, m.Buttons())
		}
		last = receipt
	}
	return last
}

// opened presses a button and returns the form that it opens.
func (b *bot) opened(t *testing.T, message, label string) []discordtest.Field {
	t.Helper()
	if err := b.Press(directID(1), userID(1), message, label); err != nil {
		t.Fatal(err)
	}
	b.pass(time.Second)
	return b.Form(userID(1))
}

func (b *bot) fill(t *testing.T, values map[string][]string) {
	t.Helper()
	if err := b.Fill(userID(1), values); err != nil {
		t.Fatal(err)
	}
	b.pass(time.Second)
}

// One form takes the answers to all questions of a round: what does not fit is said, and asked again; what was answered before is asked no more; what cannot be stored is sent again.
func TestRound(t *testing.T) {
	t.Parallel()
	inBubble(t, discordtest.Config{}, func(b *bot) {
		b.start()
		b.say("plan a trip")
		b.pass(time.Second)
		last := b.askRound(t, trip()...)
		_ = b.end()
		b.start() // which remembers nothing
		b.pass(time.Second)
		form := b.opened(t, last, answerAll)
		if len(form) != 5 || form[0].Label != "Where to?" || !form[0].Required || !strings.HasSuffix(form[1].Label, "…") ||
			form[1].Description != "How many people are going to come along with you this time?" ||
			!slices.Equal(form[2].Options, []string{"train", "ship"}) || form[3].Required || !slices.Equal(form[4].Options, []string{"Yes", "No"}) {
			t.Fatalf("the form is %+v", form)
		}
		values := map[string][]string{"Where to?": {"oslo"}, form[1].Label: {"1"}, "By night?": {"No"}}
		b.inbox.fill(true)
		b.fill(t, values)
		if n := b.Unanswered(); n != 1 || len(b.inbox.taken) != 0 {
			t.Errorf("%d interactions are not acknowledged, answers %v", n, b.inbox.taken)
		}
		b.inbox.fill(false)
		b.fill(t, values)
		if got := b.Whispers(userID(1)); len(got) != 1 || !strings.Contains(got[0], form[1].Description) || strings.Contains(got[0], "Where to?") {
			t.Errorf("the user reads %q", got)
		}
		if again := b.opened(t, last, answerAll); len(again) != 1 || again[0].Label != form[1].Label {
			t.Errorf("the form is %+v", again)
		}
		b.fill(t, map[string][]string{form[1].Label: {"3"}})
		got := make(map[string]string)
		for id, a := range b.inbox.taken {
			got[id] = string(a.Value)
		}
		if want := map[string]string{"q1": `"oslo"`, "q2": "3", "q3": `"ship"`, "q4": "null", "q5": "false"}; !maps.Equal(got, want) {
			t.Errorf("answers %v, want %v", got, want)
		}
		if form := b.opened(t, last, answerAll); form != nil {
			t.Errorf("the form of an answered round is %+v", form)
		}
		if got := b.Whispers(userID(1)); len(got) != 2 || got[1] != "This question is closed." {
			t.Errorf("the user reads %q", got)
		}
	})
}

// Others in a channel see the button; the form is for the person who is asked.
func TestRoundOfOthers(t *testing.T) {
	t.Parallel()
	inBubble(t, discordtest.Config{}, func(b *bot) {
		b.start()
		b.say("plan a trip")
		b.pass(time.Second)
		last := b.askRound(t, trip()...)
		if err := b.Press(directID(1), userID(2), last, answerAll); err != nil {
			t.Fatal(err)
		}
		b.pass(time.Second)
		if got := b.Whispers(userID(2)); b.Form(userID(2)) != nil || len(got) != 1 || b.Unanswered() != 0 {
			t.Errorf("another user reads %q, and has the form %+v", got, b.Form(userID(2)))
		}
	})
}

// What was answered elsewhere while the form was open stays, and the others are taken.
func TestRoundAnsweredMeanwhile(t *testing.T) {
	t.Parallel()
	inBubble(t, discordtest.Config{}, func(b *bot) {
		b.start()
		b.say("plan a trip")
		b.pass(time.Second)
		qs := []claybot.Question{trip()[0], trip()[3]}
		last := b.askRound(t, qs...)
		b.opened(t, last, answerAll)
		b.inbox.mu.Lock()
		_, _ = b.inbox.take(claybot.Answer{Question: "q1", Text: "bergen"})
		b.inbox.mu.Unlock()
		b.fill(t, map[string][]string{"Where to?": {"oslo"}, "Which meals?": {"dinner", "lunch"}})
		if a := b.inbox.taken; string(a["q1"].Value) != `"bergen"` || string(a["q4"].Value) != `["lunch","dinner"]` || b.Unanswered() != 0 || len(b.Whispers(userID(1))) != 0 {
			t.Errorf("answers %v, the user reads %q", a, b.Whispers(userID(1)))
		}
		b.opened(t, last, answerAll)
		if got := b.Whispers(userID(1)); len(got) != 1 {
			t.Errorf("the user reads %q", got)
		}
	})
}

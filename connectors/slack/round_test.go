package slack

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors/slack/slacktest"
)

// askRound sends the questions of a round and returns the ts of their messages.
func (w *world) askRound(t *testing.T, channel string, qs ...claybot.Question) (all []string) {
	t.Helper()
	for i, q := range qs {
		if err := q.Valid(); err != nil {
			t.Fatal(err)
		}
		w.inbox.asked(q)
		o := outgoing(channel, "", q.Text)
		o.ID, o.Question = "question/"+q.ID+"/1", &q
		if i == len(qs)-1 {
			o.Round = qs
		}
		ts, err := w.Send(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, ts)
	}
	return all
}

// trip are questions of five types.
func trip() []claybot.Question {
	return []claybot.Question{
		{ID: "q1", Text: "Where to?", Type: claybot.QuestionText, Required: true},
		{ID: "q2", Text: "How many people?", Type: claybot.QuestionNumber, Min: bound(2), Required: true},
		{ID: "q3", Text: "Which day?", Type: claybot.QuestionDate, Required: true},
		{ID: "q4", Text: "By what?", Type: claybot.QuestionSelect, Options: []string{"train", "ship"}, Required: true},
		{ID: "q5", Text: "Anything else?", Type: claybot.QuestionTextarea},
	}
}

const answerAll = "Answer all…"

// One form takes the answers to all questions of a round: what does not fit is said at its input, what was
// answered before stays as it is, and what is not stored is sent again.
func TestRound(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.start(t)
		channel, _ := w.slack.DM("U1", "hi")
		asked := w.askRound(t, channel, trip()...)
		for _, ts := range asked[:4] {
			if _, err := w.slack.Click("U1", channel, ts, answerAll); err == nil {
				t.Errorf("message %s has the button, which is for the last one", ts)
			}
		}
		w.restart(t) // nothing is remembered
		v := w.modal(t, "U1", channel, asked[4], answerAll)
		var labels []string
		for _, in := range v.Inputs {
			labels = append(labels, in.Label)
		}
		if want := []string{"Where to?", "How many people?", "Which day?", "By what?", "Anything else?"}; v.Title != "Questions" || !slices.Equal(labels, want) {
			t.Fatalf("the form is %+v", v)
		}
		w.click(t, "U1", channel, asked[3], "ship") // with the form open
		full := errors.New("no space left")
		w.inbox.decide(func(context.Context) error { return full })
		values := map[string]any{"Where to?": "Oslo", "How many people?": "2", "Which day?": "2026-12-01", "By what?": []string{"train"}}
		if _, err := w.slack.Submit(t.Context(), v.ID, values); !errors.Is(err, slacktest.ErrNoAnswer) {
			t.Errorf("sent: %v", err)
		}
		w.inbox.decide(nil)
		w.inbox.asked(claybot.Question{ID: "q1", Type: claybot.QuestionText, Required: true, Format: "[a-z]+"})
		got, err := w.slack.Submit(t.Context(), v.ID, values)
		if err != nil || len(got.Errors) != 1 || got.Errors[v.Inputs[0].Block] == "" {
			t.Fatalf("sent: %+v, %v", got, err)
		}
		values["Where to?"] = "oslo"
		if got, err := w.slack.Submit(t.Context(), v.ID, values); err != nil || !got.Closed {
			t.Errorf("sent again: %+v, %v", got, err)
		}
		synctest.Wait()
		for id, want := range map[string]string{"q1": `"oslo"`, "q2": "2", "q3": `"2026-12-01"`, "q4": `"ship"`, "q5": "null"} {
			if a, _ := w.inbox.answer(id); string(a.Value) != want {
				t.Errorf("%s: %+v, want %s", id, a, want)
			}
		}
		v = w.modal(t, "U1", channel, asked[4], answerAll)
		if got, err := w.slack.Submit(t.Context(), v.ID, values); err != nil || got.View == nil || got.View.Text != "Already answered." {
			t.Errorf("the form of an answered round became %+v, %v", got, err)
		}
	})
}

// A round that a button cannot carry has no such button: first the options go, which people write then.
func TestRoundThatDoesNotFit(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.start(t)
		channel, _ := w.slack.DM("U1", "hi")
		qs := trip()[3:]
		qs[0].Options = manyOptions(40, 60)
		asked := w.askRound(t, channel, qs...)
		v := w.modal(t, "U1", channel, asked[1], answerAll)
		if in := v.Inputs[0]; in.Type != "plain_text_input" || in.Hint == "" {
			t.Errorf("the input is %+v", in)
		}
		qs[1].Text = strings.Repeat("long ", 398)
		asked = w.askRound(t, channel, qs...)
		if _, err := w.slack.Click("U1", channel, asked[1], answerAll); err == nil {
			t.Error("a round that does not fit has a button")
		}
		w.modal(t, "U1", channel, asked[1], "Answer…")
	})
}

// The labels of a form have the words of the questions without the marks of Markdown, which Slack would show.
func TestRoundLabels(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.start(t)
		channel, _ := w.slack.DM("U1", "hi")
		asked := w.askRound(t, channel,
			claybot.Question{ID: "q1", Text: "**Where** to, see [the map](https://example.org)?", Type: claybot.QuestionText},
			claybot.Question{ID: "q2", Text: "2 * 3 < 7?", Type: claybot.QuestionText})
		for i, want := range []string{"Where to, see the map (https://example.org)?", "2 * 3 < 7?"} {
			if got := w.modal(t, "U1", channel, asked[1], answerAll).Inputs[i].Label; got != want {
				t.Errorf("the label is %q, want %q", got, want)
			}
		}
	})
}

// A question of yes or no has a menu in the form of a round, with its default, as has one with options.
func TestRoundYesOrNo(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.start(t)
		channel, _ := w.slack.DM("U1", "hi")
		asked := w.askRound(t, channel,
			claybot.Question{ID: "q1", Text: "Window seat?", Type: claybot.QuestionBoolean, Required: true},
			claybot.Question{ID: "q2", Text: "Lunch?", Type: claybot.QuestionBoolean, Default: "no"},
			claybot.Question{ID: "q3", Text: "Luggage?", Type: claybot.QuestionBoolean},
			claybot.Question{ID: "q4", Text: "By what?", Type: claybot.QuestionSelect, Options: []string{"train", "ship"}, Default: "ship"})
		v := w.modal(t, "U1", channel, asked[3], answerAll)
		for _, in := range v.Inputs {
			if in.Type != "static_select" {
				t.Errorf("the input is %+v", in)
			}
		}
		if got, err := w.slack.Submit(t.Context(), v.ID, map[string]any{"Window seat?": []string{"Yes"}}); err != nil || !got.Closed {
			t.Fatalf("sent: %+v, %v", got, err)
		}
		synctest.Wait()
		for id, want := range map[string]string{"q1": "true", "q2": "false", "q3": "null", "q4": `"ship"`} {
			if a, _ := w.inbox.answer(id); string(a.Value) != want {
				t.Errorf("%s: %+v, want %s", id, a, want)
			}
		}
	})
}

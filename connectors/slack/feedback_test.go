package slack

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors/slack/slacktest"
	"github.com/claybot/claybot/texts"
)

// withFeedback runs a test with feedback buttons, but not in C9.
func withFeedback(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.cfg.Feedback = func(to claybot.Descriptor) bool { return to.ChannelID != "T1/C9" }
		w.Connector = New(w.cfg)
		w.start(t)
		test(t, w)
	})
}

// Final replies have feedback buttons, and no other message. A press is a reaction of the person
// in place of the opposite one, who is thanked; a stranger's press says nothing to them.
func TestFeedbackButtons(t *testing.T) {
	withFeedback(t, func(t *testing.T, w *world) {
		w.inbox.strangers = []string{"U2"}
		w.slack.DM("U1", "hi")
		w.settled(t)
		reply := claybot.Outgoing{ID: "o1", Kind: claybot.OutgoingAnswer, Run: "r1", Part: 1, Parts: 1, Text: "hello", Route: outgoing("DU1", "", "").Route}
		ts, err := w.Send(t.Context(), reply)
		must(t, err)
		for i, change := range []func(o *claybot.Outgoing){
			func(o *claybot.Outgoing) { o.Kind = claybot.OutgoingNotice },
			func(o *claybot.Outgoing) { o.Kind = claybot.OutgoingCommand },
			func(o *claybot.Outgoing) { o.Progress = true },
			func(o *claybot.Outgoing) { o.Parts = 2 },
			func(o *claybot.Outgoing) { o.Question = &claybot.Question{ID: "q", Type: claybot.QuestionBoolean} },
		} {
			o := reply
			o.ID = fmt.Sprint("other", i)
			change(&o)
			other, err := w.Send(t.Context(), o)
			must(t, err)
			if _, err := w.slack.Rate("U1", "DU1", other, "👍"); err == nil {
				t.Errorf("%+v has feedback buttons", o)
			}
		}
		w.slack.Open("C9", "channel")
		elsewhere := reply
		elsewhere.ID, elsewhere.Route = "elsewhere", outgoing("C9", "", "").Route
		other, err := w.Send(t.Context(), elsewhere)
		must(t, err)
		if _, err := w.slack.Rate("U1", "C9", other, "👍"); err == nil {
			t.Error("feedback buttons where none is taken")
		}
		for _, press := range [][2]string{{"U1", "👍"}, {"U1", "👎"}, {"U2", "👎"}, {"T2/U3", "👍"}} {
			if _, err := w.slack.Rate(press[0], "DU1", ts, press[1]); err != nil {
				t.Error(err)
			}
			w.settled(t)
			synctest.Wait()
		}
		up, down := "[👍 +1 thumbsup] by ", "[👎 -1 thumbsdown] by "
		want := []string{
			"-" + down + "U1 of=false group=false outsider=false", "+" + up + "U1 of=false group=false outsider=false",
			"-" + up + "U1 of=false group=false outsider=false", "+" + down + "U1 of=false group=false outsider=false",
			"-" + up + "U2 of=false group=false outsider=false", "+" + down + "U2 of=false group=false outsider=false",
			"-" + down + "T2/U3 of=false group=false outsider=true", "+" + up + "T2/U3 of=false group=false outsider=true",
		}
		if got := w.inbox.news(); !slices.Equal(got, want) {
			t.Errorf("reactions %q, want %q", got, want)
		}
		if thanked := w.slack.Whispers("U1"); len(thanked) != 2 || len(w.slack.Whispers("U2"))+len(w.slack.Whispers("U3")) != 0 {
			t.Errorf("thanked %+v", thanked)
		}
		w.inbox.unrated = true
		if _, err := w.slack.Rate("U1", "DU1", ts, "👍"); err != nil {
			t.Error(err)
		}
		w.settled(t)
		synctest.Wait()
		if said := w.slack.Whispers("U1"); len(said) != 3 || said[2].Text != texts.FeedbackNotTaken {
			t.Errorf("said %+v", said)
		}
	})
}

// A press that cannot be stored comes again; buttons stand below a stream as well, and an answer
// whose blocks Slack refuses is sent without them.
func TestFeedbackFaults(t *testing.T) {
	withFeedback(t, func(t *testing.T, w *world) {
		g := w.grow(t, "C1", "U1", "o1")
		g.o.Run = "r1"
		must(t, g.step(3), g.end("word word word."))
		w.inbox.refuses = 3
		if _, err := w.slack.Rate("U1", "C1", g.o.Edit, "👎"); err != nil {
			t.Fatal(err)
		}
		w.settled(t)
		if got := w.inbox.news(); len(got) != 2 {
			t.Errorf("reactions %q", got)
		}
		w.whole(t, "C1", "word word word.")
		w.slack.Fail(methodPost, slacktest.Fault{Error: "invalid_blocks"})
		o := outgoing("C1", g.o.Route.ThreadID, "hello")
		o.Kind, o.Run = claybot.OutgoingAnswer, "r2"
		_, err := w.Send(t.Context(), o)
		must(t, err)
	})
}

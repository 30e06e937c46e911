package slack

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/slack/slacktest"
)

// An offer says its command for the user who pressed it, where the message stands.
func TestOffers(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.start(t)
		dm, _ := w.slack.DM("U1", "hi")
		root := w.slack.Mention("C1", "U1", "hi", false)
		w.settled(t)
		heard := len(w.inbox.all())
		for _, c := range []struct{ channel, thread, user, want string }{
			{dm, "", "U1", ""},
			{"C1", root, "U2", root},
			{"C1", "", "T9/U3", "itself"},
		} {
			o := outgoing(c.channel, c.thread, "Done.")
			o.Offer = []claybot.Offer{{Label: "Undo & more", Command: "/status <run> & more"}, {Label: "", Command: "/x"}, {Label: "Say", Command: "/nothing known"}}
			ts, err := w.Send(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if m := w.message(t, c.channel, ts); !slices.Equal(m.Buttons(), []string{"Undo & more", "Say"}) || m.Shown() != "Done." {
				t.Errorf("sent %+v", m)
			}
			thread := c.want
			if thread == "itself" {
				thread = ts
			}
			// The store fails first, and Slack redelivers the button press.
			failures := 0
			w.inbox.before = func(context.Context, claybot.AgentMessage) error {
				if failures++; failures < 9 {
					return errors.New("no space left")
				}
				return nil
			}
			w.click(t, c.user, c.channel, ts, "Undo & more")
			w.inbox.before = nil
			got := w.inbox.all()[heard:]
			heard += len(got)
			if len(got) != 1 {
				t.Fatalf("%+v", got)
			}
			m, to := got[0].message, claybot.User("slack", "T1/"+c.channel, c.user)
			m.Context.Channel = "" // not in question here
			if got[0].to != to || m.Type != claybot.MessageCommand || m.Command != "status" || m.Text != "<run> & more" || m.From.UserID != c.user ||
				m.Context != (claybot.MessageContext{ThreadID: thread, Group: c.channel == "C1"}) || !strings.HasPrefix(string(m.ID), "slack/T1/tap/"+c.channel+"/"+ts+"/") {
				t.Errorf("said %+v", got[0])
			}
			w.click(t, c.user, c.channel, ts, "Say")
			w.click(t, c.user, c.channel, ts, "Say")
			got = w.inbox.all()[heard:]
			heard += len(got)
			if len(got) != 2 || got[0].message.Text != "/nothing known" || got[0].message.Command != connectors.Unknown || got[0].message.ID == got[1].message.ID {
				t.Errorf("said %+v", got)
			}
		}
	})
}

// Below a direct message an answer stays flat, even when the message has
// replies.
func TestOfferBelowAParent(t *testing.T) {
	payload := func(channel string) []byte {
		return []byte(`{"type":"block_actions","team":{"id":"T1"},"user":{"id":"U1","team_id":"T1"},"channel":{"id":"` + channel +
			`"},"message":{"ts":"1.5","thread_ts":"1.5"},"actions":[{"action_id":"offer/0","value":"\"/status\"","action_ts":"9.9"}]}`)
	}
	for channel, want := range map[string]string{"D1": "", "C1": "1.5"} {
		press, ok := readPress("slack", me, payload(channel))
		if !ok || press.in.message.Context.ThreadID != want || press.in.message.ID != claybot.MessageID("slack/T1/tap/"+channel+"/1.5/U1/9.9") {
			t.Errorf("%s: %+v, %v", channel, press, ok)
		}
	}
}

// Where Slack takes no blocks the text goes out alone, and can be answered by
// writing.
func TestWithoutBlocks(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		channel, _ := w.slack.DM("U1", "hi")
		q := claybot.Question{ID: "q1", Type: claybot.QuestionBoolean, Text: "**Really?**"}
		for _, code := range []string{"invalid_blocks", "msg_blocks_too_long"} {
			w.slack.Fail(methodPost, slacktest.Fault{Error: code})
			m := w.message(t, channel, w.ask(t, channel, "", q))
			if len(m.Blocks) != 0 || m.Text != "*Really?*" {
				t.Errorf("%s: sent %+v", code, m)
			}
		}
		ts := w.ask(t, channel, "", q)
		o := outgoing(channel, "", "**Really?**")
		o.Edit, o.Question = ts, &q
		w.slack.Fail(methodUpdate, slacktest.Fault{Error: "invalid_blocks"})
		if _, err := w.Send(t.Context(), o); err != nil || len(w.message(t, channel, ts).Blocks) != 0 {
			t.Errorf("edit: %v, %+v", err, w.message(t, channel, ts))
		}
		// Questions that fit into no form.
		for _, q := range []claybot.Question{
			{ID: strings.Repeat("q", 300), Type: claybot.QuestionConfirm},
			{Type: claybot.QuestionConfirm},
			{ID: "q2", Type: claybot.QuestionText, Min: bound(3001)},
			{ID: "q2", Type: "riddle", Default: strings.Repeat("x", 3000), Placeholder: "\n", Options: []string{strings.Repeat("x", 5000)}},
		} {
			o := outgoing(channel, "", "Well?")
			o.Question = &q
			ts, err := w.Send(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			m := w.message(t, channel, ts)
			if q.Type == "riddle" {
				if !slices.Equal(m.Buttons(), []string{"Answer…"}) {
					t.Errorf("%+v", m)
				}
			} else if len(m.Blocks) != 0 || m.Text != "Well?" {
				t.Errorf("%+v became %+v", q, m)
			}
		}
	})
}

// Long texts are cut into sections that show all of it.
func TestLongQuestion(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		channel, _ := w.slack.DM("U1", "hi")
		text := "Run this?\n\n```sh\n" + strings.Repeat("echo 'a < b && c > d' # é\n", 130) + "```"
		for _, part := range w.Split(text) {
			o := outgoing(channel, "", part)
			o.Resent, o.Question = true, &claybot.Question{ID: "q1", Type: claybot.QuestionConfirm, Tool: "shell"}
			ts, err := w.Send(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			m := w.message(t, channel, ts)
			if n := strings.Count(m.Shown(), "echo"); len(m.Blocks) < 2 || n != strings.Count(part, "echo") || n != strings.Count(m.Text, "echo") || !strings.Contains(m.Shown(), "sent again") {
				t.Errorf("%d blocks show %d of %d lines", len(m.Blocks), n, strings.Count(part, "echo"))
			}
			for _, b := range m.Blocks[:len(m.Blocks)-1] {
				if b["expand"] != true {
					t.Errorf("a part is folded up: %v", b)
				}
			}
			if want := []string{"Approve", "Deny", "Approve for this session", "Deny with a reason…"}; !slices.Equal(m.Buttons(), want) {
				t.Errorf("buttons %q", m.Buttons())
			}
		}
	})
}

// What is approved for one action alone has no button for more.
func TestApproveOnce(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		channel, _ := w.slack.DM("U1", "hi")
		o := outgoing(channel, "", "Pay?")
		o.Question = &claybot.Question{ID: "q1", Type: claybot.QuestionConfirm, Tool: "pay", Once: true}
		ts, err := w.Send(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := w.message(t, channel, ts).Buttons(), []string{"Approve", "Deny", "Deny with a reason…"}; !slices.Equal(got, want) {
			t.Errorf("buttons %q, want %q", got, want)
		}
	})
}

// A question whose answer was lost on the way is found, and asked once.
func TestFindQuestion(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		channel, _ := w.slack.DM("U1", "hi")
		for _, q := range []claybot.Question{
			{ID: "q1", Type: claybot.QuestionConfirm},
			{ID: "q2", Type: claybot.QuestionSelect, Options: manyOptions(9, 99)},
			{ID: "q3", Type: claybot.QuestionDate},
		} {
			o := outgoing(channel, "", "Well?")
			o.ID, o.Question, o.Offer = q.ID, &q, []claybot.Offer{{Label: "Why", Command: "/why"}}
			w.slack.Fail(methodPost, slacktest.Fault{Lost: true})
			var a *connectors.AmbiguousError
			if _, err := w.Send(t.Context(), o); !errors.As(err, &a) {
				t.Fatal(err)
			}
			if ts, found, err := w.Find(t.Context(), o); err != nil || !found || len(w.message(t, channel, ts).Blocks) != 3 {
				t.Errorf("%s: found %q, %v, %v", q.ID, ts, found, err)
			}
		}
		if w.slack.Duplicates() != 0 {
			t.Error("posted twice")
		}
	})
}

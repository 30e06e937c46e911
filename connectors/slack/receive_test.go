package slack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors/slack/slacktest"
)

func TestReceive(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.start(t)
		_, dm := w.slack.DM("U1", "hello &amp; <https://example.com|example>")
		root := w.slack.Mention("C1", "U2", "what is up?", false)
		reply := w.slack.Write(slacktest.Post{Channel: "C1", User: "U2", Text: "and <@UBOT> now?", Thread: root})
		w.slack.Say("", "C1", "U2", "among ourselves")
		bot := w.slack.Write(slacktest.Post{Channel: "DU1", User: "U9", BotID: "B9", Text: "another bot"})
		w.slack.Write(slacktest.Post{Channel: "DU1", User: "U1", Text: "edited", Subtype: "message_changed"})
		w.slack.Slash("C1", "U2", "/claybot", "status")
		w.slack.Envelope("interactive", map[string]string{"type": "block_actions"})
		w.settled(t)

		want := map[string]incoming{
			"hello & example (https://example.com)": {to: claybot.User("slack", "T1/DU1", "U1"), message: claybot.AgentMessage{
				ID: claybot.MessageID("slack/T1/DU1/" + dm), Type: claybot.MessageUser, Context: claybot.MessageContext{MessageID: dm},
			}},
			"what is up?": {to: claybot.User("slack", "T1/C1", "U2"), message: claybot.AgentMessage{
				ID: claybot.MessageID("slack/T1/C1/" + root), Type: claybot.MessageUser,
				Context: claybot.MessageContext{MessageID: root, ThreadID: root, Group: true, Channel: "#c1"},
			}},
			"and @claybot now?": {to: claybot.User("slack", "T1/C1", "U2"), message: claybot.AgentMessage{
				ID: claybot.MessageID("slack/T1/C1/" + reply), Type: claybot.MessageUser,
				Context: claybot.MessageContext{MessageID: reply, ThreadID: root, Group: true, Channel: "#c1"},
			}},
			"another bot": {to: claybot.User("slack", "T1/DU1", "B9"), message: claybot.AgentMessage{
				Type: claybot.MessageUser, ID: claybot.MessageID("slack/T1/DU1/" + bot), Context: claybot.MessageContext{MessageID: bot},
			}},
			"": {to: claybot.User("slack", "T1/C1", "U2"), message: claybot.AgentMessage{
				Type: claybot.MessageCommand, Command: "status", Context: claybot.MessageContext{Group: true, Channel: "#c1"},
			}},
		}
		got := w.inbox.all()
		if len(got) != len(want) {
			t.Errorf("%d messages, want %d: %q", len(got), len(want), w.inbox.texts())
		}
		for _, in := range got {
			x, ok := want[in.message.Text]
			m := in.message
			if m.Type == claybot.MessageCommand {
				x.message.ID = m.ID
			}
			if !ok || in.to != x.to || m.ID != x.message.ID || m.Type != x.message.Type || m.Context != x.message.Context || m.Command != x.message.Command || m.Keys != nil {
				t.Errorf("got %+v\nwant %+v", in, x)
			}
			if age := time.Since(m.At.Time()); age < 0 || age > time.Minute {
				t.Errorf("%q is %v old", m.Text, age)
			}
		}
		if n := w.Ignored(); n != 1 {
			t.Errorf("%d ignored, want the interactive one", n)
		}
	})
}

// A mention comes as two events of one post; both orders, and far apart, make
// one message.
func TestMentionPair(t *testing.T) {
	for _, first := range []bool{false, true} {
		inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
			w.start(t)
			w.slack.Mention("C1", "U1", "once", first)
			w.settled(t)
			if got := w.inbox.texts(); !slices.Equal(got, []string{"once"}) || w.inbox.posts != 2 {
				t.Errorf("mention first %v: %q from %d posts, want one message from two", first, got, w.inbox.posts)
			}
		})
	}
}

func TestOwnPostsAreIgnored(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.start(t)
		channel, _ := w.slack.DM("U1", "hi")
		w.settled(t)
		ts, err := w.Send(t.Context(), outgoing(channel, "", "hello <@UBOT>"))
		if err != nil {
			t.Fatal(err)
		}
		o := outgoing(channel, "", "hello again")
		o.Edit = ts
		if _, err := w.Send(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		w.settled(t)
		if got := w.inbox.texts(); !slices.Equal(got, []string{"hi"}) {
			t.Errorf("messages %q, want only the person's", got)
		}
		if n := len(w.slack.Acks()); n != 3 {
			t.Errorf("%d acknowledgements, want 3", n)
		}
	})
}

// A slow store delays the acknowledgements of one person in one channel, and
// no others.
func TestAckAfterPost(t *testing.T) {
	inWorld(t, slacktest.Config{Redeliver: time.Hour}, func(t *testing.T, w *world) {
		release := make(chan struct{})
		w.inbox.before = func(ctx context.Context, m claybot.AgentMessage) error {
			if m.Context.MessageID != "" && m.Text == "slow" {
				<-release
			}
			return nil
		}
		w.start(t)
		w.slack.DM("U1", "slow")
		w.slack.DM("U1", "behind")
		for i := range 50 {
			w.slack.DM(fmt.Sprintf("V%d", i), "quick")
		}
		synctest.Wait()
		if n := len(w.slack.Acks()); n != 50 {
			t.Errorf("%d acknowledgements while one post is under way, want 50", n)
		}
		close(release)
		w.settled(t)
		got := w.inbox.texts()
		if slices.Index(got, "slow") > slices.Index(got, "behind") {
			t.Errorf("order %q", got)
		}
	})
}

// What cannot be stored is not acknowledged, is tried again, comes again when
// that takes long, and overtakes nothing.
func TestStoreFails(t *testing.T) {
	for _, outage := range []time.Duration{time.Second, 20 * time.Second} {
		inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
			began := time.Now()
			w.inbox.before = func(context.Context, claybot.AgentMessage) error {
				if time.Since(began) < outage {
					return errors.New("no space left")
				}
				return nil
			}
			w.start(t)
			for i := range 5 {
				w.slack.DM("U1", fmt.Sprint(i))
			}
			time.Sleep(outage - time.Millisecond)
			if n := len(w.slack.Acks()); n != 0 {
				t.Errorf("%d acknowledgements of messages that were not stored", n)
			}
			w.settled(t)
			if got, want := w.inbox.texts(), []string{"0", "1", "2", "3", "4"}; !slices.Equal(got, want) {
				t.Errorf("outage of %v: stored %q, want %q", outage, got, want)
			}
		})
	}
}

package slack

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors/slack/slacktest"
)

// What happens to the bot in a channel, and to the channel, reaches the handler, in public
// and private channels; what other members do does not.
func TestMembershipChanges(t *testing.T) {
	for _, kind := range []string{slacktest.Public, slacktest.Private} {
		for name, c := range map[string]struct {
			do   func(s *slacktest.Server)
			want []string
		}{
			"removed":         {func(s *slacktest.Server) { s.Leave("C1", true) }, []string{"T1/C1: the bot was removed from the channel"}},
			"removed, added":  {func(s *slacktest.Server) { s.Leave("C1", true); s.Leave("C1", false) }, []string{"T1/C1: the bot was removed from the channel", "T1/C1: "}},
			"archived":        {func(s *slacktest.Server) { s.Archive("C1") }, []string{"T1/C1: the channel was archived"}},
			"archived, back":  {func(s *slacktest.Server) { s.Archive("C1"); s.Unarchive("C1") }, []string{"T1/C1: the channel was archived", "T1/C1: "}},
			"deleted":         {func(s *slacktest.Server) { s.Remove("C1") }, []string{"T1/C1: the channel was deleted"}},
			"a new id":        {func(s *slacktest.Server) { s.Rename("C1", "C9") }, []string{"T1/C1 > T1/C9"}},
			"another joins":   {func(s *slacktest.Server) { s.Join("C1", "U2") }, nil},
			"a direct chat":   {func(s *slacktest.Server) { s.Open("D1", slacktest.Direct); s.Leave("D1", true); s.Archive("D1") }, nil},
			"of another kind": {func(s *slacktest.Server) { s.Open("G7", slacktest.Group); s.Leave("G7", true); s.Archive("G7") }, nil},
		} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
					w.start(t)
					w.slack.Open("C1", kind)
					c.do(w.slack)
					w.settled(t)
					if got := w.inbox.news(); !slices.Equal(got, c.want) {
						t.Errorf("got %q, want %q", got, c.want)
					}
				})
			})
		}
	}
}

// A change that cannot be stored is not acknowledged; Slack delivers it again.
func TestMembershipChangeIsKept(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.inbox.refuses = 20
		w.start(t)
		w.slack.Archive("C1")
		time.Sleep(2 * time.Second)
		if len(w.slack.Unacked()) != 1 {
			t.Error("acknowledged before it was stored")
		}
		w.settled(t)
		if got := w.inbox.news(); !slices.Equal(got, []string{"T1/C1: the channel was archived"}) {
			t.Errorf("got %q", got)
		}
	})
}

// An app without the scopes gets no changes, and works as before.
func TestMembershipWithoutScopes(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.slack.Lack("channels:read", true)
		w.slack.Lack("groups:read", true)
		w.start(t)
		w.slack.Archive("C1")
		w.slack.Leave("C2", true)
		w.slack.Leave("C2", false)
		w.slack.Mention("C2", "U1", "hello", false)
		w.settled(t)
		if got := w.inbox.news(); len(got) > 0 || !slices.Equal(w.inbox.texts(), []string{"hello"}) {
			t.Errorf("changes %q, messages %q", got, w.inbox.texts())
		}
		if h := w.Health(); !strings.Contains(h.Err, "channels:read, groups:read") {
			t.Errorf("%+v", h)
		}
	})
}

// Only what Slack says of this bot, in this workspace, counts; nothing that is malformed stops
// the connector.
func TestForeignMembership(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.start(t)
		type object = map[string]any
		mine := []object{{"team_id": "T1", "user_id": "UBOT", "is_bot": true}}
		for _, e := range []object{
			{"team_id": "T2", "authorizations": mine, "event": object{"type": "channel_archive", "channel": "C1", "event_ts": "1.000001"}},
			{"team_id": "T2", "authorizations": mine, "event": object{"type": "app_uninstalled"}},
			{"team_id": "T2", "authorizations": mine, "event": object{"type": "tokens_revoked", "tokens": object{"bot": []string{"UBOT"}}}},
			{"team_id": "T1", "authorizations": []object{{"team_id": "T1", "user_id": "U1"}}, "event": object{"type": "channel_left", "channel": "C1", "event_ts": "1.000001"}},
			{"team_id": "T1", "event": object{"type": "group_left", "channel": "C1", "event_ts": "1.000001"}},
			{"team_id": "T1", "authorizations": mine, "event": object{"type": "member_joined_channel", "user": "U2", "channel": "C1", "event_ts": "1.000001"}},
			{"team_id": "T1", "authorizations": mine, "event": object{"type": "channel_deleted", "channel": "T2/C1", "event_ts": "1.000001"}},
			{"team_id": "T1", "authorizations": mine, "event": object{"type": "channel_deleted", "channel": object{"id": "C1"}, "event_ts": "1.000001"}},
			{"team_id": "T1", "authorizations": mine, "event": object{"type": "channel_deleted", "channel": "C1"}},
			{"team_id": "T1", "authorizations": mine, "event": object{"type": "channel_id_changed", "old_channel_id": "C1", "event_ts": "1.000001"}},
			{"team_id": "T1", "authorizations": mine, "event": object{"type": "message", "subtype": "channel_archive", "channel": "C1", "user": "U1", "ts": "1.000001"}},
		} {
			w.slack.Envelope("events_api", e)
		}
		w.settled(t)
		w.slack.DM("U1", "still there")
		w.settled(t)
		if got := w.inbox.news(); len(got) > 0 || !slices.Equal(w.inbox.texts(), []string{"still there"}) {
			t.Errorf("changes %q, messages %q", got, w.inbox.texts())
		}
	})
}

// A channel that becomes private, public again or shared with another workspace keeps its id: the
// conversations in it go on, the message that Slack writes about it is none of them, people of the
// other workspace are outsiders with ids of their own, and the bot hears of the end of its membership
// by the event of the present kind.
func TestConvertedChannel(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.start(t)
		w.slack.Open("C1", slacktest.Public)
		root := w.slack.Mention("C1", "U1", "when it was public", false)
		says := func(text string) {
			t.Helper()
			w.slack.Mention("C1", "U1", text, false)
			w.slack.Write(slacktest.Post{Channel: "C1", User: "U1", Thread: root, Text: "<@UBOT> " + text + ", in the thread", Mention: true})
			w.settled(t)
			o := outgoing("C1", root, "reply: "+text)
			o.ID = text
			if _, err := w.Send(t.Context(), o); err != nil {
				t.Errorf("%s: %v", text, err)
			}
			if got := w.channelName(t.Context(), "C1"); got != "#c1" {
				t.Errorf("%s: it is called %q", text, got)
			}
		}
		w.slack.Convert("C1", slacktest.Private)
		says("now private")
		w.slack.Convert("C1", slacktest.Public)
		says("public again")
		w.slack.Share("C1", true)
		says("now shared")
		w.slack.Write(slacktest.Post{Channel: "C1", User: "U1", UserTeam: "T2", Text: "<@UBOT> from outside", Mention: true})
		w.settled(t)
		w.slack.Share("C1", false)
		w.slack.Convert("C1", slacktest.Private)
		w.slack.Leave("C1", true)
		w.slack.Leave("C1", false)
		says("added again")
		var texts []string
		for _, in := range w.inbox.all() {
			texts = append(texts, in.message.Text)
			user, outside := "U1", in.message.Text == "from outside"
			if outside {
				user = "T2/U1"
			}
			if in.to != claybot.User("slack", "T1/C1", user) || in.message.From.Outsider != outside || !in.message.Context.Group {
				t.Errorf("%q for %+v from %+v", in.message.Text, in.to, in.message.From)
			}
		}
		want := []string{
			"when it was public", "now private", "now private, in the thread", "public again", "public again, in the thread",
			"now shared", "now shared, in the thread", "from outside", "added again", "added again, in the thread",
		}
		if !slices.Equal(texts, want) {
			t.Errorf("got %q, want %q", texts, want)
		}
		if got := w.inbox.news(); !slices.Equal(got, []string{"T1/C1: the bot was removed from the channel", "T1/C1: "}) {
			t.Errorf("changes %q", got)
		}
		if n := len(w.slack.Posted("C1")); n != 4 {
			t.Errorf("%d replies", n)
		}
	})
}

package slack

import (
	"slices"
	"strings"
	"testing"
	"time"

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

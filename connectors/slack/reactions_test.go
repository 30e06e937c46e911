package slack

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors/slack/slacktest"
)

// Reactions of people to messages of the bot, and to their own, reach the handler; those of
// the bot, of other bots and to messages of others do not. Guests and users of other
// workspaces are told apart in channels.
func TestReactions(t *testing.T) {
	for name, c := range map[string]struct {
		by, emoji string
		own       bool // on a message of U1; otherwise of the bot
		direct    bool
		want      string
	}{
		"a thumb":                {by: "U1", emoji: "+1", want: "+[👍 +1 thumbsup] by U1 of=false group=true outsider=false"},
		"by its other name":      {by: "U1", emoji: "thumbsup", want: "+[👍 +1 thumbsup] by U1 of=false group=true outsider=false"},
		"with a tone of skin":    {by: "U1", emoji: "-1::skin-tone-3", want: "+[👎 -1 thumbsdown] by U1 of=false group=true outsider=false"},
		"a stop":                 {by: "U1", emoji: "octagonal_sign", want: "+[🛑 octagonal_sign] by U1 of=false group=true outsider=false"},
		"of the workspace alone": {by: "U1", emoji: "party-parrot", want: "+[party-parrot] by U1 of=false group=true outsider=false"},
		"on one's own":           {by: "U1", emoji: "x", own: true, want: "+[❌ x] by U1 of=true group=true outsider=false"},
		"on that of another":     {by: "U2", emoji: "x", own: true},
		"in a direct chat":       {by: "U1", emoji: "x", direct: true, want: "+[❌ x] by U1 of=false group=false outsider=false"},
		"of a guest":             {by: "UGUEST", emoji: "x", want: "+[❌ x] by UGUEST of=false group=true outsider=true"},
		"of another workspace":   {by: "UOTHER", emoji: "x", want: "+[❌ x] by T9/UOTHER of=false group=true outsider=true"},
		"of another bot":         {by: "UBOT2", emoji: "x"},
		"of Slackbot":            {by: "USLACKBOT", emoji: "x"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
				w.slack.SetUser(slacktest.User{ID: "UGUEST", Restricted: true})
				w.slack.SetUser(slacktest.User{ID: "UOTHER", Team: "T9", Stranger: true})
				w.slack.SetUser(slacktest.User{ID: "UBOT2", Bot: true})
				w.start(t)
				channel := "C1"
				if c.direct {
					channel = "D1"
					w.slack.Open(channel, slacktest.Direct)
				} else {
					w.slack.Open(channel, slacktest.Public)
				}
				to := claybot.Route{Connector: "slack", ChannelID: "T1/" + channel}
				ts, err := w.Send(t.Context(), claybot.Outgoing{ID: "o1", Route: to, Text: "an answer", Part: 1, Parts: 1})
				if err != nil {
					t.Fatal(err)
				}
				if c.own {
					ts = w.slack.Write(slacktest.Post{Channel: "C1", User: "U1", Text: "a message"})
				}
				if !w.slack.React(channel, ts, c.by, c.emoji, false) || !w.slack.React(channel, ts, c.by, c.emoji, true) {
					t.Fatalf("no message %s", ts)
				}
				if err := w.React(t.Context(), to, ts, "👀"); err != nil { // the bot's own
					t.Error(err)
				}
				w.settled(t)
				var want []string
				if c.want != "" {
					want = []string{c.want, "-" + strings.TrimPrefix(c.want, "+")}
				}
				if got := w.inbox.news(); !slices.Equal(got, want) {
					t.Errorf("got %q, want %q", got, want)
				}
			})
		})
	}
}

// A reaction that cannot be stored is not acknowledged; Slack delivers it again.
func TestReactionIsKept(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.inbox.refuses = 20
		w.start(t)
		channel, ts := w.slack.DM("U1", "hi")
		w.slack.React(channel, ts, "U1", "x", false)
		time.Sleep(2 * time.Second)
		if len(w.slack.Unacked()) != 1 {
			t.Error("acknowledged before it was stored")
		}
		w.settled(t)
		if got := w.inbox.news(); len(got) != 1 {
			t.Errorf("got %q", got)
		}
	})
}

// The example of the page decodes as what it says, and what is not a reaction to a message is
// none: docs.slack.dev/reference/events/reaction_added, read 2026-11-28.
func TestReactionShapes(t *testing.T) {
	self := identity{Team: "T123ABC456", User: "U222222222", Name: "claybot"}
	const page = `{"token":"XXYYZZ","team_id":"T123ABC456","api_app_id":"A123ABC456","event":{"type":"reaction_added","user":"U123ABC456",
		"reaction":"thumbsup","item_user":"U222222222","item":{"type":"message","channel":"C123ABC456","ts":"1360782400.498405","channel_type":"channel"},
		"event_ts":"1360782804.083113"},"type":"event_callback","event_id":"Ev123ABC456","event_time":123456789}`
	for name, c := range map[string]struct {
		old, new string
		want     verdict
	}{
		"as on the page":     {"", "", reacted},
		"no author":          {`"item_user":"U222222222",`, "", reacted}, // "messages of incoming webhooks"
		"of another author":  {`"item_user":"U222222222"`, `"item_user":"U3"`, nothing},
		"on a file":          {`"type":"message","channel"`, `"type":"file","channel"`, nothing},
		"without a channel":  {`"channel":"C123ABC456"`, `"channel":""`, unknown},
		"without a message":  {`"ts":"1360782400.498405"`, `"ts":""`, unknown},
		"without an emoji":   {`"thumbsup"`, `""`, unknown},
		"a removed one":      {"reaction_added", "reaction_removed", reacted},
		"of the bot":         {`"user":"U123ABC456"`, `"user":"U222222222"`, nothing},
		"of another channel": {"C123ABC456", "C1/2", unknown},
	} {
		t.Run(name, func(t *testing.T) {
			payload := strings.ReplaceAll(page, c.old, c.new)
			if c.old == "" {
				payload = page
			}
			in, got := read("slack", self, frame{Type: "events_api", Payload: []byte(payload)})
			if got != c.want {
				t.Fatalf("got %d, want %d", got, c.want)
			}
			if x := in.reaction; got == reacted && (x.ChannelID != "T123ABC456/C123ABC456" || x.UserID != "U123ABC456" || x.Message != "1360782400.498405" ||
				x.Removed != strings.Contains(payload, "removed") || x.At != 1360782804083) {
				t.Errorf("got %+v", x)
			}
		})
	}
}

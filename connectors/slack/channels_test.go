package slack

import (
	"testing"
	"time"

	"github.com/claybot/claybot/connectors/slack/slacktest"
)

// Channels are called as Slack calls them, also after they were renamed; without the scope, with
// group messages and during a pause there is no name, and messages come all the same.
func TestChannelNames(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.slack.Call("C1", "general\u202e\n*x*")
		w.start(t)
		name := func(channel, want string) {
			t.Helper()
			w.slack.Mention(channel, "U1", "hello", false)
			w.settled(t)
			all := w.inbox.all()
			if got := all[len(all)-1].message.Context.Channel; got != want {
				t.Errorf("%s is called %q, want %q", channel, got, want)
			}
		}
		name("C1", "#general *x*")
		w.slack.Call("C1", "renamed")
		name("C1", "#general *x*")
		time.Sleep(channelTime)
		name("C1", "#renamed")
		if n := len(w.slack.Calls("conversations.info")); n != 2 {
			t.Errorf("asked %d times", n)
		}
		w.slack.Lack("channels:read", true)
		name("C2", "")
		name("C1", "#renamed")
		time.Sleep(channelTime)
		name("C1", "#renamed") // the last one that is known
		w.slack.Lack("channels:read", false)
		time.Sleep(channelAgain)
		name("C2", "#c2")
	})
}

package slack

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors/slack/slacktest"
)

// A group is a channel whose members share one agent, or not.
type group struct {
	*inbox
	shared bool
}

func (g group) Shares(d claybot.Descriptor) bool { return g.shared && d.ChannelID == "T1/C1" }

// What the members of a channel write to the agent that they share stays in the order in which they wrote it, also
// if it takes longer to store what one of them writes; what people write to agents of their own does not wait for others.
func TestOrderInASharedChannel(t *testing.T) {
	for _, shared := range []bool{true, false} {
		want := []string{"first", "second", "third"}
		if !shared {
			want = []string{"second", "first", "third"}
		}
		t.Run(fmt.Sprint("shared ", shared), func(t *testing.T) {
			inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
				w.inbox.before = func(_ context.Context, m claybot.AgentMessage) error {
					if m.From.UserID == "U1" {
						time.Sleep(time.Second)
					}
					return nil
				}
				w.handler = group{w.inbox, shared}
				w.start(t)
				w.slack.Mention("C1", "U1", "first", false)
				w.slack.Mention("C1", "U2", "second", false)
				w.slack.Mention("C1", "U1", "third", false)
				time.Sleep(time.Minute)
				synctest.Wait()
				var got []string
				for _, in := range w.inbox.all() {
					got = append(got, in.message.Text)
				}
				if !slices.Equal(got, want) {
					t.Errorf("the order is %q, want %q", got, want)
				}
			})
		})
	}
}

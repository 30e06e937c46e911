package discord

import (
	"testing"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/discord/discordtest"
)

// TestMembership reports which routes are dead, and which are not any more.
func TestMembership(t *testing.T) {
	t.Parallel()
	inBubble(t, discordtest.Config{}, func(b *bot) {
		b.start()
		channel := guildID + "/" + groupID(1)
		want := func(n int, dead string, removed bool) {
			t.Helper()
			b.pass(time.Second)
			if len(b.inbox.changes) != n {
				t.Fatalf("changes %+v, want %d", b.inbox.changes, n)
			}
			if n == 0 {
				return
			}
			c := b.inbox.changes[n-1]
			if c.Connector != "discord" || c.ChannelID != channel || c.Dead != dead || c.Removed != removed || c.At <= 0 {
				t.Errorf("change %+v", c)
			}
		}
		b.Dispatch("GUILD_DELETE", map[string]any{"id": guildID, "unavailable": true})
		b.Dispatch("GUILD_CREATE", map[string]any{"id": guildID, "channels": []any{}})
		want(0, "", false) // an outage
		b.LeaveGuild(guildID, true)
		want(1, "the bot was removed from the server", true)
		b.LeaveGuild(guildID, false)
		want(2, "", false)
		b.AddThread(groupID(1), "600000000000000001")
		b.DeleteChannel("600000000000000001")
		want(2, "", false) // its channel lives
		b.DeleteChannel(groupID(1))
		want(3, "the channel was deleted", false)
	})
}

var _ connectors.RouteHandler = (*inbox)(nil)

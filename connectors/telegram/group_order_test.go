package telegram

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
)

// A group has members who share one agent, or not. It takes longer to store what the first one writes.
type group struct {
	*sink
	shared bool
}

func (g group) Shares(d claybot.Descriptor) bool { return g.shared && d.ChannelID == "-100" }

func (g group) Post(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) error {
	if m.From.UserID == "1" {
		time.Sleep(time.Second)
	}
	return g.sink.Post(ctx, to, m)
}

// What the members of a group write to the agent that they share stays in the order in which they wrote it; what
// people write to agents of their own does not wait for others.
func TestOrderInASharedGroup(t *testing.T) {
	for _, shared := range []bool{true, false} {
		want := []string{"first", "second", "third"}
		if !shared {
			want = []string{"second", "first", "third"}
		}
		inBubble(t, Config{}, func(t *testing.T, b *bubble) {
			ctx, stop := context.WithCancel(t.Context())
			b.stop, b.ended = stop, make(chan error, 1)
			b.server.Mention(-100, 1, "first")
			b.server.Mention(-100, 2, "second")
			b.server.Mention(-100, 1, "third")
			go func() { b.ended <- b.conn.Run(ctx, group{b.sink, shared}) }()
			time.Sleep(time.Minute)
			synctest.Wait()
			if got := b.sink.texts(); !slices.Equal(got, want) {
				t.Errorf("shared %v: the order is %q, want %q", shared, got, want)
			}
		})
	}
}

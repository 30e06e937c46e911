package agentsystem

import (
	"context"
	"fmt"

	"github.com/claybot/claybot"
)

// threads says which conversation a message belongs to.
type threads struct {
	own   func() bool // each thread is a conversation of its own
	index Index
}

// recentConversations is how many conversations of a person are looked through for the one
// that a command without a thread concerns.
const recentConversations = 100

// place returns the descriptor of the conversation of d that m belongs to: that of its
// thread, where threads are conversations of their own. A command that was entered in no
// thread, because the platform has no commands there, concerns the conversation of the
// channel to which its person wrote last.
func (t threads) place(ctx context.Context, d claybot.Descriptor, m claybot.AgentMessage) (claybot.Descriptor, error) {
	if !d.Foreground() || d.ThreadID != "" || m.Type == claybot.MessageSystem || !t.own() {
		return d, nil
	}
	if m.Context.ThreadID != "" || m.Context.MessageID != "" || !commands(m) || m.Engine != "" {
		d.ThreadID = m.Context.ThreadID
		return d, nil
	}
	left := recentConversations
	for e, err := range t.index.Foreground(ctx, []string{d.OwnerID()}) {
		if err != nil {
			return d, fmt.Errorf("find the conversation of %s: %w", m.ID, err)
		}
		if e.Descriptor.Connector == d.Connector && e.Descriptor.ChannelID == d.ChannelID && e.Descriptor.UserID == d.UserID {
			return e.Descriptor, nil
		}
		if left--; left == 0 {
			break
		}
	}
	return d, nil
}

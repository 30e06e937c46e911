package webchat

import (
	"context"
	"errors"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

var _ connectors.Windowed = (*Chat)(nil)

// Windows returns the routes of conversations with an open stream.
func (c *Chat) Windows() []claybot.Route {
	var all []claybot.Route
	for _, t := range c.hub.open() {
		all = append(all, claybot.Route{Connector: c.name, ChannelID: t.channel, UserID: t.user})
	}
	return all
}

// open returns the topics with a reader.
func (h *hub) open() (all []topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for t, rm := range h.topics {
		if len(rm.readers) > 0 {
			all = append(all, t)
		}
	}
	return all
}

// Changed makes the open streams of a conversation show a changed message.
func (c *Chat) Changed(d claybot.Descriptor, m claybot.AgentMessage) {
	c.hub.each(topic{d.ChannelID, d.UserID}, func(r *reader) {
		r.amended = append(r.amended, m)
		r.cut = len(r.amended) > keptEvents
	})
}

// amendments writes the messages that were changed on other members. A failed read is
// retried with that of the outbox.
func (s *stream) amendments(ctx context.Context) error {
	for len(s.amended) > 0 {
		u, err := s.chat.changed(ctx, s.t, s.amended[0])
		if errors.Is(err, errRead) {
			return fmt.Errorf("read a changed message: %w", storage.ErrBusy)
		}
		if err == nil { // else it stays as it was
			s.out.frame(frame("user", "", u))
		}
		s.amended = s.amended[1:]
	}
	return nil
}

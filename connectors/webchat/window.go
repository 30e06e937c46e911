package webchat

import (
	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
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

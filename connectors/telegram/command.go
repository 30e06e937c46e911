package telegram

import "github.com/claybot/claybot"

// Command implements connectors.Commander. People can tap /stop; in a group, where other bots may
// understand the same command, it is /stop@bot.
func (c *Connector) Command(r claybot.Route, name string) string {
	if bot := c.self.name(); r.Group && bot != "" {
		return "/" + name + "@" + bot
	}
	return "/" + name
}

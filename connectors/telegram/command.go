package telegram

import (
	"strings"

	"github.com/claybot/claybot"
)

// Command implements connectors.Commander. People can tap /stop; in a group, where other bots may
// understand the same command, it is /stop@bot. Telegram makes no link of a command with a hyphen.
func (c *Connector) Command(r claybot.Route, name string) string {
	name = strings.ReplaceAll(name, "-", "_")
	if bot := c.self.name(); r.Group && bot != "" {
		return "/" + name + "@" + bot
	}
	return "/" + name
}

// Invitation implements connectors.Inviter: Telegram sends "/start CODE" once the person presses
// Start (core.telegram.org/bots/features#deep-linking, read 2026-11-28).
func (c *Connector) Invitation(code string) string {
	bot := c.self.name()
	if bot == "" {
		return ""
	}
	return "https://t.me/" + bot + "?start=" + code
}

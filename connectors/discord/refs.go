package discord

import (
	"net/url"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

var (
	_ connectors.Linker    = (*Connector)(nil)
	_ connectors.Commander = (*Connector)(nil)
)

// Refs implements connectors.Linker for https://discord.com/channels/<server or @me>/<channel>/<message>.
// A link to a message of the bot in a thread does not name its channel, and is not resolved.
func (c *Connector) Refs(link string) []string {
	u, err := url.Parse(link)
	if err != nil || u.Scheme != "https" || u.Hostname() != "discord.com" && !strings.HasSuffix(u.Hostname(), ".discord.com") {
		return nil
	}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	if len(parts) != 4 || parts[0] != "channels" || !isID(parts[2]) || !isID(parts[3]) {
		return nil
	}
	place := parts[2] + "/" + parts[3]
	switch {
	case isID(parts[1]):
		place = parts[1] + "/" + place
	case parts[1] != "@me":
		return nil
	}
	return []string{c.cfg.Name + "/" + place}
}

// Command implements connectors.Commander: the commands are registered, so that people choose
// them after a slash.
func (c *Connector) Command(_ claybot.Route, name string) string { return "/" + name }

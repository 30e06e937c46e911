package slack

import "github.com/claybot/claybot"

// Command implements connectors.Commander. !stop works in direct chats and, other than Slack's own
// slash commands, in threads; outside of threads, a channel takes /claybot stop.
func (c *Connector) Command(r claybot.Route, name string) string {
	if r.Group && r.ThreadID == "" {
		return "/claybot " + name
	}
	return "!" + name
}

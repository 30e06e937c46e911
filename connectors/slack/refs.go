package slack

import (
	"net/url"
	"strings"

	"github.com/claybot/claybot/connectors"
)

var _ connectors.Linker = (*Connector)(nil)

// Refs implements connectors.Linker for links like
// https://team.slack.com/archives/C0123/p1700000000000100. It returns none
// before the first contact with Slack, while the team is unknown.
func (c *Connector) Refs(link string) []string {
	self := c.self.Load()
	if self == nil {
		return nil
	}
	return linked(link, c.cfg.Name, self.Team)
}

// linked converts the path of a permanent link, p and the timestamp without its
// dot, to the ids of messages.
func linked(link, name, team string) []string {
	u, err := url.Parse(link)
	if err != nil || u.Scheme != "https" || !strings.HasSuffix(u.Hostname(), ".slack.com") {
		return nil
	}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	if len(parts) != 3 || parts[0] != "archives" || parts[1] == "" {
		return nil
	}
	digits, ok := strings.CutPrefix(parts[2], "p")
	if !ok || len(digits) <= 6 || strings.Trim(digits, "0123456789") != "" {
		return nil
	}
	place := team + "/" + parts[1] + "/" + digits[:len(digits)-6] + "." + digits[len(digits)-6:]
	return []string{name + "/" + place}
}

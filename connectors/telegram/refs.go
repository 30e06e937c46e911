package telegram

import (
	"net/url"
	"strings"

	"github.com/claybot/claybot/connectors"
)

var _ connectors.Linker = (*Connector)(nil)

// Refs implements connectors.Linker for links to messages of private groups:
// https://t.me/c/1234567890/77, with a topic in between where there is one.
// Direct chats have no links, and links of public groups do not contain the id.
func (c *Connector) Refs(link string) []string {
	u, err := url.Parse(link)
	if err != nil || u.Scheme != "https" || u.Hostname() != "t.me" && u.Hostname() != "telegram.me" {
		return nil
	}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	if len(parts) < 3 || len(parts) > 4 || parts[0] != "c" {
		return nil
	}
	for _, p := range parts[1:] {
		if p == "" || strings.Trim(p, "0123456789") != "" {
			return nil
		}
	}
	// A supergroup's id is that of the link behind -100.
	place := "-100" + parts[1] + "/" + parts[len(parts)-1]
	return []string{"telegram/" + c.bot + "/" + place, c.Name() + "/" + place}
}

package configs

import (
	"maps"
	"slices"
)

// Follow makes what a profile says of a chat hold after the chat got a new id: former returns the
// ids that it had. A profile that names the present id wins.
func (c *Config) Follow(former func(connector, channel string) []string) { c.former = former }

// Chats lists what the settings name as connector:id, sorted: chats, and people in lists of access.
func (c *Config) Chats() []string {
	var all []string
	for _, x := range c.Access.Allow {
		all = append(all, x.Connector+":"+x.Subject)
	}
	all = slices.AppendSeq(all, maps.Keys(c.Agents.routes))
	all = slices.AppendSeq(all, maps.Keys(c.Agents.shutMatch))
	for _, p := range c.Agents.Profiles {
		all = append(all, p.SendTo...)
	}
	for _, b := range c.Agents.Budgets {
		all = append(all, b.Match)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

package configs

import (
	"maps"
	"slices"
)

// Moves know the ids of chats that got a new one; see people.Moves.
type Moves interface {
	Current(connector, channel string) string
	Former(connector, channel string) []string
}

// Follow makes what a profile says of a chat hold for each id that the chat has or had. A profile
// that names the present id wins.
func (c *Config) Follow(m Moves) { c.moves = m }

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

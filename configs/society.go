package configs

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The values of Config.ForegroundScope.
const (
	ScopeOwner = "owner" // agents reach those of their own person
	ScopeAll   = "all"   // agents reach those of everybody
)

// Subagents limits the agents that agents start. 0 means that there are none.
type Subagents struct {
	MaxDepth         int // of a chain of them below the agent at its top
	MaxChildren      int // of one parent that are at work at the same time
	MaxStartsPerHour int // below one agent at the top
	faults           reasons
}

func subagentKeys() []key[Subagents] {
	limit := func(name string, most int, of func(*Subagents) *int) key[Subagents] {
		return text(name, func(r *reader, at place, v string, s *Subagents) {
			n, ok := r.number(at, v, 0, most)
			store(of(s), n, ok)
		})
	}
	return []key[Subagents]{
		limit("max_depth", 100, func(s *Subagents) *int { return &s.MaxDepth }),
		limit("max_children", 10_000, func(s *Subagents) *int { return &s.MaxChildren }),
		limit("max_starts_per_hour", 1_000_000, func(s *Subagents) *int { return &s.MaxStartsPerHour }),
	}
}

// foregroundScope is the one key of the agents group that is no profile.
const foregroundScope = "foreground_scope"

// scope sets whom agents reach. A word nobody knows means the narrow one.
func (r *reader) scope(m member, c *Config) {
	c.Agents.Scope = ScopeOwner
	before := len(r.warnings)
	switch v, ok := r.scalar(m.at, m.value); {
	case !ok:
	case empty(m.value):
		r.warn(m.at, noValue+"; ignored")
	case v == ScopeOwner, v == ScopeAll:
		c.Agents.Scope = v
	default:
		r.warn(m.at, "%s is not one of %s, %s; ignored", quote(v), ScopeOwner, ScopeAll)
	}
	instead(r, before, "using "+ScopeOwner)
}

// setPeople reads whose identities belong together. Of two people with the same
// one, the first in the file has it.
func setPeople(r *reader, at place, n *yaml.Node, c *Config) {
	if n.Kind != yaml.MappingNode {
		r.warn(at, "want names of people with their ids, found %s; ignored", kind(n))
		return
	}
	people, names := make(map[string][]string), make(map[string]string)
	before := len(r.warnings)
	defer func() { r.seal(c, at.path, before) }()
	for m := range r.members(at, n) {
		if empty(m.value) {
			r.warn(m.at, noValue+"; ignored")
			continue
		}
		items, _ := r.list(m.at, m.value)
		for _, it := range items {
			id, connector, err := parseOwner(it.text)
			name, taken := names[id]
			switch {
			case err != nil:
				r.refuse(it, connector, connectorNames(), err)
			case taken && name != m.name:
				r.warn(it.at, "%s belongs to %s already; ignored", quote(id), quote(name))
			case !taken:
				names[id] = m.name
				people[m.name] = append(people[m.name], id)
			}
		}
	}
	c.Access.People = people
}

// setOperators reads who decides for the operator in chats, and leaves out what is
// not understood.
func setOperators(r *reader, at place, n *yaml.Node, c *Config) {
	items, _ := r.list(at, n)
	for _, it := range items {
		id, connector, err := parseOwner(it.text)
		if err != nil {
			r.refuse(it, connector, connectorNames(), err)
			continue
		}
		c.Access.Operators = appendNew(c.Access.Operators, id)
	}
}

// Identities returns all ids of the person that owner, "connector/userId",
// belongs to, itself included; of somebody who is not in People, just owner.
// The list is the caller's own and never empty.
func (c Config) Identities(owner string) []string {
	for _, ids := range c.Access.People {
		if slices.Contains(ids, owner) {
			return slices.Clone(ids)
		}
	}
	return []string{owner}
}

// parseOwner reads connector/userId or connector:userId, and returns it in the
// first form, with its connector.
func parseOwner(s string) (id, connector string, err error) {
	p, user, err := cutPlace(s)
	if err == nil {
		err = p.person.check(user)
	}
	return p.name + "/" + user, p.name, err
}

// parseRoute reads connector/channel or connector:channel, and returns it in
// the first form, with its connector.
func parseRoute(s string) (route, connector string, err error) {
	p, channel, err := cutPlace(s)
	if err == nil {
		err = p.chat.check(channel)
	}
	return p.name + "/" + channel, p.name, err
}

// cutPlace parts what belongs to a connector from its name. The platform has the name
// also where it is not known.
func cutPlace(s string) (p platform, rest string, err error) {
	i := strings.IndexAny(s, "/:")
	if i < 0 {
		return p, "", fmt.Errorf("%s is not connector/id, for example telegram/123 or slack/U012ABC", quote(s))
	}
	name := strings.TrimSpace(s[:i])
	p, err = platformOf(name)
	p.name = name
	return p, strings.TrimSpace(s[i+1:]), err
}

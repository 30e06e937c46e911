package configs

import (
	"fmt"
	"regexp"
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
	c.ForegroundScope = ScopeOwner
	before := len(r.warnings)
	switch v, ok := r.scalar(m.at, m.value); {
	case !ok:
	case empty(m.value):
		r.warn(m.at, noValue+"; ignored")
	case v == ScopeOwner, v == ScopeAll:
		c.ForegroundScope = v
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
	c.People = people
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
		c.Operators = appendNew(c.Operators, id)
	}
}

// Identities returns all ids of the person that owner, "connector/userId",
// belongs to, itself included; of somebody who is not in People, just owner.
// The list is the caller's own and never empty.
func (c Config) Identities(owner string) []string {
	for _, ids := range c.People {
		if slices.Contains(ids, owner) {
			return slices.Clone(ids)
		}
	}
	return []string{owner}
}

var (
	telegramUser = regexp.MustCompile(`^[0-9]{1,20}$`)
	slackUser    = regexp.MustCompile(`^([TE][A-Z0-9]+/)?[UW][A-Z0-9]+$`)
	slackPlace   = regexp.MustCompile(`^[TE][A-Z0-9]+/[A-Z][A-Z0-9]+$`)
	login        = regexp.MustCompile(`^[A-Za-z0-9._@-]+$`) // and at most 64 bytes
)

// parseOwner reads connector/userId or connector:userId, and returns it in the
// first form, with its connector.
func parseOwner(s string) (id, connector string, err error) {
	connector, user, err := cutPlace(s)
	switch {
	case err != nil:
	case connector == "telegram" && !telegramUser.MatchString(user):
		err = fmt.Errorf("%s is not the Telegram id of a person, such as 123456789", quote(user))
	case connector == "slack" && !slackUser.MatchString(user):
		err = fmt.Errorf("%s is not the Slack id of a person, such as U012ABC, or T012ABC/U012ABC for one of another workspace", quote(user))
	case connector != "telegram" && connector != "slack" && (len(user) > 64 || !login.MatchString(user)):
		err = fmt.Errorf("%s is not the name of a login, such as operator", quote(user))
	}
	return connector + "/" + user, connector, err
}

// parseRoute reads connector/channel or connector:channel, and returns it in
// the first form, with its connector.
func parseRoute(s string) (route, connector string, err error) {
	connector, channel, err := cutPlace(s)
	switch {
	case err != nil:
	case connector == "telegram" && !telegramID.MatchString(channel):
		err = fmt.Errorf("%s is not the id of a Telegram chat, such as 123456789, or -100123 for a group", quote(channel))
	case connector == "slack" && !slackPlace.MatchString(channel):
		err = fmt.Errorf("%s is not the id of a Slack channel with its workspace, such as T012ABC/C012ABC", quote(channel))
	case connector != "telegram" && connector != "slack" && (len(channel) > 64 || !login.MatchString(channel)):
		err = fmt.Errorf("%s is not the id of a conversation", quote(channel))
	}
	return connector + "/" + channel, connector, err
}

// cutPlace parts what belongs to a connector from its name.
func cutPlace(s string) (connector, rest string, err error) {
	i := strings.IndexAny(s, "/:")
	if i < 0 {
		return "", "", fmt.Errorf("%s is not connector/id, for example telegram/123 or slack/U012ABC", quote(s))
	}
	connector, rest = strings.TrimSpace(s[:i]), strings.TrimSpace(s[i+1:])
	return connector, rest, checkConnector(connector)
}

package configs

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/claybot/claybot/platforms"
)

// setAccess reads a mode alone, or the group of keys.
func setAccess(r *reader, at place, n *yaml.Node, a *Access) {
	if n.Kind != yaml.ScalarNode {
		r.group(at, n, a)
		return
	}
	k, _ := keyAt("access.mode")
	before := len(r.warnings)
	if setterOf(k)(r, at, n, k, a); len(r.warnings) == before {
		a.on("access")
	}
}

// ParseAllowed reads an entry of the form connector:id as the list of access
// takes it. The error says in words what is wrong with another one.
func (c Config) ParseAllowed(s string) (Allowed, error) {
	return parseAllowed(c.Connectors.Platforms(), s)
}

func parseAllowed(in platforms.Instances, s string) (Allowed, error) {
	connector, subject, ok := strings.Cut(s, ":")
	a := Allowed{strings.TrimSpace(connector), strings.TrimSpace(subject)}
	if !ok || a.Connector == "" || a.Subject == "" {
		return Allowed{}, fmt.Errorf("%s is not connector:id, for example telegram:123 or slack:U012ABC", quote(s))
	}
	p, err := platformOf(in, a.Connector)
	if err == nil {
		err = checkListed(p, a.Subject)
	}
	if err == nil && in.Type(a.Connector) == platforms.Webhook {
		return a, fmt.Errorf("%s is not needed: the secret of a webhook is its access", quote(s))
	}
	if err == nil && p.Listed.Looks == nil {
		err = fmt.Errorf("%s is not needed: every user who logs in there has access", quote(s))
	}
	return a, err
}

// setPeople reads whose identities belong together. Of two people with the same
// one, the first in the file has it.
func setPeople(r *reader, at place, n *yaml.Node, c *Config) {
	if n.Kind != yaml.MappingNode {
		r.warn(at, "want names of people with their ids, found %s; ignored", kindOf(n))
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
			id, err := parseOwner(r.instances, it.text)
			name, taken := names[id]
			switch {
			case err != nil:
				r.refuse(it.at, err)
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

// Identities returns all ids of the person that owner, "connector/userId",
// belongs to, itself included; if no person in People has that id, only owner.
// The list is the caller's own and never empty.
func (c *Config) Identities(owner string) []string {
	for _, ids := range c.Access.People {
		if slices.Contains(ids, owner) {
			return slices.Clone(ids)
		}
	}
	return []string{owner}
}

// parseOwner reads connector/userId or connector:userId, and returns it in the
// first form. A webhook is no person.
func parseOwner(in platforms.Instances, s string) (string, error) {
	p, user, err := cutPlace(in, s)
	switch {
	case err != nil:
	case in.Type(p.Name) == platforms.Webhook:
		err = fmt.Errorf("%s is a webhook, which is no person", quote(s))
	default:
		err = checkID(p.Person, user)
	}
	return p.Name + "/" + user, err
}

// parseRoute reads connector/channel or connector:channel, and returns it in
// the first form.
func parseRoute(in platforms.Instances, s string) (string, error) {
	p, channel, err := cutPlace(in, s)
	if err == nil {
		err = checkID(p.Chat, channel)
	}
	return p.Name + "/" + channel, err
}

// parseChat reads a chat that agents may write into, connector:channel. The ids of
// conversations on the page and in a terminal are no more than names, which the login that
// made them has and others may have, too.
func parseChat(in platforms.Instances, s string) (string, error) {
	route, err := parseRoute(in, s)
	connector, channel, _ := strings.Cut(route, "/")
	p, _ := in.Of(connector)
	switch {
	case err != nil:
	case in.Type(connector) == platforms.Webhook:
		err = fmt.Errorf("%s is a webhook, which takes no messages of its own", quote(s))
	case p.Listed.Looks == nil:
		err = fmt.Errorf("%s is a conversation of the page or a terminal, which agents cannot write into; list a chat of Telegram or Slack", quote(s))
	}
	return connector + ":" + channel, err
}

// cutPlace parts what belongs to a connector from its name.
func cutPlace(in platforms.Instances, s string) (p platforms.Platform, rest string, err error) {
	i := strings.IndexAny(s, "/:")
	if i < 0 {
		return p, "", fmt.Errorf("%s is not connector/id, for example telegram/123 or slack/U012ABC", quote(s))
	}
	p, err = platformOf(in, strings.TrimSpace(s[:i]))
	return p, strings.TrimSpace(s[i+1:]), err
}

// ParseOwner reads a person as connector/userId.
func (c Config) ParseOwner(s string) (string, error) {
	return parseOwner(c.Connectors.Platforms(), s)
}

// ParseRoute reads a chat as connector/channel.
func (c Config) ParseRoute(s string) (string, error) {
	return parseRoute(c.Connectors.Platforms(), s)
}

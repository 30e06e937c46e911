package configs

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

func setAccess(r *reader, at place, n *yaml.Node, c *Config) {
	if n.Kind == yaml.ScalarNode {
		before := len(r.warnings)
		if r.mode(at, n.Value, &c.Access); len(r.warnings) == before {
			c.Access.on("access")
		}
		return
	}
	group(r, at, n, &c.Access, accessKeys())
}

func accessKeys() []key[Access] {
	return []key[Access]{
		text("mode", func(r *reader, at place, v string, a *Access) { r.mode(at, v, a) }),
		{"allow", func(r *reader, at place, n *yaml.Node, a *Access) {
			if items, ok := r.list(at, n); ok {
				a.Allow = r.allowed(items)
			}
		}},
	}
}

// mode sets the mode of access. A word that is not known closes access to new
// people, see Access.Off.
func (r *reader) mode(at place, v string, a *Access) {
	word, ok := r.word(at, strings.TrimSpace(v), AccessPairing, AccessAllowlist, AccessOpen)
	store(&a.Mode, word, ok)
}

// allowed reads entries of the form connector:id and leaves out bad ones.
func (r *reader) allowed(items []item) []Allowed {
	var list []Allowed
	for _, it := range items {
		a, err := ParseAllowed(it.text)
		if err != nil {
			r.refuse(it, a.Connector, connectorNames(), err)
		} else if !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	return list
}

// refuse warns about an entry that begins with a word, with the nearest one when
// it is not known.
func (r *reader) refuse(it item, word string, known []string, err error) {
	r.warn(it.at, "%v; ignored", err)
	if !slices.Contains(known, word) {
		r.warnings[len(r.warnings)-1].Near = nearest(word, known)
	}
}

// ParseAllowed reads an entry of the form connector:id as the list of access
// takes it. The error says in words what is wrong with another one.
func ParseAllowed(s string) (Allowed, error) {
	connector, subject, ok := strings.Cut(s, ":")
	a := Allowed{strings.TrimSpace(connector), strings.TrimSpace(subject)}
	if !ok || a.Connector == "" || a.Subject == "" {
		return Allowed{}, fmt.Errorf("%s is not connector:id, for example telegram:123 or slack:U012ABC", quote(s))
	}
	p, err := platformOf(a.Connector)
	if err == nil {
		err = p.checkListed(a.Subject)
	}
	if err == nil && p.listed.looks == nil {
		err = fmt.Errorf("%s is not needed: every user who logs in there has access", quote(s))
	}
	return a, err
}

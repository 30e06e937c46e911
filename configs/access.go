package configs

import (
	"fmt"
	"regexp"
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
	if err := checkConnector(a.Connector); err != nil {
		return a, err
	}
	if err := checkID(a.Connector, a.Subject); err != nil {
		return a, err
	}
	if a.Connector == "web" || a.Connector == "terminal" {
		return a, fmt.Errorf("%s is not needed: whoever logs in there is let in", quote(s))
	}
	return a, nil
}

// connectorNames are the names that descriptors can have.
func connectorNames() []string { return []string{"telegram", "slack", "web", "terminal"} }

func checkConnector(name string) error {
	if slices.Contains(connectorNames(), name) {
		return nil
	}
	return fmt.Errorf("%s is not a connector (%s)", quote(name), strings.Join(connectorNames(), ", "))
}

var (
	telegramID = regexp.MustCompile(`^-?[0-9]{1,20}$`)
	slackID    = regexp.MustCompile(`^([TE][A-Z0-9]+/)?[A-Z][A-Z0-9]+$`)
)

// checkID refuses whatever is not a stable id: names can change hands.
func checkID(connector, subject string) error {
	const hint = "names can change hands, only ids count: let the person write to the bot, then see `claybot pair`"
	switch {
	case subject == "*":
		return fmt.Errorf("%s does not mean everybody; that is access: open", quote(connector+":*"))
	case connector == "telegram" && !telegramID.MatchString(subject):
		return fmt.Errorf("%s is not a Telegram id such as 123456789, or -100123 for a group; %s", quote(subject), hint)
	case connector == "slack" && !slackID.MatchString(subject):
		return fmt.Errorf("%s is not a Slack id such as U012ABC, or T012ABC/C012ABC for a channel; %s", quote(subject), hint)
	}
	return nil
}

package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

type peopleCmd struct {
	List peopleListCmd `cmd:"" default:"withargs" eg:"people\npeople --json" help:"List people: access, role, agents, and what they used this month."`
	Show peopleShowCmd `cmd:"" eg:"people show telegram:123456789" help:"Show a person: identities, language, zone, agents, budgets and open requests."`
	Role peopleRoleCmd `cmd:"" eg:"people role telegram:123456789 operator\npeople role ann user" help:"Give a person the role owner, operator or user; only on the machine of the daemon."`
	Hist peopleHistCmd `cmd:"" name:"history" eg:"people history" help:"List the changes of roles."`
}

type (
	peopleListCmd struct {
		JSON bool `name:"json" help:"Print JSON."`
	}
	peopleShowCmd struct {
		Who  string `arg:"" name:"person" help:"Name of the person, or connector:id of one of their identities."`
		JSON bool   `name:"json" help:"Print JSON."`
	}
	peopleRoleCmd struct {
		Who  string `arg:"" name:"person" help:"Name of the person in people of the configuration, or connector:id of one of their identities."`
		Role string `arg:"" enum:"owner,operator,user" help:"owner, operator or user."`
	}
	peopleHistCmd struct {
		JSON bool `name:"json" help:"Print JSON."`
	}
)

// Run lists people.
func (c peopleListCmd) Run(e *env) error {
	return show(e, c.JSON, to("/people"), func(out web.PersonList) error {
		err := e.list("WHO,NAME (unverified),ROLE,ACCESS,LANGUAGE,ZONE,AGENTS,THIS MONTH,BUDGET,LAST MESSAGE", "No people.\n", each(out.People, personRow))
		if err == nil && out.More > 0 {
			err = e.text(fmt.Sprintf("%d more are not listed.\n", out.More))
		}
		return err
	})
}

func personRow(p overview.Person) []string {
	who, access := make([]string, len(p.Identities)), make([]string, len(p.Identities))
	for i, id := range p.Identities {
		who[i], access[i] = id.ID, accessText(id)
	}
	return []string{
		strings.Join(who, ", "), namesOfPerson(p), string(p.Role), strings.Join(slices.Compact(access), ", "), p.Language, p.Timezone, fmt.Sprint(len(p.Agents)),
		cost(p.Usage), cmp.Or(strings.Join(mapped(p.Budgets, budgetText), ", "), "-"), moments(p.LastAt),
	}
}

// mapped returns what fn makes of each.
func mapped[T, U any](all []T, fn func(T) U) []U {
	out := make([]U, len(all))
	for i, x := range all {
		out[i] = fn(x)
	}
	return out
}

// namesOfPerson are the names of a person: that of the configuration, and those that platforms give.
func namesOfPerson(p overview.Person) string {
	var all []string
	for _, name := range append([]string{p.Name}, mapped(p.Identities, func(id overview.Identity) string { return id.Name })...) {
		if name != "" && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return cmp.Or(oneLine(strings.Join(all, ", ")), "-")
}

func accessText(id overview.Identity) string {
	switch {
	case id.Request != nil && id.Access == people.AdmittedNot:
		return "pending; approve with: claybot pair approve " + id.Request.Code
	case id.Since != 0 && id.Access == people.AdmittedGrant:
		return string(id.Access) + " " + moment(id.Since.Time())
	}
	return string(id.Access)
}

func budgetText(b overview.PersonBudget) string {
	return fmt.Sprintf("%s of %s, %s", amount(b.Unit, b.Spent), amount(b.Unit, b.Limit), b.Name)
}

// Run shows a person.
func (c peopleShowCmd) Run(e *env) error {
	p, err := findPerson(e, c.Who)
	switch {
	case err != nil:
		return err
	case c.JSON:
		return e.printJSON(p)
	}
	return e.table(personDetails(p))
}

func personDetails(p overview.Person) [][]string {
	rows := [][]string{
		{"name", cmp.Or(p.Name, "-")},
		{"role", string(p.Role)},
		{"language", p.Language},
		{"zone", p.Timezone},
		{"last message", moments(p.LastAt)},
		{"this month", cost(p.Usage)},
	}
	for _, b := range p.Budgets {
		rows = append(rows, []string{"budget", budgetText(b)})
	}
	for _, id := range p.Identities {
		text := []string{id.ID}
		if id.Name != "" {
			text = append(text, fmt.Sprintf("%s (unverified)", oneLine(id.Name)))
		}
		text = append(text, id.Platform, "access: "+accessText(id))
		if id.Role != storage.RoleUser {
			text = append(text, roleText(id))
		}
		rows = append(rows, []string{"identity", strings.Join(text, ", ")})
	}
	for _, a := range p.Agents {
		at := a.Connector + ":" + a.Channel
		if a.Place != "" {
			at += " (" + oneLine(a.Place) + ")"
		}
		rows = append(rows, []string{"agent", fmt.Sprintf("%s in %s, last message %s", a.ID, at, moments(a.LastAt))})
	}
	return rows
}

// Run changes the role of a person.
func (c peopleRoleCmd) Run(e *env) error {
	id, err := identityFor(e, c.Who)
	if err != nil {
		return err
	}
	order := web.RoleOrder{Role: storage.Role(c.Role), By: userName()}
	err = reply(e, "PUT", to("/people/"+url.PathEscape(id)+"/role"), order, func(done storage.RoleChange) string {
		if done.Before == done.After {
			return fmt.Sprintf("%s is %s already.\n", id, article(done.After))
		}
		return fmt.Sprintf("%s is %s now, from the next message on. Before: %s.\n", id, article(done.After), done.Before)
	})
	if err != nil {
		return err
	}
	return linkedRoles(e, id, func([]overview.Identity) bool { return true })
}

// linkedRoles prints the roles of all identities of the person with one of them, where there are several
// and they matter.
func linkedRoles(e *env, id string, matter func(others []overview.Identity) bool) error {
	out, err := ask[web.PersonData](e, "GET", to("/people/"+url.PathEscape(id)), nil)
	if err != nil || out.Known == nil || len(out.Known.Identities) < 2 {
		return err
	}
	all := out.Known.Identities
	if !matter(slices.DeleteFunc(slices.Clone(all), func(x overview.Identity) bool { return x.ID == id })) {
		return nil
	}
	text := mapped(all, func(x overview.Identity) string {
		return x.ID + " is " + article(x.Role) + strings.TrimPrefix(roleText(x), string(x.Role))
	})
	return e.text(fmt.Sprintf("Identities of this person: %s. In each of their chats, they are %s.\n", strings.Join(text, "; "), article(out.Known.Role)))
}

func article(r storage.Role) string {
	if r == storage.RoleUser {
		return "a user"
	}
	return "an " + string(r)
}

// identityFor returns the identity that is given a role: an id as it is, or of a name in the
// configuration the first identity with access. Names of platforms are no names for that: people
// choose them freely.
func identityFor(e *env, name string) (string, error) {
	if strings.Contains(name, ":") {
		connector, id, err := who(name)
		return connector + ":" + id, err
	}
	p, err := findPerson(e, name)
	if err != nil {
		return "", err
	}
	if !strings.EqualFold(p.Name, name) {
		return "", usageError{fmt.Errorf("%q is a name that a platform gives, which people choose freely; give the person by an id: %s", oneLine(name), p.ID)}
	}
	for _, id := range p.Identities {
		if id.Access != people.AdmittedNot && id.Access != people.AdmittedGroup {
			return id.ID, nil
		}
	}
	return p.ID, nil
}

// Run lists the changes of roles.
func (c peopleHistCmd) Run(e *env) error {
	return show(e, c.JSON, to("/people/roles"), func(out web.RoleList) error {
		return e.list("WHEN,WHO,BEFORE,AFTER,BY", "No role was changed.\n", each(out.Changes, func(x storage.RoleChange) []string {
			return []string{moments(x.At), strings.Replace(x.Who, "/", ":", 1), string(x.Before), string(x.After), x.By}
		}))
	})
}

// roleText is the role of an identity, and where it comes from.
func roleText(id overview.Identity) string {
	if id.RoleFrom == people.RoleOfConfig {
		return string(id.Role) + " by operators in the configuration"
	}
	return string(id.Role)
}

// findPerson returns the person with an identity or a name. A name that several people have is no
// answer: it is not verified.
func findPerson(e *env, who string) (p overview.Person, err error) {
	connector, user, isID := strings.Cut(who, ":")
	if isID && connector != "" && user != "" {
		out, err := ask[web.PersonData](e, "GET", to("/people/"+url.PathEscape(who)), nil)
		if err != nil || out.Known != nil {
			return deref(out.Known), err
		}
	}
	list, err := ask[web.PersonList](e, "GET", to("/people"), nil)
	if err != nil {
		return p, err
	}
	var found []overview.Person
	known := make(map[string]bool)
	for _, x := range list.People {
		names := namesAndIDs(x)
		if slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, who) }) {
			found = append(found, x)
		}
		for _, name := range names {
			known[name] = true
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return p, unknownPerson(who, known)
	}
	return p, fmt.Errorf("%d people are called %q; show one by its id: %s", len(found), oneLine(who), strings.Join(mapped(found, func(p overview.Person) string { return p.ID }), ", "))
}

func deref[T any](p *T) (x T) {
	if p != nil {
		x = *p
	}
	return x
}

func namesAndIDs(p overview.Person) []string {
	names := []string{p.Name}
	for _, id := range p.Identities {
		names = append(names, id.ID, id.Name)
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// mostNear is how many near names an error has.
const mostNear = 3

// unknownPerson says that a person is not known, with the names that are nearest.
func unknownPerson(who string, known map[string]bool) error {
	var names, near []string
	for name := range known {
		names = append(names, name)
	}
	slices.Sort(names)
	for len(near) < mostNear {
		name := configs.Nearest(who, names)
		if name == "" {
			break
		}
		near = append(near, fmt.Sprintf("%q", oneLine(name)))
		names = slices.DeleteFunc(names, func(n string) bool { return n == name })
	}
	text := fmt.Sprintf("no person %q", oneLine(who))
	if len(near) > 0 {
		return errors.New(text + "; did you mean " + strings.Join(near, " or ") + "? claybot people lists all")
	}
	return errors.New(text + "; claybot people lists all")
}

package plan

import (
	"slices"
	"strings"

	"github.com/claybot/claybot"
)

// approvers are who may still approve a step, each person once; nil for the
// agent's own person. ok is false when too few people are named for as many
// approvals as are needed.
func (e *engine) approvers(p Policy, v *Vote) (who []string, ok bool) {
	people := e.people(p.Approvers)
	if p.Approvals > 1 && len(people) < p.Approvals {
		return nil, false
	}
	for _, a := range people {
		if !e.among(v.By, a) {
			who = append(who, a)
		}
	}
	return who, len(people) == 0 || len(who) > 0
}

// approved is how many people have approved a step and still may: the policy may
// name others by now.
func (e *engine) approved(a claybot.Agent, p Policy, v *Vote) int {
	return len(e.people(slices.DeleteFunc(slices.Clone(v.By), func(by string) bool { return !e.may(a, p, by) })))
}

// may reports whether somebody may approve a step of an agent. Operators may
// always: the door has let them in.
func (e *engine) may(a claybot.Agent, p Policy, by string) bool {
	if operator(by) {
		return true
	}
	if len(p.Approvers) == 0 {
		return e.same(by, a.Descriptor.OwnerID())
	}
	return e.among(p.Approvers, by)
}

// people are the first ids of the different people in a list.
func (e *engine) people(list []string) (first []string) {
	for _, id := range list {
		if !e.among(first, id) {
			first = append(first, id)
		}
	}
	return first
}

// among reports whether a person is in a list, under whatever id.
func (e *engine) among(list []string, id string) bool {
	return slices.ContainsFunc(list, func(other string) bool { return e.same(other, id) })
}

// same reports whether two ids are of one person. Nobody can tell operators
// apart, so they are one person altogether; he is also the one who has his login
// in a chat, such as web/operator.
func (e *engine) same(a, b string) bool {
	switch {
	case operator(a) && operator(b):
		return true
	case operator(b):
		a, b = b, a
	}
	ids := e.ids(b)
	if operator(a) {
		return a != "" && slices.ContainsFunc(ids, func(id string) bool { return strings.HasSuffix(id, "/"+a) })
	}
	return slices.ContainsFunc(e.ids(a), func(id string) bool { return slices.Contains(ids, id) })
}

// ids are all that the person has who has this one.
func (e *engine) ids(owner string) []string {
	if e.People == nil {
		return []string{owner}
	}
	return append([]string{owner}, e.People(owner)...)
}

// operator reports whether who answered did so on a page or over HTTP: in a chat
// people are "connector/userId".
func operator(by string) bool { return !strings.Contains(by, "/") }

package tools

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/claybot/claybot"
)

// NoQuorum is how many must approve where there are no approvers: never that many do.
const NoQuorum = math.MaxInt32

// Approvers are the people who approve actions. A person may have several ids and
// counts once.
//
// Operators who approve on the page or over HTTP cannot be told apart, so they count as
// one person, who is also the one with an operator's login in a chat, such as
// web/operator.
type Approvers struct {
	Need  int      // how many of them approve an action; below 1: one
	Named []string // "connector/userId"; none: the agent's own person
	Owner string   // the agent's own person, as Descriptor.OwnerID
	// InTurn: they are asked one after another, in the order of Named, so nobody sees an
	// action before those who come first have approved it.
	InTurn bool
	// People are the ids of the person who has one; nil: each has only one.
	People func(id string) []string
}

// Left are those who may still approve what others have, each person once, or with InTurn
// the next one; nil for the agent's own person. The error says that too few people are named.
func (a Approvers) Left(by []string) (who []string, err error) {
	people := a.Distinct(a.Named)
	switch {
	case a.Need == NoQuorum:
		return nil, errors.New("what the configuration says about approvals cannot be used, so nothing can be approved; claybot doctor shows what is wrong with it")
	case a.few() && len(people) == 0:
		return nil, errors.New("this rule names a quorum but no approvers: set approvers")
	case a.few():
		return nil, fmt.Errorf("it needs the approvals of %d different people, and %d may give one", a.Need, len(people))
	}
	for _, p := range people {
		if !a.Among(by, p) {
			who = append(who, p)
		}
	}
	switch {
	case len(people) > 0 && len(who) == 0:
		return nil, fmt.Errorf("it needs %d approvals, and no approver is left to give one", max(a.Need, 1))
	case a.InTurn && len(who) > 1:
		return who[:1], nil
	}
	return who, nil
}

// Enough reports whether those who approved are as many as it needs. Who may not
// approve any more does not count.
//
// No approvals are enough where too few are named, no matter who approved while there were more.
func (a Approvers) Enough(by []string) bool {
	return !a.few() && len(a.counted(by)) >= max(a.Need, 1)
}

// few reports whether too few people are named for as many as it needs.
func (a Approvers) few() bool { return a.Need > 1 && len(a.Distinct(a.Named)) < a.Need }

// counted are the different people of a list who may approve.
func (a Approvers) counted(by []string) []string {
	return a.Distinct(slices.DeleteFunc(slices.Clone(by), func(id string) bool { return !a.May(id) }))
}

// Tell puts into a question how many people approve its action, and who have, where
// that is more than one.
func (a Approvers) Tell(q *claybot.Question, by []string) {
	if a.Need > 1 {
		q.Need, q.ApprovedBy = a.Need, a.counted(by)
	}
}

// Lacking is how many more people must approve the action of a question once one person
// has: for what was shown or, edited, for other arguments, which no other person has
// approved yet.
func (a Approvers) Lacking(q claybot.Question, by string, edited bool) int {
	var have []string
	if !edited {
		have = slices.Clone(q.ApprovedBy)
	}
	if by != "" { // an empty name is not a person
		have = append(have, by)
	}
	return max(0, q.Need-len(a.Distinct(have)))
}

// May reports whether a person may approve. Operators always may: they are
// authenticated.
func (a Approvers) May(id string) bool {
	switch {
	case operator(id):
		return true
	case len(a.Named) == 0:
		return a.Same(id, a.Owner)
	}
	return a.Among(a.Named, id)
}

// Distinct are the first ids of the different people in a list.
func (a Approvers) Distinct(list []string) (first []string) {
	for _, id := range list {
		if !a.Among(first, id) {
			first = append(first, id)
		}
	}
	return first
}

// Among reports whether a person is in a list, under whatever id.
func (a Approvers) Among(list []string, id string) bool {
	return slices.ContainsFunc(list, func(other string) bool { return a.Same(other, id) })
}

// Same reports whether two ids are of one person.
func (a Approvers) Same(x, y string) bool {
	switch {
	case operator(x) && operator(y):
		return true
	case operator(y):
		x, y = y, x
	}
	ids := a.ids(y)
	if operator(x) {
		return x != "" && slices.ContainsFunc(ids, func(id string) bool { return strings.HasSuffix(id, "/"+x) })
	}
	return slices.ContainsFunc(a.ids(x), func(id string) bool { return slices.Contains(ids, id) })
}

func (a Approvers) ids(id string) []string {
	if a.People == nil {
		return []string{id}
	}
	return append([]string{id}, a.People(id)...)
}

// operator reports whether who answered did so on the page or over HTTP: in a
// chat people are "connector/userId".
func operator(id string) bool { return !strings.Contains(id, "/") }

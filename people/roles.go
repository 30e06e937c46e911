package people

import (
	"slices"
	"strings"
)

// A Role is what a person may do beyond writing to their agents.
type Role string

// The roles. An operator decides about access and budgets in their chats and reads notices; an
// owner may do that as well, and change roles.
const (
	RoleUser     Role = "user"
	RoleOperator Role = "operator"
	RoleOwner    Role = "owner"
)

// A RoleSource is where a role comes from; that of a user has none.
type RoleSource string

// The sources of roles.
const (
	RoleOfConsole RoleSource = "console"       // the page and the terminal: only the owner opens them
	RoleOfConfig  RoleSource = "configuration" // operators in the configuration
)

// RoleOf returns the role of one identity, "connector/userId", and where it comes from. Other
// identities of the same person may have another one: the person has the highest.
func (dir *Directory) RoleOf(owner string) (Role, RoleSource) {
	switch {
	case slices.Contains(OperatorConsoles, owner):
		return RoleOwner, RoleOfConsole
	case slices.Contains(dir.Operators(), owner):
		return RoleOperator, RoleOfConfig
	}
	return RoleUser, ""
}

// Higher returns the higher one of two roles.
func Higher(a, b Role) Role {
	for _, r := range []Role{RoleOwner, RoleOperator} {
		if a == r || b == r {
			return r
		}
	}
	return RoleUser
}

// Operators returns the operators of the configuration, as "connector/userId".
func (dir *Directory) Operators() []string {
	if dir.cfg.Operators == nil {
		return nil
	}
	return dir.cfg.Operators()
}

// IsPerson reports whether an id of a connector looks like that of a person: those of Discord look
// like those of its channels. Programs that chat on the page with a token are no people.
func (dir *Directory) IsPerson(connector, id string) bool {
	p, ok := dir.cfg.Instances().Of(connector)
	if !ok { // of a connector that is not configured any more
		return id != "" && !strings.Contains(id, ":")
	}
	return p.Person.Looks != nil && p.Person.Looks.MatchString(id) && !strings.Contains(id, ":")
}

// Platform returns the platform of a connector.
func (dir *Directory) Platform(connector string) string { return dir.cfg.Instances().Type(connector) }

// An Admission is how an identity has access.
type Admission string

// How identities have access.
const (
	AdmittedConsole Admission = "console"  // by the login of the page or the terminal
	AdmittedGrant   Admission = "approved" // by a code, a link or an id
	AdmittedList    Admission = "listed"   // by access.allow
	AdmittedOpen    Admission = "open"     // access is open
	AdmittedGroup   Admission = "group"    // only in groups that have access
	AdmittedNot     Admission = "none"
)

// AdmissionOf returns how a person has access to direct chats; AdmittedNot where they have none.
func (g *Gate) AdmissionOf(connector, user string) Admission {
	a := g.access()
	switch {
	case slices.Contains(a.Trusted, connector):
		return AdmittedConsole
	case g.Granted(connector, user):
		return AdmittedGrant
	case g.Listed(connector, user):
		return AdmittedList
	case a.Mode == AccessOpen && !strings.ContainsRune(user, '/'):
		return AdmittedOpen
	}
	return AdmittedNot
}

// Allowlist returns the configured list, as connector and id.
func (g *Gate) Allowlist() (all [][2]string) {
	for _, entry := range g.access().Allow {
		connector, id, _ := strings.Cut(entry, ":")
		all = append(all, [2]string{connector, id})
	}
	return all
}

package people

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// A RoleSource is where a role comes from; that of a user has none.
type RoleSource string

// The sources of roles.
const (
	RoleOfConsole RoleSource = "console"       // the page and the terminal: only the owner opens them
	RoleOfConfig  RoleSource = "configuration" // operators in the configuration
	RoleGiven     RoleSource = "given"         // by an owner
)

// Errors of SetRole.
var (
	// ErrLastOwner means that no owner would be left beside the user of the machine.
	ErrLastOwner = errors.New("they are the last owner")
	// ErrRoleConfigured means that the configuration gives a role, so that nothing else takes it.
	ErrRoleConfigured = errors.New("operators in the configuration names them")
	// ErrRoleOfConsole means that the user of the machine is always an owner.
	ErrRoleOfConsole = errors.New("the page and the terminal always belong to an owner")
	// ErrNoAccess means that a person without access can have no role.
	ErrNoAccess = errors.New("they have no access")
	// ErrNoPerson means that an id is not that of a person.
	ErrNoPerson = errors.New("this is not the id of a person")
	// ErrMayBeChannel means that an id may be that of a channel: its platform has ids of one form for
	// both, and no person with this one wrote to claybot.
	ErrMayBeChannel = errors.New("this may be the id of a channel")
)

// RoleOf returns the role of one identity, "connector/userId", and where it comes from. Other
// identities of the same person may have another one: the person has the highest, see RoleOfPerson.
// A role that was given holds while its person has access to direct chats.
func (dir *Directory) RoleOf(owner string) (storage.Role, RoleSource) {
	if slices.Contains(OperatorConsoles, owner) {
		return storage.RoleOwner, RoleOfConsole
	}
	given := dir.Gate.given(owner)
	switch {
	case slices.Contains(dir.configured(), owner) && given != storage.RoleOwner:
		return storage.RoleOperator, RoleOfConfig
	case given != storage.RoleUser:
		return given, RoleGiven
	}
	return storage.RoleUser, ""
}

// RoleOfPerson returns the highest role of all identities of a person.
func (dir *Directory) RoleOfPerson(owner string) storage.Role {
	role := storage.RoleUser
	for _, id := range dir.Identities(owner) {
		r, _ := dir.RoleOf(id)
		role = Higher(role, r)
	}
	return role
}

// Higher returns the higher one of two roles.
func Higher(a, b storage.Role) storage.Role {
	for _, r := range []storage.Role{storage.RoleOwner, storage.RoleOperator} {
		if a == r || b == r {
			return r
		}
	}
	return storage.RoleUser
}

// configured returns the operators of the configuration.
func (dir *Directory) configured() []string {
	if dir.cfg.Operators == nil {
		return nil
	}
	return dir.cfg.Operators()
}

// Operators returns the operators and owners on chat platforms, as "connector/userId": those of the
// configuration, and those with a role that was given.
func (dir *Directory) Operators() []string {
	all := slices.Clone(dir.configured())
	for _, who := range dir.Gate.withRoles() {
		if !slices.Contains(all, who) {
			all = append(all, who)
		}
	}
	return all
}

// SetRole gives a person a role, from the next message on in all members; the other identities of
// the person lose theirs. It changes nothing if it returns one of the errors above.
func (dir *Directory) SetRole(ctx context.Context, owner string, role storage.Role, by string) (storage.RoleChange, error) {
	c, err := dir.RoleChange(ctx, owner, role, by)
	if err != nil {
		return c, err
	}
	done, err := dir.Gate.ranks.SetRole(ctx, c)
	if errors.Is(err, storage.ErrState) {
		return done, ErrLastOwner
	}
	if err == nil {
		dir.NoteRole(done)
	}
	return done, err
}

// RoleChange returns the change that SetRole stores, or one of the errors above other than ErrLastOwner,
// which the store decides.
func (dir *Directory) RoleChange(ctx context.Context, owner string, role storage.Role, by string) (storage.RoleChange, error) {
	connector, user, _ := strings.Cut(owner, "/")
	user = dir.cfg.Instances().Canonical(connector, user)
	owner = connector + "/" + user
	ids := dir.Identities(owner)
	in := func(list []string) bool {
		return slices.ContainsFunc(ids, func(id string) bool { return slices.Contains(list, id) })
	}
	switch {
	case in(OperatorConsoles):
		return storage.RoleChange{}, ErrRoleOfConsole
	case !dir.IsPerson(connector, user) || slices.Contains(dir.Gate.access().Trusted, connector):
		return storage.RoleChange{}, ErrNoPerson
	case role == storage.RoleUser && in(dir.configured()):
		return storage.RoleChange{}, ErrRoleConfigured
	case role != storage.RoleUser && !dir.Knows(connector, user):
		return storage.RoleChange{}, ErrNoAccess
	}
	if role != storage.RoleUser && dir.cfg.Instances().Alike(connector) {
		if wrote, err := dir.wrote(ctx, connector, user); err != nil || !wrote {
			return storage.RoleChange{}, cmp.Or(err, ErrMayBeChannel)
		}
	}
	others := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == owner })
	return storage.RoleChange{At: claybot.Now(), By: by, Who: owner, After: role, Others: others, Counts: dir.owns}, nil
}

// wrote reports whether claybot knows an id as that of a person who wrote to it.
func (dir *Directory) wrote(ctx context.Context, connector, user string) (bool, error) {
	if dir.Gate.approvedPerson(connector, user) {
		return true, nil
	}
	own, err := dir.cfg.Index.AgentPage(ctx, storage.AgentQuery{Type: claybot.AgentUser, Owner: connector + "/" + user, Limit: 1})
	return len(own) > 0, err
}

// approvedPerson reports whether an operator approved a person who asked for access: their grant has
// the name that they asked with.
func (g *Gate) approvedPerson(connector, user string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.grants[subject{connector, user}].Name != ""
}

// EndRoles ends the roles of identities that have no access any more, and keeps that as changes. A
// later access does not bring them back. Call it after the access that is configured changed.
func (dir *Directory) EndRoles(ctx context.Context) error {
	if err := dir.Load(ctx); err != nil { // another member may have given access
		return err
	}
	for _, who := range dir.Gate.withoutAccess() {
		done, err := dir.Gate.ranks.SetRole(ctx, storage.RoleChange{At: claybot.Now(), By: accessEnded, Who: who, After: storage.RoleUser, Last: true})
		if err != nil {
			return err
		}
		dir.NoteRole(done)
	}
	return nil
}

// EndsRole reports whether a person would lose their role with their access by other settings.
func (g *Gate) EndsRole(next Access) bool {
	return slices.ContainsFunc(g.withRoles(), func(who string) bool {
		connector, user, _ := strings.Cut(who, "/")
		return !g.knowsBy(next, connector, user)
	})
}

// accessEnded is by whom a role ends whose person has no access any more.
const accessEnded = "ended access"

// withoutAccess returns the identities that have a role and no access.
func (g *Gate) withoutAccess() []string {
	g.mu.Lock()
	all := slices.Sorted(maps.Keys(g.roles))
	g.mu.Unlock()
	return slices.DeleteFunc(all, func(who string) bool {
		connector, user, _ := strings.Cut(who, "/")
		return g.Knows(connector, user)
	})
}

// NoteRole makes a stored change of a role hold. Of the changes of an identity, the last one in the
// order of the store holds, in whatever order they are noted.
func (dir *Directory) NoteRole(c storage.RoleChange) {
	dir.Gate.noteRole(c)
	dir.cfg.Log.Info("role changed", "who", c.Who, "before", c.Before, "after", c.After, "by", c.By)
}

// RefreshRole loads roles and grants if another member has changed the role of a person; of a person
// whose role is the same, it reads that role alone.
func (dir *Directory) RefreshRole(ctx context.Context, owner string) error {
	ids := dir.Identities(owner)
	stored, _, err := dir.Gate.ranks.Roles(ctx, ids...)
	if err != nil {
		return err
	}
	if dir.Gate.holds(ids, stored) {
		return nil
	}
	return dir.Load(ctx)
}

// holds reports whether the roles of some identities are those that are stored.
func (g *Gate) holds(ids []string, stored []storage.RoleGrant) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := 0
	for _, id := range ids {
		if _, has := g.roles[id]; has {
			n++
		}
	}
	return n == len(stored) && !slices.ContainsFunc(stored, func(r storage.RoleGrant) bool { return g.roles[r.Who].Role != r.Role })
}

// owns reports whether an identity was made an owner and can act as one: it has access, by a
// connector that is configured and whose users can order.
func (dir *Directory) owns(owner string) bool {
	connector, _, _ := strings.Cut(owner, "/")
	return dir.Gate.given(owner) == storage.RoleOwner && dir.OrdersRoles(connector) && dir.cfg.Connector(connector) != nil
}

// Holds reports whether a person has a role, also one that they cannot use without access.
func (dir *Directory) Holds(owner string) bool {
	return dir.IsOperator(owner) || slices.ContainsFunc(dir.Identities(owner), dir.Gate.stored)
}

// stored reports whether an identity was given a role.
func (g *Gate) stored(owner string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, ok := g.roles[owner]
	return ok
}

// RoleChanges lists the newest changes of roles, latest first.
func (dir *Directory) RoleChanges(ctx context.Context) ([]storage.RoleChange, error) {
	return dir.Gate.ranks.RoleChanges(ctx)
}

// noteRole notes a stored change of a role for those of its identities of which no later one is known.
func (g *Gate) noteRole(c storage.RoleChange) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, who := range append([]string{c.Who}, c.Others...) {
		if c.Number <= max(g.changed[who], g.loaded) {
			continue
		}
		g.changed[who] = c.Number
		delete(g.roles, who)
		if who == c.Who && c.After != storage.RoleUser {
			g.roles[who] = storage.RoleGrant{Who: who, Role: c.After, At: c.At, By: c.By}
		}
	}
	g.changes++
}

// given returns the role that an identity with access was given.
func (g *Gate) given(owner string) storage.Role {
	g.mu.Lock()
	role, ok := g.roles[owner]
	g.mu.Unlock()
	connector, user, _ := strings.Cut(owner, "/")
	if !ok || !g.Knows(connector, user) {
		return storage.RoleUser
	}
	return role.Role
}

// withRoles returns the identities with access that were given a role.
func (g *Gate) withRoles() []string {
	g.mu.Lock()
	all := slices.Sorted(maps.Keys(g.roles))
	g.mu.Unlock()
	return slices.DeleteFunc(all, func(who string) bool { return g.given(who) == storage.RoleUser })
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

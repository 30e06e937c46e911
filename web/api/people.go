package api

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// people serves the directory of people, and what claybot keeps of a person.
type people struct {
	people    web.People
	directory web.Directory
}

func (p people) operations() []operation {
	return operation{tag: "people", fails: []int{http.StatusBadRequest}}.like(
		returns(http.StatusOK, op("listPeople", web.Admin, "GET /people", "List people: identities, access, role, language, zone, agents, usage and budgets.").failing(), p.list),
		returns(http.StatusOK, op("listRoleChanges", web.Admin, "GET /people/roles", "List the changes of roles: whose, by whom, when, before and after.").failing(), p.roleChanges),
		takes(http.StatusOK, op("setRole", web.Admin, "PUT /people/{person}/role", "Give the person connector:user a role.").
			explained("Only by the socket of the command line, on the machine of the daemon: no token and no login of the page may.").
			failing(http.StatusBadRequest, http.StatusConflict), p.setRole),
		returns(http.StatusOK, op("getPerson", web.Admin, "GET /people/{person}", "Show what claybot knows and keeps of the person connector:user, and what it would erase."), p.kept),
		returns(http.StatusOK, op("forgetPerson", web.Admin, "DELETE /people/{person}", "Erase what claybot keeps of the person connector:user. Repeat the call if it fails: it goes on.").
			query(param{name: "workspaces", about: "skip: leave workspaces on machines that are gone, and name them in stays. Otherwise they are a conflict.", values: []string{"skip"}}).
			failing(http.StatusBadRequest, http.StatusConflict), p.forget),
	)
}

func (p people) kept(r *http.Request) (out web.PersonData, err error) {
	owner, err := ownerOf(r)
	if err != nil {
		return out, err
	}
	if out, err = p.people.Kept(r.Context(), owner); err != nil {
		return out, err
	}
	known, err := p.directory.PersonOf(r.Context(), owner)
	if err == nil {
		out.Known = &known
	}
	return out, storage.Ignore(err, storage.ErrNotFound)
}

func (p people) list(r *http.Request) (web.PersonList, error) {
	all, more, err := p.directory.ListPeople(r.Context())
	return web.PersonList{People: orEmpty(all), More: more}, err
}

func (p people) roleChanges(r *http.Request) (web.RoleList, error) {
	all, err := p.directory.RoleChanges(r.Context())
	return web.RoleList{Changes: orEmpty(all)}, err
}

// setRole serves the socket alone, as a change of operators in the configuration: a stolen token or
// login makes no operators.
func (p people) setRole(r *http.Request, in web.RoleOrder) (none storage.RoleChange, err error) {
	owner, err := ownerOf(r)
	switch {
	case err != nil:
		return none, err
	case !web.CallerOf(r).Local:
		return none, &web.Problem{
			Status: http.StatusForbidden, Code: "local", Message: "Roles cannot be changed over the network.",
			Fix: "Run on the machine of claybot: claybot people role; or write /pair role to the bot, as an owner.",
		}
	case !slices.Contains([]storage.Role{storage.RoleOwner, storage.RoleOperator, storage.RoleUser}, in.Role):
		return none, bad("role must be owner, operator or user.", "")
	}
	return p.directory.SetRole(r.Context(), owner, in.Role, cmp.Or(in.By, web.CallerOf(r).Name))
}

func (p people) forget(r *http.Request) (out web.PersonData, err error) {
	owner, err := ownerOf(r)
	if err != nil {
		return out, err
	}
	return p.people.Forget(r.Context(), owner, r.URL.Query().Get("workspaces") == "skip")
}

// ownerOf is the person of the path, as OwnerID.
func ownerOf(r *http.Request) (string, error) {
	connector, user, ok := strings.Cut(r.PathValue("person"), ":")
	if !ok || connector == "" || user == "" || strings.Contains(connector, "/") {
		return "", bad("The person must be connector:user.", "For example GET /people/telegram:123456.")
	}
	return connector + "/" + user, nil
}

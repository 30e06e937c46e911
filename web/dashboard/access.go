package dashboard

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// accessPages serves the access pages: pairing requests and grants. Package web
// itself serves the API tokens, which access.js asks it for.
type accessPages struct {
	*pages
	pairing   web.Pairing
	grants    web.Grants
	directory web.Directory
	system    web.System
}

func (b *accessPages) routes() []web.Route {
	return []web.Route{
		b.screen("/ui/access", "access", b.everything),
		b.part("/ui/access/people", "access", "people", b.people),
		b.act("POST /ui/access/approve", web.Admin, b.approve),
		b.act("POST /ui/access/deny", web.Admin, b.deny),
		b.act("POST /ui/access/allow", web.Admin, b.allow),
		b.act("POST /ui/access/revoke", web.Admin, b.revoke),
	}
}

// An accessView lists grants and pairing requests.
type accessView struct {
	viewer
	Pairings []pairingView
	Grants   []grantView
	Doors    []string // the connectors that unknown users can reach
	Words    string   // what happens to messages of unknown users
	// People and More are for administrators, when the page is opened.
	People []overview.Person
	More   int
}

// Shown is the name that the platform reported; it is not verified. Only an
// administrator sees the code.
type (
	pairingView struct {
		storage.Pairing
		Shown string
	}
	grantView struct {
		storage.Grant
		Shown string
	}
)

func (b *accessPages) people(r *http.Request) (any, error) {
	pairings, err := b.pairing.Pairings(r.Context())
	if err != nil {
		return nil, err
	}
	grants, err := b.grants.Grants(r.Context())
	if err != nil {
		return nil, err
	}
	status, err := b.system.Status(r.Context())
	return viewAccess(viewerOf(r), pairings, grants, status, claybot.Now()), err
}

// everything is people with the directory of people, which follows no change: it reads the agents of
// all people.
func (b *accessPages) everything(r *http.Request) (any, error) {
	page, err := b.people(r)
	v, ok := page.(accessView)
	if err != nil || !ok || !v.Administers() {
		return page, err
	}
	v.People, v.More, err = b.directory.ListPeople(r.Context())
	return v, err
}

func viewAccess(who viewer, pairings []storage.Pairing, grants []storage.Grant, s overview.Status, now claybot.Time) accessView {
	v := accessView{viewer: who, Words: modeWords(s.Access.Mode)}
	for _, p := range pairings {
		if !who.Administers() {
			p.Code = ""
		}
		if p.Expires == 0 || p.Expires > now {
			v.Pairings = append(v.Pairings, pairingView{p, cmp.Or(connectors.OneLine(p.Name, 60), "no name")})
		}
	}
	for _, g := range grants {
		v.Grants = append(v.Grants, grantView{g, connectors.OneLine(g.Name, 60)})
	}
	slices.SortStableFunc(v.Grants, func(a, b grantView) int {
		return cmp.Or(strings.Compare(a.Connector, b.Connector), cmp.Compare(b.At, a.At))
	})
	for _, c := range s.Connectors {
		if !builtIn[c.Name] {
			v.Doors = append(v.Doors, c.Name)
		}
	}
	return v
}

func modeWords(m people.AccessMode) string {
	return cmp.Or(accessModes[m], accessModes[people.AccessPairing])
}

// builtIn are the connectors that unknown users cannot reach.
var builtIn = map[string]bool{
	"web": true, "terminal": true, "api": true, string(claybot.AgentCron): true, string(claybot.AgentHeartbeat): true,
}

func (b *accessPages) approve(r *http.Request) (string, error) {
	p, err := b.pairing.Approve(r.Context(), code(r))
	return fmt.Sprintf(doneApproved, cmp.Or(connectors.OneLine(p.Name, 60), p.UserID)), codeProblem(err)
}

func (b *accessPages) deny(r *http.Request) (string, error) {
	return doneDenied, codeProblem(b.pairing.Deny(r.Context(), code(r)))
}

// code returns the pairing code of the form, normalized.
func code(r *http.Request) string { return strings.ToUpper(strings.TrimSpace(r.Form.Get("code"))) }

func codeProblem(err error) error {
	if errors.Is(err, storage.ErrNotFound) {
		return errCode
	}
	return err
}

func (b *accessPages) allow(r *http.Request) (string, error) {
	connector, subject := strings.TrimSpace(r.Form.Get("connector")), strings.TrimSpace(r.Form.Get("subject"))
	if connector == "" || subject == "" {
		return "", errNoSubject
	}
	return fmt.Sprintf(doneAllowed, connectors.OneLine(subject, 60)), b.grants.Allow(r.Context(), connector, subject)
}

func (b *accessPages) revoke(r *http.Request) (string, error) {
	out, err := b.grants.Revoke(r.Context(), r.Form.Get("connector"), r.Form.Get("subject"))
	if errors.Is(err, storage.ErrNotFound) {
		err = errNoGrant
	}
	return cmp.Or(out.Still, doneRevoked), err
}

package dashboard

import (
	"cmp"
	"errors"
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

// accessPages are the pages of who may write to agents.
type accessPages struct {
	*pages
	access web.Access
	system web.System
}

// accessRoutes are the page of who may come in. The tokens of programs belong
// to the door, see package web: access.js asks it for them.
func (b *accessPages) routes() []web.Route {
	return []web.Route{
		b.screen("/ui/access", "access", b.people),
		b.part("/ui/access/people", "access", "people", b.people),
		b.act("POST /ui/access/approve", web.Admin, b.approve),
		b.act("POST /ui/access/deny", web.Admin, b.deny),
		b.act("POST /ui/access/allow", web.Admin, b.allow),
		b.act("POST /ui/access/revoke", web.Admin, b.revoke),
	}
}

// An accessView is who may come in and who asks to.
type accessView struct {
	viewer
	Pairings []pairingView
	Grants   []grantView
	Doors    []string // the connectors through which people come
	Mode     people.AccessMode
	Words    string // what becomes of strangers
	Refused  int64
}

// A pairingView is a stranger who asks to be let in. Only an administrator sees
// the code.
type pairingView struct {
	storage.Pairing
	Shown string // the name that the platform showed, which proves nothing
}

// A grantView is somebody who was let in.
type grantView struct {
	storage.Grant
	Shown string
}

func (b *accessPages) people(r *http.Request) (any, error) {
	pairings, err := b.access.Pairings(r.Context())
	if err != nil {
		return nil, err
	}
	grants, err := b.access.Grants(r.Context())
	if err != nil {
		return nil, err
	}
	status, err := b.system.Status(r.Context())
	if err != nil {
		return nil, err
	}
	return viewAccess(viewerOf(r), pairings, grants, status, claybot.Now()), nil
}

func viewAccess(who viewer, pairings []storage.Pairing, grants []storage.Grant, s overview.Status, now claybot.Time) accessView {
	v := accessView{viewer: who, Mode: s.Access.Mode, Words: modeWords(s.Access.Mode), Refused: s.Access.Refused}
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

// modeWords says what becomes of strangers who write.
func modeWords(m people.AccessMode) string {
	switch m {
	case people.AccessOpen:
		return "Everybody may write: access is open in the configuration."
	case people.AccessAllowlist:
		return "Strangers are refused without a word: access is an allow list in the configuration. Let people in by their ids below."
	}
	return "Strangers who write get a code, and appear here."
}

// builtIn are the connectors through which no strangers come.
var builtIn = map[string]bool{
	"web": true, "terminal": true, "api": true, string(claybot.AgentCron): true, string(claybot.AgentHeartbeat): true,
}

// approve lets in whoever has a code.
func (b *accessPages) approve(r *http.Request) (string, error) {
	p, err := b.access.Approve(r.Context(), code(r))
	if err != nil {
		return "", codeProblem(err)
	}
	return cmp.Or(connectors.OneLine(p.Name, 60), p.UserID) + " is let in and was told so.", nil
}

func (b *accessPages) deny(r *http.Request) (string, error) {
	return "The request is denied.", codeProblem(b.access.Deny(r.Context(), code(r)))
}

// code is a pairing code as people type it.
func code(r *http.Request) string { return strings.ToUpper(strings.TrimSpace(r.Form.Get("code"))) }

func codeProblem(err error) error {
	if errors.Is(err, storage.ErrNotFound) {
		return &web.Problem{Status: http.StatusNotFound, Code: "not_found", Message: "There is no such code; it may be older than an hour.", Fix: "Ask the person to write again."}
	}
	return err
}

// allow lets somebody in by id.
func (b *accessPages) allow(r *http.Request) (string, error) {
	connector, subject := strings.TrimSpace(r.Form.Get("connector")), strings.TrimSpace(r.Form.Get("subject"))
	if connector == "" || subject == "" {
		return "", refused(http.StatusBadRequest, "Give the connector and the id.", "")
	}
	return connectors.OneLine(subject, 60) + " may write now.", b.access.Allow(r.Context(), connector, subject)
}

// revoke takes a grant back.
func (b *accessPages) revoke(r *http.Request) (string, error) {
	still, err := b.access.Revoke(r.Context(), r.Form.Get("connector"), r.Form.Get("subject"))
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return "", &web.Problem{Status: http.StatusNotFound, Code: "not_found", Message: "No user or channel with that id has access.", Fix: "It may have been removed in the meantime."}
	case err != nil:
		return "", err
	}
	return cmp.Or(still, "Done. Messages from there are refused from now on."), nil
}

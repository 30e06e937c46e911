package api

import (
	"errors"
	"net/http"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

var (
	noCode   = hint{"No such code; codes expire after an hour.", "Ask the user to send another message."}
	noPerson = hint{"No user or channel with that id has access.", "GET /pairing lists who has."}
)

// access serves unknown users' requests for access and the users with access.
type access struct {
	pairing web.Pairing
	grants  web.Grants
}

func (a access) operations() []operation {
	revoked := []answer{
		{status: http.StatusNoContent, about: "The user or channel has no access any more."},
		{status: http.StatusOK, value: web.Revoked{}, about: "The grant is revoked, but a setting still gives access."},
	}
	return operation{tag: "pairing"}.like(
		returns(http.StatusOK, op("listPairing", web.Read, "GET /pairing", "List pairing requests, and users and channels with access."), a.list),
		takes(http.StatusAccepted, op("decide", web.Admin, "POST /pairing", "Approve or deny a request by its code, grant access by id, or make a pairing link.").
			failing(http.StatusNotFound, http.StatusConflict, http.StatusTooManyRequests).unknown(noCode), a.decide),
		op("revoke", web.Admin, "DELETE /pairing", "Revoke access that was granted by code or by ID.").
			query(param{name: "connector", about: "For example telegram."}, param{name: "subject", about: "The platform's ID of the user or the group."}).
			unknown(noPerson).failing(http.StatusNotFound, http.StatusConflict).served(a.revokeByQuery, revoked...),
		op("revokePerson", web.Admin, "DELETE /pairing/{person}", "Revoke the access of connector:subject.").
			unknown(noPerson).failing(http.StatusNotFound, http.StatusConflict).served(a.revokePerson, revoked...),
	)
}

func (a access) list(r *http.Request) (none web.PairingList, err error) {
	all, err := a.pairing.Pairings(r.Context())
	if err != nil {
		return none, err
	}
	grants, err := a.grants.Grants(r.Context())
	if err != nil {
		return none, err
	}
	now := claybot.Now()
	open := []web.PairingView{}
	for _, p := range all {
		if p.Expires != 0 && p.Expires <= now {
			continue
		}
		v := web.PairingView(p)
		if !web.CallerOf(r).Scope.Allows(web.Admin) {
			v.Code = ""
		}
		open = append(open, v)
	}
	out := web.PairingList{Pairings: open, Grants: orEmpty(grants)}
	if web.CallerOf(r).Scope.Allows(web.Admin) {
		for _, g := range a.pairing.Redeemed() {
			out.Redeemed = append(out.Redeemed, web.Redeemed{Code: g.Invitation, Connector: g.Connector, Subject: g.Subject, Name: g.Name})
		}
	}
	return out, nil
}

func (a access) decide(r *http.Request, in web.Decision) (out web.Decided, err error) {
	in.Code = strings.TrimSpace(in.Code)
	byCode := in.Code != "" && in.Approve != nil && in.Connector == "" && in.Subject == ""
	byID := in.Connector != "" && in.Subject != "" && in.Code == "" && in.Approve == nil
	switch {
	case in == web.Decision{Invite: in.Invite} && in.Invite != "":
		var made web.Invitation
		made, err = a.pairing.Invite(r.Context(), in.Invite)
		out.Invitation = &made
	case in.Invite != "":
		return out, bad(`Give {"invite"} alone.`, "")
	case byCode && *in.Approve:
		var p storage.Pairing
		p, err = a.pairing.Approve(r.Context(), in.Code)
		out.Pairing = &p
	case byCode:
		out.Denied, err = in.Code, a.pairing.Deny(r.Context(), in.Code)
	case byID:
		out.Granted, err = in.Connector+":"+in.Subject, a.grants.Allow(r.Context(), in.Connector, in.Subject)
	default:
		return out, bad(`Give {"code", "approve"} or {"connector", "subject"}.`, "")
	}
	var no web.Refusal
	if errors.As(err, &no) {
		return out, &web.Problem{Status: http.StatusBadRequest, Code: "refused", Message: string(no)}
	}
	return out, err
}

func (a access) revokeByQuery(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	return a.revoke(w, r, q.Get("connector"), q.Get("subject"))
}

func (a access) revokePerson(w http.ResponseWriter, r *http.Request) error {
	connector, subject, _ := strings.Cut(r.PathValue("person"), ":")
	return a.revoke(w, r, connector, subject)
}

func (a access) revoke(w http.ResponseWriter, r *http.Request, connector, subject string) error {
	if connector == "" || subject == "" {
		return bad("connector or subject is missing.", "For example DELETE /pairing/telegram:123456.")
	}
	out, err := a.grants.Revoke(r.Context(), connector, subject)
	if err != nil {
		return err
	}
	if out.Still != "" {
		return reply(w, http.StatusOK, out)
	}
	return noContent(w)
}

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
	noCode   = hint{"There is no such code; it may be older than an hour.", "Ask the person to write again."}
	noPerson = hint{"Nobody with that id was let in.", "GET /pairing lists who was."}
)

type (
	pairingList struct {
		Pairings []pairingView   `json:"pairings" doc:"Who asks to be let in."`
		Grants   []storage.Grant `json:"grants" doc:"Who was let in."`
	}
	// A pairingView is who asks to be let in, with the code for those who may
	// decide.
	pairingView struct {
		Code      string       `json:"code,omitempty" doc:"Only for the scope admin."`
		Connector string       `json:"connector"`
		ChannelID string       `json:"channelId"`
		UserID    string       `json:"userId"`
		Name      string       `json:"name,omitempty"`
		At        claybot.Time `json:"at"`
		Expires   claybot.Time `json:"expires"`
	}
	// A decision ends a request by its code, or lets somebody in by id.
	decision struct {
		Code      string `json:"code,omitempty" doc:"That the person was given; with approve."`
		Approve   *bool  `json:"approve,omitempty"`
		Connector string `json:"connector,omitempty" doc:"With subject, instead of code: lets somebody in without a code."`
		Subject   string `json:"subject,omitempty" doc:"The platform's id of a person or a group."`
	}
	// A decided is what came of a decision: the request, or who was let in.
	decided struct {
		*storage.Pairing
		Denied  string `json:"denied,omitempty"`
		Granted string `json:"granted,omitempty" doc:"connector:subject"`
	}
	revoked struct {
		Still string `json:"still" doc:"What lets the person in all the same."`
	}
)

func (a *api) pairingOperations() []operation {
	revoke := operation{
		method: http.MethodDelete, tag: "pairing", scope: web.Admin, missing: noPerson,
		answers: []answer{
			{status: http.StatusNoContent, about: "The person has no access any more."},
			{status: http.StatusOK, value: revoked{}, about: "It is taken back, but something else lets the person in."},
		},
		fails: []int{http.StatusNotFound, http.StatusConflict},
	}
	byQuery, byPath := revoke, revoke
	byQuery.id, byQuery.path, byQuery.serve = "revoke", "/pairing", a.revokeByQuery
	byQuery.summary = "Take access back that was given by a code or by id."
	byQuery.params = []param{{name: "connector", about: "For example telegram."}, {name: "subject", about: "The platform's id of the person or the group."}}
	byPath.id, byPath.path, byPath.serve = "revokePerson", "/pairing/{person}", a.revokePerson
	byPath.summary = "The same, for connector:subject."
	return []operation{
		{
			id: "listPairing", method: http.MethodGet, path: "/pairing", tag: "pairing", scope: web.Read,
			summary: "Who asks to be let in, and who was.", answers: []answer{{status: http.StatusOK, value: pairingList{}}}, serve: a.listPairing,
		},
		{
			id: "decide", method: http.MethodPost, path: "/pairing", tag: "pairing", scope: web.Admin,
			summary: "Approve or deny a request by its code, or let somebody in by id.", body: decision{},
			answers: []answer{{status: http.StatusAccepted, value: decided{}}},
			fails:   []int{http.StatusNotFound, http.StatusConflict, http.StatusTooManyRequests}, missing: noCode, serve: a.decide,
		},
		byQuery, byPath,
	}
}

func (a *api) listPairing(w http.ResponseWriter, r *http.Request) error {
	all, err := a.Desk.Pairings(r.Context())
	if err != nil {
		return err
	}
	grants, err := a.Desk.Grants(r.Context())
	if err != nil {
		return err
	}
	now := claybot.Now()
	open := []pairingView{}
	for _, p := range all {
		if p.Expires != 0 && p.Expires <= now {
			continue
		}
		v := pairingView(p)
		if !web.CallerOf(r).Scope.Allows(web.Admin) {
			v.Code = ""
		}
		open = append(open, v)
	}
	return reply(w, http.StatusOK, pairingList{open, orEmpty(grants)})
}

func (a *api) decide(w http.ResponseWriter, r *http.Request) error {
	var in decision
	if err := readBody(r, &in); err != nil {
		return err
	}
	in.Code = strings.TrimSpace(in.Code)
	byCode := in.Code != "" && in.Approve != nil && in.Connector == "" && in.Subject == ""
	byID := in.Connector != "" && in.Subject != "" && in.Code == "" && in.Approve == nil
	var out decided
	var err error
	switch {
	case byCode && *in.Approve:
		var p storage.Pairing
		p, err = a.Desk.Approve(r.Context(), in.Code)
		out.Pairing = &p
	case byCode:
		out.Denied, err = in.Code, a.Desk.Deny(r.Context(), in.Code)
	case byID:
		out.Granted, err = in.Connector+":"+in.Subject, a.Desk.Allow(r.Context(), in.Connector, in.Subject)
	default:
		return bad(`Give {"code", "approve"} or {"connector", "subject"}.`, "")
	}
	var no web.Refusal
	if errors.As(err, &no) {
		return &problem{status: http.StatusBadRequest, Code: "refused", Message: string(no)}
	}
	if err != nil {
		return err
	}
	return reply(w, http.StatusAccepted, out)
}

func (a *api) revokeByQuery(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	return a.revoke(w, r, q.Get("connector"), q.Get("subject"))
}

func (a *api) revokePerson(w http.ResponseWriter, r *http.Request) error {
	connector, subject, _ := strings.Cut(r.PathValue("person"), ":")
	return a.revoke(w, r, connector, subject)
}

func (a *api) revoke(w http.ResponseWriter, r *http.Request, connector, subject string) error {
	if connector == "" || subject == "" {
		return bad("Name the person by connector and subject.", "DELETE /pairing/telegram:123456, for example.")
	}
	still, err := a.Desk.Revoke(r.Context(), connector, subject)
	if err != nil {
		return err
	}
	if still != "" {
		return reply(w, http.StatusOK, revoked{still})
	}
	return noContent(w)
}

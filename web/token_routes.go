package web

import (
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// A TokenView is a token for display. Only the response that creates it has the secret.
type TokenView struct {
	Name    string       `json:"name"`
	Scope   Scope        `json:"scope"`
	Legacy  bool         `json:"legacy,omitempty"` // older than the scope approve, and may approve
	Created claybot.Time `json:"created,omitempty"`
	Expires claybot.Time `json:"expires,omitempty"`
	Expired bool         `json:"expired,omitempty"`
	Token   string       `json:"token,omitempty"`
	Limits
}

// A TokenList is the tokens, the owner's first.
type TokenList struct {
	Tokens []TokenView `json:"tokens"`
}

func viewOf(t token, secret string) TokenView {
	scope := t.allows()
	if t.legacy() {
		scope = t.Scope
	}
	return TokenView{t.Name, scope, t.legacy(), t.Created, t.Expires, t.over(time.Now()), secret, t.Limits}
}

type tokenAPI struct {
	auth *auth
	log  *slog.Logger
}

func (s tokenAPI) routes() []Route {
	route := func(pattern string, h http.HandlerFunc) Route {
		return Route{Pattern: pattern, Scope: Admin, Handler: h, brief: true}
	}
	return []Route{
		route("GET /tokens", s.list),
		route("POST /tokens", s.create),
		route("POST /tokens/{name}/rotate", s.rotate),
		route("DELETE /tokens/{name}", s.revoke),
	}
}

func (s tokenAPI) list(w http.ResponseWriter, _ *http.Request) {
	out := []TokenView{{Name: owner, Scope: Admin}}
	for _, t := range s.auth.list() {
		out = append(out, viewOf(t, ""))
	}
	Answer(w, http.StatusOK, TokenList{out})
}

// create creates a token: {"name": "ci", "scope": "read", "expires": 1767225600000}. Limits
// are optional.
func (s tokenAPI) create(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Name    string       `json:"name"`
		Scope   Scope        `json:"scope"`
		Expires claybot.Time `json:"expires"`
		Limits
	}
	if !Decode(w, r, &in) {
		return
	}
	t := token{Name: in.Name, Scope: in.Scope, Expires: in.Expires, Limits: in.Limits}
	err := t.check()
	if err == nil && (t.Expires < 0 || t.over(time.Now())) {
		err = errors.New("expires must be a time to come, in milliseconds since 1970")
	}
	if err != nil {
		Fail(w, http.StatusBadRequest, "bad_request", err.Error()+".", "")
		return
	}
	t, secret, err := s.auth.create(t)
	if s.failed(w, "create token", err, "A token with that name exists.", "Rotate it, or choose another name.") {
		return
	}
	s.log.Info("token created", "token", t.Name, "scope", string(t.allows()), "by", CallerOf(r).Name)
	Answer(w, http.StatusCreated, viewOf(t, secret))
}

// rotate gives a token a new secret. It does not show the owner's, which is in its file.
func (s tokenAPI) rotate(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	out := TokenView{Name: owner, Scope: Admin}
	var err error
	if name == owner {
		err = s.auth.rotateOwner()
	} else {
		var t token
		var secret string
		t, secret, err = s.auth.rotate(name)
		out = viewOf(t, secret)
	}
	if s.failed(w, "rotate token", err, "The token has expired.", "Revoke it and create a new one.") {
		return
	}
	s.log.Info("token rotated", "token", out.Name, "by", CallerOf(r).Name)
	Answer(w, http.StatusOK, out)
}

func (s tokenAPI) revoke(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if name == owner {
		Fail(w, http.StatusConflict, "refused", "The owner's token cannot be revoked.", "Rotate it.")
		return
	}
	if s.failed(w, "revoke token", s.auth.revoke(name), "", "") {
		return
	}
	s.log.Info("token revoked", "token", name, "by", CallerOf(r).Name)
	w.WriteHeader(http.StatusNoContent)
}

// failed responds to err, if it is not nil. conflict and fix are for a token in the wrong
// state for the operation.
func (s tokenAPI) failed(w http.ResponseWriter, doing string, err error, conflict, fix string) bool {
	var no Refusal
	switch {
	case err == nil:
		return false
	case errors.As(err, &no):
		Fail(w, http.StatusConflict, "refused", string(no), "")
	case errors.Is(err, storage.ErrNotFound):
		Fail(w, http.StatusNotFound, "not_found", "No token with that name.", "Run claybot token list.")
	case errors.Is(err, storage.ErrState):
		Fail(w, http.StatusConflict, "conflict", conflict, fix)
	default:
		unwritten(w, s.log, doing, err)
	}
	return true
}

// unwritten responds that a change of access could not be written to its file.
func unwritten(w http.ResponseWriter, log *slog.Logger, doing string, err error) {
	code, message, fix := "store_down", "The store does not respond; nothing was changed.", "Try again later."
	switch full, returns := errors.Is(err, storage.ErrFull), errors.Is(err, errReturns); {
	case full && returns:
		code, message = "disk_full", "It has ended, but the data directory is full or read-only: a restart would restore it."
		fix = "Free up space; claybot retries the write."
	case full:
		code, message, fix = "disk_full", "The data directory is full or read-only; nothing was changed.", "Free up space and try again."
	case returns:
		message, fix = "It has ended on this member, but the store does not respond: other members still accept it.", "claybot retries."
	}
	log.Error("request failed", "doing", doing, "err", err)
	Fail(w, http.StatusServiceUnavailable, code, message, fix)
}

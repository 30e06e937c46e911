package web

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/storage"
)

// chatName is the connector whose conversations the page lists.
const chatName = "web"

func (s *Server) status(w http.ResponseWriter, r *http.Request) {
	v, err := s.cfg.System.Status(r.Context())
	if err != nil {
		s.internal(w, "read status", err)
		return
	}
	answer(w, http.StatusOK, v)
}

// conversations lists what the person who asks talked about in the page, the
// newest first.
func (s *Server) conversations(w http.ResponseWriter, r *http.Request) {
	type view struct {
		ID string       `json:"id"`
		At claybot.Time `json:"at"`
	}
	all, ok := s.sortedAgents(w, r)
	if !ok {
		return
	}
	out := []view{}
	for _, e := range all {
		if e.Descriptor.Connector == chatName && e.Descriptor.UserID == User(r) {
			out = append(out, view{e.Descriptor.ChannelID, e.LastUserAt})
		}
	}
	answer(w, http.StatusOK, map[string]any{"conversations": out})
}

func (s *Server) sortedAgents(w http.ResponseWriter, r *http.Request) ([]storage.IndexEntry, bool) {
	all, err := s.cfg.System.Agents(r.Context())
	if err != nil {
		s.internal(w, "list agents", err)
		return nil, false
	}
	slices.SortFunc(all, func(a, b storage.IndexEntry) int {
		return cmp.Or(cmp.Compare(b.LastUserAt, a.LastUserAt), cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return all, true
}

// pairing lists who waits for a decision and who was let in.
func (s *Server) pairing(w http.ResponseWriter, r *http.Request) {
	all, err := s.cfg.System.Pairings(r.Context())
	if err != nil {
		s.internal(w, "list pairings", err)
		return
	}
	grants, err := s.cfg.System.Grants(r.Context())
	if err != nil {
		s.internal(w, "list grants", err)
		return
	}
	now := claybot.Now()
	open := slices.DeleteFunc(slices.Clone(all), func(p storage.Pairing) bool { return p.Expires != 0 && p.Expires <= now })
	answer(w, http.StatusOK, map[string]any{"pairings": orEmpty(open), "grants": orEmpty(grants)})
}

// orEmpty makes an empty list of JSON out of none.
func orEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// decide ends a request by its code, or lets somebody in by id:
//
//	{"code": "K7Q2", "approve": true}
//	{"connector": "telegram", "subject": "4711"}
func (s *Server) decide(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Code      string `json:"code"`
		Approve   *bool  `json:"approve"`
		Connector string `json:"connector"`
		Subject   string `json:"subject"`
	}
	if !decode(w, r, &in) {
		return
	}
	in.Code = strings.TrimSpace(in.Code)
	byCode := in.Code != "" && in.Approve != nil && in.Connector == "" && in.Subject == ""
	byID := in.Connector != "" && in.Subject != "" && in.Code == "" && in.Approve == nil
	switch {
	case byCode && *in.Approve:
		p, err := s.cfg.System.Approve(r.Context(), in.Code)
		s.decided(w, "approve pairing", p, err)
	case byCode:
		s.decided(w, "deny pairing", map[string]string{"denied": in.Code}, s.cfg.System.Deny(r.Context(), in.Code))
	case byID:
		err := s.cfg.System.Allow(r.Context(), in.Connector, in.Subject)
		s.decided(w, "allow", map[string]string{"connector": in.Connector, "subject": in.Subject}, err)
	default:
		fail(w, http.StatusBadRequest, "bad_request", `Give {"code", "approve"} or {"connector", "subject"}.`)
	}
}

// decided answers with v, or with what went wrong.
func (s *Server) decided(w http.ResponseWriter, what string, v any, err error) {
	var no Refusal
	switch {
	case errors.As(err, &no):
		fail(w, http.StatusBadRequest, "refused", string(no))
	case errors.Is(err, agentsystem.ErrCodesLocked):
		fail(w, http.StatusTooManyRequests, "locked", "There were too many wrong codes; try again in some minutes.")
	case errors.Is(err, storage.ErrNotFound):
		fail(w, http.StatusNotFound, "not_found", "There is no such code; it may be older than an hour. Ask the person to write again.")
	case err != nil:
		s.internal(w, what, err)
	default:
		answer(w, http.StatusOK, v)
	}
}

// revoke takes a grant back: ?connector=&subject=. The answer is empty, or says
// in {"still": "…"} what lets the person in all the same.
func (s *Server) revoke(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("connector") == "" || q.Get("subject") == "" {
		fail(w, http.StatusBadRequest, "bad_request", "Give ?connector= and subject=.")
		return
	}
	still, err := s.cfg.System.Revoke(r.Context(), q.Get("connector"), q.Get("subject"))
	var no Refusal
	switch {
	case errors.As(err, &no):
		fail(w, http.StatusConflict, "refused", string(no))
	case errors.Is(err, storage.ErrNotFound):
		fail(w, http.StatusNotFound, "not_found", "Nobody with that id was let in.")
	case err != nil:
		s.internal(w, "revoke", err)
	case still != "":
		answer(w, http.StatusOK, map[string]string{"still": still})
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

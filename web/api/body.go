package api

import (
	"net/http"
	"strconv"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/lazyregexp"
	"github.com/claybot/claybot/web"
)

// Limits for the rows of a page.
const (
	pageDefault = 50
	pageLimit   = 500
)

// at most 128 bytes
var keyForm = lazyregexp.New(`^[A-Za-z0-9._:-]+$`) // and at most 128 bytes

// limitOf returns the requested number of rows of a page, 0 if it is invalid.
func limitOf(r *http.Request, otherwise int) int {
	s := r.URL.Query().Get("limit")
	if s == "" {
		return otherwise
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return min(max(n, 0), pageLimit)
}

// cut returns a page of rows and the cursor of the next one, empty on the last page.
func cut[T any](rows []T, limit int, cursor func(T) string) (page []T, next string) {
	if len(rows) > limit {
		rows = rows[:limit]
		next = cursor(rows[limit-1])
	}
	return orEmpty(rows), next
}

// orEmpty replaces nil by an empty slice, which is [] in JSON.
func orEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// each maps rows by f. Its result is never nil.
func each[T, V any](rows []T, f func(T) V) []V {
	out := make([]V, len(rows))
	for i, x := range rows {
		out[i] = f(x)
	}
	return out
}

// reply answers in JSON.
func reply(w http.ResponseWriter, status int, v any) error {
	web.Answer(w, status, v)
	return nil
}

// noContent answers without content.
func noContent(w http.ResponseWriter) error {
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func agentOf(r *http.Request) claybot.AgentID { return claybot.AgentID(r.PathValue("agent")) }

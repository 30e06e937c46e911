package web

import (
	"net/http"
	"strconv"
	"strings"
)

// openAIPaths begins the paths that clients of OpenAI's API use.
const openAIPaths = "/v1/"

func forOpenAI(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, openAIPaths) }

// openAI gives each error on the paths of OpenAI's API the shape that its clients read,
// and the header that they obey.
func openAI(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if forOpenAI(r) {
			w = openAIErrors{w}
		}
		next.ServeHTTP(w, r)
	})
}

// A failer has a shape of its own for errors.
type failer interface {
	fail(status int, code, message, fix string)
}

// failerOf is the one that answers through w; nil where errors have the usual shape.
func failerOf(w http.ResponseWriter) failer {
	for {
		switch x := w.(type) {
		case failer:
			return x
		case interface{ Unwrap() http.ResponseWriter }:
			w = x.Unwrap()
		default:
			return nil
		}
	}
}

type openAIErrors struct{ http.ResponseWriter }

// Unwrap is for http.ResponseController.
func (w openAIErrors) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w openAIErrors) fail(status int, code, message, fix string) {
	kind := "invalid_request_error"
	if status >= http.StatusInternalServerError {
		kind = "server_error"
	}
	again := status == http.StatusTooManyRequests || status >= http.StatusInternalServerError
	w.Header().Set("X-Should-Retry", strconv.FormatBool(again))
	Answer(w, status, map[string]any{"error": map[string]any{
		"message": strings.TrimSpace(message + " " + fix), "type": kind, "param": nil, "code": code,
	}})
}

package web

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
)

// Answer writes v as a JSON response.
func Answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may be gone
}

// Words writes a plain-text response.
func Words(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n") // the client may be gone
}

// Fail writes an error in the common format {"error":{"code","message","fix"}}.
// fix is the next step and may be empty. Clients of OpenAI's API get OpenAI's
// format.
func Fail(w http.ResponseWriter, status int, code, message, fix string) {
	if f := failerOf(w); f != nil {
		f.fail(status, code, message, fix)
		return
	}
	Answer(w, status, Failure{Problem{Code: code, Message: message, Fix: fix}})
}

// Internal logs an error and responds without its text.
func Internal(w http.ResponseWriter, log *slog.Logger, what string, err error) {
	log.Error("request failed", "doing", what, "err", err)
	Fail(w, http.StatusInternalServerError, "internal", "Request failed; see the log.", "Try again in a moment.")
}

// Decode reads one JSON object into v. On failure it writes the error response and
// returns false.
func Decode(w http.ResponseWriter, r *http.Request, v any) bool {
	err := ReadJSON(r, v)
	if err == nil {
		return true
	}
	p := *Explain(err)
	if strings.HasPrefix(p.Message, invalidJSON) {
		p.Message = invalidJSON + "." // the position could quote a secret
	}
	Fail(w, p.Status, p.Code, p.Message, p.Fix)
	return false
}

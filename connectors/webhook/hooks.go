package webhook

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

// retryAfter is when a sender may repeat what could not be stored, in seconds.
const retryAfter = "5"

// retryFull is that of a workflow that has as many runs as it may have.
const retryFull = "30"

// retryStopped is that of a stopped connector.
const retryStopped = "60"

// Hooks serves the requests to all connectors that take some, at a path with the value {name}: of
// returns the present one of a name, nil for none, and whether it is stopped: then the sender is to
// send again. A name that none has, and that of one that takes no request, get the same answer.
func Hooks(of func(name string) (c connectors.Hooked, stopped bool)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		c, stopped := of(r.PathValue("name"))
		switch {
		case c == nil || c.Limit() <= 0:
		case stopped:
			w.Header().Set("Retry-After", retryStopped)
			answer(w, http.StatusServiceUnavailable, codes[http.StatusServiceUnavailable], "Temporarily unavailable.")
			return
		default:
			c.ServeHTTP(w, r)
			return
		}
		answer(w, http.StatusNotFound, "not_found", "No such path.")
	})
}

// ServeHTTP takes an event.
func (c *Connector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status, words := c.receive(w, r)
	switch status {
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", retryAfter)
	case http.StatusTooManyRequests:
		w.Header().Set("Retry-After", retryFull)
	case http.StatusRequestEntityTooLarge:
		w.Header().Set("Connection", "close") // the rest of the body is not read
	}
	answer(w, status, codes[status], words)
}

var codes = map[int]string{
	http.StatusAccepted: "", http.StatusBadRequest: "bad_request", http.StatusUnauthorized: "signature", http.StatusRequestEntityTooLarge: "too_large",
	http.StatusUnprocessableEntity: "unprocessable", http.StatusTooManyRequests: "flow_full", http.StatusInternalServerError: "internal", http.StatusServiceUnavailable: "unavailable",
}

// answer writes a response in claybot's error format, or an empty object.
func answer(w http.ResponseWriter, status int, code, words string) {
	var v any = struct{}{}
	if code != "" {
		v = map[string]any{"error": map[string]string{"code": code, "message": words}}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may be gone
}

// unstorable reports an error of the message itself: to send it again is useless.
func unstorable(err error) bool {
	var f *storage.Fault
	return errors.As(err, &f) && f.Class == storage.ClassMessage
}

package webhook

import (
	"encoding/json"
	"errors"
	"hash/fnv"
	"io"
	"net/http"
	"time"

	"github.com/claybot/claybot/storage"
)

// retryAfter is when a sender may repeat what could not be stored, in seconds.
const retryAfter = "5"

// Hooks serves the requests of all webhooks, at a path with the value {name}. A name that
// no webhook has, and that of one without a usable secret, get the same answer after the
// same work.
func Hooks(all ...*Connector) http.Handler {
	byName := make(map[string]*Connector)
	limit := int64(DefaultLimit)
	for _, c := range all {
		if limit = max(limit, c.cfg.Limit); c.fault == nil {
			byName[c.cfg.Name] = c
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		c := byName[r.PathValue("name")]
		if c == nil {
			body, _ := io.ReadAll(http.MaxBytesReader(nil, r.Body, limit)) // as for a hook that is there
			_ = scheme{name: HMAC, key: []byte("none"), header: "none"}.verify(r.Header, body, time.Time{})
			answer(w, http.StatusNotFound, "not_found", "No such path.")
			return
		}
		status, words := c.receive(r)
		switch status {
		case http.StatusServiceUnavailable:
			w.Header().Set("Retry-After", retryAfter)
		case http.StatusRequestEntityTooLarge:
			w.Header().Set("Connection", "close") // the rest of the body is not read
		}
		answer(w, status, codes[status], words)
	})
}

var codes = map[int]string{
	http.StatusAccepted: "", http.StatusBadRequest: "bad_request", http.StatusUnauthorized: "signature", http.StatusRequestEntityTooLarge: "too_large",
	http.StatusUnprocessableEntity: "unprocessable", http.StatusInternalServerError: "internal", http.StatusServiceUnavailable: "unavailable",
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

func laneOf(channel string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(channel)) // never fails
	return int(h.Sum32() % 64)
}

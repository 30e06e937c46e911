package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/claybot/claybot/connectors"
)

// What came of a call.
var (
	ErrCalled = errors.New("it was called before")
	ErrLate   = errors.New("nothing waits for the call any more")
)

// Callbacks take what programs send to addresses that were made for one call each.
type Callbacks struct {
	Limit int64 // bytes of a body, and of the JSON that Take stores
	// Known reports whether the parts of a path are those of an address that was made.
	Known func(ctx context.Context, run, wait, sum string) (bool, error)
	// Take stores what was sent; ErrCalled, ErrLate.
	Take func(ctx context.Context, run, wait string, value json.RawMessage) error

	bodies connectors.Bodies
}

// ServeHTTP takes a call, at a path with the values {run}, {wait} and {sum}. It reads no body for an address that
// was not made. 202 says that the call is stored and counts.
func (c *Callbacks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	status, code, words := c.receive(w, r)
	switch status {
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", retryAfter)
	case http.StatusRequestEntityTooLarge:
		w.Header().Set("Connection", "close") // the rest of the body is not read
	}
	answer(w, status, code, words)
}

func (c *Callbacks) receive(w http.ResponseWriter, r *http.Request) (status int, code, words string) {
	const again = "The call could not be stored; send it again."
	known, err := c.Known(r.Context(), r.PathValue("run"), r.PathValue("wait"), r.PathValue("sum"))
	switch {
	case err != nil:
		return http.StatusServiceUnavailable, "unavailable", again
	case !known:
		return http.StatusNotFound, "not_found", "No such path."
	}
	body, release, err := c.bodies.Read(w, r, c.Limit, true)
	defer release()
	var big *http.MaxBytesError
	switch {
	case errors.As(err, &big):
		return http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("The body is larger than the limit of %d bytes.", min(big.Limit, c.Limit))
	case errors.Is(err, connectors.ErrBodies):
		return http.StatusServiceUnavailable, "unavailable", connectors.Capital(err.Error()) + "."
	case err != nil:
		return http.StatusBadRequest, "bad_request", "The body could not be read completely."
	}
	value := json.RawMessage("null")
	if len(body) > 0 {
		v, err := payload(r.Header.Get("Content-Type"), body)
		if err == nil {
			value, err = json.Marshal(v)
		}
		if err != nil {
			return http.StatusBadRequest, "bad_request", connectors.Capital(err.Error()) + "."
		}
	}
	if int64(len(value)) > c.Limit {
		return http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("The body has %d bytes as JSON; the limit is %d.", len(value), c.Limit)
	}
	switch err := c.Take(r.Context(), r.PathValue("run"), r.PathValue("wait"), value); {
	case errors.Is(err, ErrCalled):
		return http.StatusConflict, "called", "This address was called before; the first call counts."
	case errors.Is(err, ErrLate):
		return http.StatusGone, "late", "Nothing waits for this call any more."
	case unstorable(err):
		return http.StatusUnprocessableEntity, "unprocessable", "This call cannot be stored."
	case err != nil:
		return http.StatusServiceUnavailable, "unavailable", again
	}
	return http.StatusAccepted, "", ""
}

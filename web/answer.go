package web

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
)

// Answer answers in JSON.
func Answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // a client that is gone needs no answer
}

// Words answers in plain text.
func Words(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n") // a client that is gone needs no answer
}

// Fail answers with an error in the one shape that all have:
// {"error":{"code","message","fix"}}. fix says what to do about it; it may be
// empty. Clients of OpenAI's API get OpenAI's shape.
func Fail(w http.ResponseWriter, status int, code, message, fix string) {
	if f := failerOf(w); f != nil {
		f.fail(status, code, message, fix)
		return
	}
	Answer(w, status, Failure{Problem{Code: code, Message: message, Fix: fix}})
}

// Internal logs an error and answers without its text.
func Internal(w http.ResponseWriter, log *slog.Logger, what string, err error) {
	log.Error("request failed", "doing", what, "err", err)
	Fail(w, http.StatusInternalServerError, "internal", "That did not work; the log says why.", "Try again in a moment.")
}

// Decode reads one JSON object into v, or answers why it cannot and returns
// false. Unknown fields are errors; what is wrong is named with its field.
func Decode(w http.ResponseWriter, r *http.Request, v any) bool {
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	err := dec.Decode(v)
	if err == nil {
		if _, more := dec.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("more than one value")
		}
	}
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return true
	case tooLarge(err):
		Fail(w, http.StatusRequestEntityTooLarge, "too_large", "The request is larger than this path takes.", "Send less.")
	case errors.As(err, &wrong) && wrong.Field != "":
		Fail(w, http.StatusBadRequest, "bad_request", "The field "+wrong.Field+" must be "+kind(wrong.Type)+", not "+wrong.Value+".", "")
	case strings.HasPrefix(err.Error(), "json: unknown field"):
		Fail(w, http.StatusBadRequest, "bad_request", "There is no field "+strings.TrimPrefix(err.Error(), "json: unknown field ")+" here.", "")
	default:
		Fail(w, http.StatusBadRequest, "bad_request", "The body is not the JSON object that is expected here.", "")
	}
	return false
}

// kind is what JSON calls a value of a type.
func kind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return kind(t.Elem())
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a text"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	default:
		return "a number in its range"
	}
}

// tooLarge reports whether err says that a body was cut at the cap.
func tooLarge(err error) bool {
	var big *http.MaxBytesError
	return errors.As(err, &big)
}

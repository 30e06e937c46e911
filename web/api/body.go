package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/web"
)

// The rows of a page.
const (
	pageDefault = 50
	pageLimit   = 500
)

// keyForm is what an idempotency key may be.
var keyForm = regexp.MustCompile(`^[A-Za-z0-9._:-]+$`) // and at most 128 bytes

// readBody reads one JSON object into v. What is wrong with it is told with the
// name of the field.
func readBody(r *http.Request, v any) error { return readJSON(r, v, true) }

// readJSON is readBody, that with lenient overlooks fields it does not know.
func readJSON(r *http.Request, v any, strict bool) error {
	b, err := readAll(r)
	if err != nil {
		return err
	}
	return parse(b, v, strict)
}

// readAll reads a body that is not empty.
func readAll(r *http.Request) ([]byte, error) {
	b, err := io.ReadAll(r.Body)
	var big *http.MaxBytesError
	switch {
	case errors.As(err, &big):
		return nil, &web.Problem{
			Status: http.StatusRequestEntityTooLarge, Code: "too_large", Fix: "Send less.",
			Message: fmt.Sprintf("The body is larger than the %d bytes that this path takes.", big.Limit),
		}
	case err != nil:
		return nil, bad("The body could not be read to its end.", "Send it again.")
	case len(bytes.TrimSpace(b)) == 0:
		return nil, bad("The body is empty; a JSON object is expected here.", "GET /openapi.json describes it.")
	}
	return b, nil
}

// parse reads the JSON object b into v.
func parse(b []byte, v any, strict bool) error {
	if first := bytes.TrimSpace(b)[0]; first != '{' && json.Valid(b) {
		return bad("The body must be a JSON object.", "GET /openapi.json describes it.")
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	if strict {
		dec.DisallowUnknownFields()
	}
	err := dec.Decode(v)
	if err == nil {
		if _, more := dec.Token(); !errors.Is(more, io.EOF) {
			return bad("There is something after the JSON object.", "Send one object.")
		}
		return nil
	}
	var wrong *json.UnmarshalTypeError
	var no web.Refusal
	var told *web.Problem
	switch {
	case errors.As(err, &told):
		return told
	case errors.As(err, &no):
		return bad(string(no), "")
	case errors.As(err, &wrong):
		return bad(fmt.Sprintf("The field %s must be %s, not %s.", wrong.Field, inWords(wrong.Type), wrong.Value), "")
	case strings.HasPrefix(err.Error(), "json: unknown field "):
		return bad("There is no field "+strings.TrimPrefix(err.Error(), "json: unknown field ")+" here.", "GET /openapi.json lists the fields.")
	}
	return bad("The JSON is broken "+place(b)+".", "Check commas, quotes and brackets there.")
}

// inWords names a type as JSON knows it.
func inWords(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Int, reflect.Int64, reflect.Int32:
		return "a whole number"
	case reflect.Pointer:
		return inWords(t.Elem())
	default:
		return "a " + t.Kind().String()
	}
}

// place says where broken JSON breaks: in which field, and at which byte.
func place(b []byte) string {
	dec := json.NewDecoder(bytes.NewReader(b))
	var path []string // of the objects and lists that are open
	key := true       // the next string is the name of a field
	var object []bool
	for {
		tok, err := dec.Token()
		if err != nil {
			break
		}
		switch t := tok.(type) {
		case json.Delim:
			if t == '{' || t == '[' {
				path, object, key = append(path, ""), append(object, t == '{'), t == '{'
				continue
			}
			path, object = path[:len(path)-1], object[:len(object)-1]
		case string:
			if key && len(object) > 0 && object[len(object)-1] {
				path[len(path)-1], key = t, false
				continue
			}
		}
		key = len(object) > 0 && object[len(object)-1]
	}
	var names []string
	for _, name := range path {
		if name != "" {
			names = append(names, name)
		}
	}
	at := "at byte " + strconv.FormatInt(dec.InputOffset(), 10)
	if len(names) == 0 {
		return at
	}
	return fmt.Sprintf("in the field %.100s, %s", strings.Join(names, "."), at)
}

// limitOf is how many rows of a page are asked for.
func limitOf(r *http.Request, otherwise int) (int, error) {
	s := r.URL.Query().Get("limit")
	if s == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return 0, bad("limit must be a number from 1.", "")
	}
	return min(n, pageLimit), nil
}

// A page is rows of a list and the cursor of the next page; an empty cursor
// means that there are no more.
func cut[T any](rows []T, limit int, cursor func(T) string) (page []T, next string) {
	if len(rows) > limit {
		rows = rows[:limit]
		next = cursor(rows[limit-1])
	}
	return orEmpty(rows), next
}

// orEmpty makes an empty list of JSON out of none.
func orEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// each is what f makes of each row, an empty list of none.
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

// agentOf is the agent that the path names. An id that cannot be one is unknown
// like any other.
func agentOf(r *http.Request) claybot.AgentID { return claybot.AgentID(r.PathValue("agent")) }

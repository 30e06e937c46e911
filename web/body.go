package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"
)

const invalidJSON = "Invalid JSON"

func badRequest(message, fix string) error {
	return &Problem{Status: http.StatusBadRequest, Code: "bad_request", Message: message, Fix: fix}
}

// ReadJSON reads the JSON object of a request into v. Its error is a *Problem, with
// the name of the field.
func ReadJSON(r *http.Request, v any) error {
	b, err := ReadBody(r)
	if err != nil {
		return err
	}
	return ParseJSON(b, v, true)
}

// ReadBody reads a body that is not empty.
func ReadBody(r *http.Request) ([]byte, error) {
	b, err := io.ReadAll(r.Body)
	var big *http.MaxBytesError
	switch {
	case errors.As(err, &big):
		return nil, &Problem{
			Status: http.StatusRequestEntityTooLarge, Code: "too_large", Fix: "Send less.",
			Message: fmt.Sprintf("The body is larger than the limit of %d bytes.", big.Limit),
		}
	case err != nil:
		return nil, badRequest("The body could not be read completely.", "Send it again.")
	case len(bytes.TrimSpace(b)) == 0:
		return nil, badRequest("The body is empty; send a JSON object.", "See GET /openapi.json.")
	}
	return b, nil
}

// ParseJSON decodes the JSON object b into v. Unknown fields are errors if strict is set.
func ParseJSON(b []byte, v any, strict bool) error {
	if first := bytes.TrimSpace(b)[0]; first != '{' && json.Valid(b) {
		return badRequest("The body must be a JSON object.", "See GET /openapi.json.")
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	if strict {
		dec.DisallowUnknownFields()
	}
	err := dec.Decode(v)
	if err == nil {
		if _, more := dec.Token(); !errors.Is(more, io.EOF) {
			return badRequest("Unexpected data after the JSON object.", "Send one object.")
		}
		return nil
	}
	var wrong *json.UnmarshalTypeError
	var no Refusal
	var told *Problem
	switch {
	case errors.As(err, &told):
		return told
	case errors.As(err, &no):
		return badRequest(string(no), "")
	case errors.As(err, &wrong):
		value, number := strings.CutPrefix(wrong.Value, "number ")
		fix := ""
		if number { // 1e9 is one that Go does not read as such
			fix = "Write it in digits alone."
		}
		return badRequest(fmt.Sprintf("The field %s must be %s, not %s.", wrong.Field, inWords(wrong.Type), value), fix)
	case strings.HasPrefix(err.Error(), "json: unknown field "):
		return badRequest("Unknown field "+strings.TrimPrefix(err.Error(), "json: unknown field ")+".", "See GET /openapi.json.")
	}
	return badRequest(invalidJSON+" "+place(b)+".", "Check commas, quotes and brackets.")
}

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

// place describes the position of a JSON syntax error: the field and the byte.
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

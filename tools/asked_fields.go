package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// lineName is the form of the names that arguments have which stand in lines.
var lineName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,39}$`)

// A field is an argument of a call; its value is a string, a number, a boolean or null.
type field struct {
	name  string
	value any
}

// fieldsOf are arguments that can stand in lines, in their order; ok is false for others.
func fieldsOf(args json.RawMessage) (all []field, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber()
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	for dec.More() {
		t, err := dec.Token()
		name, text := t.(string)
		if err != nil || !text || !lineName.MatchString(name) {
			return nil, false
		}
		value, err := dec.Token()
		if _, nested := value.(json.Delim); err != nil || nested {
			return nil, false
		}
		all = append(all, field{name, value})
	}
	return all, len(all) > 0
}

// lines write arguments as "name: value", each on a line of its own, strings as they are, see
// plainly. The lines of a longer text are below the name, each after two spaces. What would look
// like another value is written as JSON. So arguments that differ are written differently.
func (d *display) lines(fields []field) error {
	seen := make(map[string]bool)
	for i, f := range fields {
		if seen[folded(f.name)] {
			return errors.New("two members differ in capitals only, so it is unclear which one counts")
		}
		seen[folded(f.name)] = true
		if i > 0 {
			d.text("\n")
		}
		d.text(f.name + ":")
		s, text := f.value.(string)
		switch n, number := f.value.(json.Number); {
		case number && len(n) > maxNumber:
			return errors.New("a number is too long to approve")
		case number:
			d.text(" " + string(n))
		case !text:
			d.text(" " + string(scalar(f.value)))
		case strings.Contains(s, "\n"):
			d.text("\n  " + strings.ReplaceAll(plainly(s), "\n", "\n  "))
		case quoted(s):
			d.text(" ")
			d.literal(s, 0)
		default:
			d.text(" " + edged(s))
		}
	}
	return nil
}

// quoted reports whether a string on a line would look like no string, or like another one.
func quoted(s string) bool {
	return s == "" || json.Valid([]byte(s)) || s[0] == '"'
}

// edged is plainly for a text on a line: spaces at its edges are their number.
func edged(s string) string {
	text := strings.TrimLeft(s, " ")
	if n := len(s) - len(text); n > 0 && text != "" {
		return fmt.Sprintf("⟨%d spaces⟩", n) + plainly(text)
	}
	return plainly(s)
}

// InWords are arguments of a call on one line, for texts that only name it: the value of a single
// argument, several ones with their names, or JSON where they cannot stand in lines. It is empty
// for no arguments.
func InWords(args string) string {
	if strings.TrimSpace(args) == "{}" {
		return ""
	}
	fields, ok := fieldsOf(json.RawMessage(args))
	if !ok {
		return args
	}
	all := make([]string, len(fields))
	for i, f := range fields {
		s, text := f.value.(string)
		if !text || strings.Contains(s, "\n") || len(fields) > 1 && (quoted(s) || s != strings.TrimSpace(s)) {
			b, _ := json.Marshal(f.value) // a scalar always marshals
			s = string(b)
		}
		if all[i] = s; len(fields) > 1 {
			all[i] = f.name + ": " + s
		}
	}
	return strings.Join(all, ", ")
}

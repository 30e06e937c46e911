// Package prompts fills templates of prompts in the syntax of Jinja2.
//
// The language is a subset of Jinja2 that this package parses and evaluates itself.
// Libraries such as gonja and pongo2 do not fit: a template that a user wrote could
// reach files, other templates and methods of Go values, and nothing limits the steps
// or the memory of a template, which a time-out cannot make up for, since no goroutine
// can be stopped from outside. So this package guarantees that
//
//   - a template sees plain values only: no file, no other template, and no method or
//     field of a Go value;
//   - every template ends: output, loop turns and all other work are counted, not
//     timed, so the same template gives the same result on a busy machine;
//   - a warning or an error names each undefined expression with its line.
//
// Supported are {{ expressions }}, if, for, set, raw and comments; attributes, indexes,
// slices, comparisons, arithmetic, and, or, not, in; range() and .items(); and the
// filters and tests of filters.go and tests.go. Parse refuses everything else.
//
// Inserted values are never read as templates. Only cmd imports the package.
package prompts

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/claybot/claybot"
)

// The limits of a template.
const (
	MaxTemplate = 256 << 10 // bytes of a text with tags
	MaxOutput   = 256 << 10 // bytes of the result, and of each text on the way
	MaxTurns    = 10_000    // of all loops together, and numbers in one range()
	// maxWork bounds everything else: an expression is one unit, and so are 32
	// bytes that are copied or one entry that is. Using it up takes well below
	// 100 ms on an ordinary machine.
	maxWork = 300_000
)

// An Error is a mistake in a template, or a limit that it reached.
type Error struct {
	Name string // of the template
	Line int    // from 1; 0: not known
	Text string
	// Limit reports that the data are too much for the template: with less of them it works.
	Limit bool
}

func (e *Error) Error() string {
	s := e.Text
	if e.Line > 0 {
		s = fmt.Sprintf("line %d: %s", e.Line, s)
	}
	if e.Name != "" {
		s = e.Name + ": " + s
	}
	return s
}

// Data is what a template sees. Values that are any may be anything that JSON
// can show; they are seen as JSON shows them.
type Data struct {
	Trigger Trigger
	User    User
	Agent   Agent
	// Nodes are the finished steps before this one by their ids: objects with
	// output, messages and token_usage. The fields of an output that is an
	// object are fields of the node, too. A node is also known by its id alone
	// where that is a name and no other thing has it.
	Nodes map[string]any
	// Names are further names, such as the item of a list.
	Names map[string]any
	Now   time.Time         // zero: not defined
	Env   map[string]string // what may be seen of the environment, and nothing else
}

// A Trigger is the message that a run begins with.
type Trigger struct {
	Name      string // of a trigger of a flow
	Text      string
	Payload   any
	Event     string // what kind of event the payload is about, where a webhook says it
	Files     []claybot.FileReference
	User      User
	Channel   string
	Connector string
	At        time.Time // zero: not defined
}

// A User is a person.
type User struct{ ID, Name string }

// An Agent is who runs.
type Agent struct{ ID, Type, Name, Profile, Connector, Channel, Engine, Model string }

// Options are how a template is filled.
type Options struct {
	// Strict makes a name that is not defined an error. Else it is an empty
	// text and a warning.
	Strict bool
}

// A Template was read without a mistake. It may be used by several goroutines.
type Template struct {
	name, text string
	root       []part                      // nil: the text has no tags
	value      func(*renderer) (any, bool) // of a text that is one expression; nil for others
	uses       []Use
}

// Parse reads a template. name is what errors and warnings call it. The error
// is an *Error with a line, for every syntax error and everything else that can
// be known before values are.
func Parse(name, text string) (t *Template, err error) {
	t = &Template{name: name, text: text}
	if !tagged(text) {
		return t, nil
	}
	if len(text) > MaxTemplate {
		return nil, &Error{Name: name, Text: fmt.Sprintf("the template has %d bytes; at most %d can be read", len(text), MaxTemplate)}
	}
	read, err := parse(text)
	if err != nil {
		return nil, named(name, err)
	}
	read.name, read.text = name, text
	return read, nil
}

func tagged(text string) bool {
	for i := strings.IndexByte(text, '{'); i >= 0 && i+1 < len(text); {
		if c := text[i+1]; c == '{' || c == '%' || c == '#' {
			return true
		}
		next := strings.IndexByte(text[i+1:], '{')
		if next < 0 {
			return false
		}
		i += 1 + next
	}
	return false
}

func named(name string, err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return &Error{Name: name, Text: err.Error()}
	}
	return &Error{Name: name, Line: e.Line, Text: e.Text, Limit: e.Limit}
}

// Plain reports that the text has no tags, so that Render returns it as it is.
func (t *Template) Plain() bool { return t.root == nil }

// Render fills the template. The warnings name each undefined expression with
// its line, once. The error is an *Error: a limit was reached, values do not fit
// what is done with them, or something is undefined and that is an error; there
// is no text then.
func (t *Template) Render(d Data, o Options) (text string, warnings []string, err error) {
	if t.Plain() {
		return t.text, nil, nil
	}
	r := t.renderer(d, o)
	defer func() {
		if x := recover(); x != nil {
			text, warnings, err = "", nil, named(t.name, r.failure(x))
		}
	}()
	r.render(t.root)
	return r.out.String(), r.warnings, nil
}

// Value is Render for a text that may be one expression, such as {{ order.items }}: the result is
// its value then, as JSON shows it, and else the text.
func (t *Template) Value(d Data, o Options) (v any, warnings []string, err error) {
	if t.value == nil {
		return t.Render(d, o)
	}
	r := t.renderer(d, o)
	defer func() {
		if x := recover(); x != nil {
			v, warnings, err = nil, nil, named(t.name, r.failure(x))
		}
	}()
	v, _ = t.value(r)
	if r.isUndefined(v) {
		v = ""
	}
	return v, r.warnings, nil
}

func (t *Template) renderer(d Data, o Options) *renderer {
	r := &renderer{name: t.name, strict: o.Strict, data: d, roots: make(map[string]any)}
	r.out = r.sheet()
	return r
}

// failure is the error for what a template was stopped by.
func (r *renderer) failure(x any) error {
	if e, ok := x.(*Error); ok {
		return e
	}
	// A mistake of ours must cost one prompt, not the process.
	return &Error{Line: r.line, Text: "the template cannot be filled here"}
}

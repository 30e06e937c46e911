package api

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/claybot/claybot/web"
)

// An operation is one method of one path: all there is to know to serve and to
// describe it.
type operation struct {
	id      string // in the document, unique
	method  string
	path    string // of net/http: {name} is a parameter
	tag     string
	scope   web.Scope // that a caller needs
	summary string
	about   string   // more, if there is
	params  []param  // of the query, and headers
	body    any      // a value of the type that is read; nil for none
	raw     bool     // the body is no JSON
	limit   int64    // bytes of a body, 0: the door's
	reply   string   // about the answer, if there is more to say
	answers []answer // that are no errors
	fails   []int    // statuses of errors, beside those that all have
	missing hint     // what to say when an id is unknown
	openAI  bool     // errors have the shape that OpenAI's have
	serve   func(http.ResponseWriter, *http.Request) error
}

// A param is one parameter of a query, or a header.
type param struct {
	name   string
	about  string
	values []string // that are allowed; none: any
	many   bool     // may be given several times
	number bool
	header bool
}

// An answer is one way in which an operation ends well.
type answer struct {
	status int
	value  any    // of the type that is sent; nil for no content
	or     any    // of another type that may be sent in its place; nil for none
	kind   string // of the content; empty: JSON
	about  string
}

// A hint says what is not there, and where to look for what is.
type hint struct{ message, fix string }

// limitParam is how many rows a page has; see page.
var limitParam = param{name: "limit", about: "How many at most, 1 to 500; 50 when left out.", number: true}

// like gives operations the tag, the failures and the hint of o where they have none.
func (o operation) like(all ...operation) []operation {
	for i := range all {
		x := &all[i]
		x.tag = cmp.Or(x.tag, o.tag)
		if x.fails == nil {
			x.fails = o.fails
		}
		if x.missing == (hint{}) {
			x.missing = o.missing
		}
	}
	return all
}

// returns completes an operation that answers with what fn returns.
func returns[T any](status int, o operation, fn func(*http.Request) (T, error)) operation {
	return answering(status, o, func(_ http.ResponseWriter, r *http.Request) (T, error) { return fn(r) })
}

// takes completes an operation that reads a body, and answers with what fn makes of it.
func takes[In, Out any](status int, o operation, fn func(*http.Request, In) (Out, error)) operation {
	o.body = *new(In)
	return answering(status, o, func(_ http.ResponseWriter, r *http.Request) (out Out, err error) {
		var in In
		if err := readBody(r, &in); err != nil {
			return out, err
		}
		return fn(r, in)
	})
}

func answering[T any](status int, o operation, fn func(http.ResponseWriter, *http.Request) (T, error)) operation {
	if o.answers == nil {
		o.answers = []answer{{status: status, value: *new(T), about: o.reply}}
	}
	o.serve = func(w http.ResponseWriter, r *http.Request) error {
		v, err := fn(w, r)
		if err != nil {
			return err
		}
		return reply(w, status, v)
	}
	return o
}

// does completes an operation that answers without content.
func does(o operation, fn func(*http.Request) error) operation {
	if o.answers == nil {
		o.answers = []answer{{status: http.StatusNoContent, about: o.reply}}
	}
	o.serve = func(w http.ResponseWriter, r *http.Request) error {
		if err := fn(r); err != nil {
			return err
		}
		return noContent(w)
	}
	return o
}

// doesWith is does for an operation that reads a body.
func doesWith[In any](o operation, fn func(*http.Request, In) error) operation {
	o.body = *new(In)
	return does(o, func(r *http.Request) error {
		var in In
		if err := readBody(r, &in); err != nil {
			return err
		}
		return fn(r, in)
	})
}

// whereOn answers all operations with off where what they stand on is not there.
func whereOn(on bool, off *web.Problem, all []operation) []operation {
	for i := range all {
		if !on {
			all[i].serve = func(http.ResponseWriter, *http.Request) error { return off }
		}
	}
	return all
}

// routes are the operations, ready for the door. Operations of one method below
// /agents/{agent}/ are one route where a path of its own would be ambiguous:
// /agents/{agent}/history and /agents/runs/{run} both mean /agents/runs/history.
func (a *api) routes() []web.Route {
	parts := make(map[string]map[string]operation) // by pattern and last segment
	var all []web.Route
	for _, o := range a.operations {
		pattern, part := o.pattern()
		if part == "" {
			all = append(all, web.Route{Pattern: pattern, Scope: o.scope, Handler: a.handler(o), Body: o.limit, Raw: o.raw})
			continue
		}
		known, again := parts[pattern]
		if !again {
			known = make(map[string]operation)
			parts[pattern] = known
			all = append(all, web.Route{Pattern: pattern, Scope: o.scope, Handler: a.dispatch(known)})
		}
		known[part] = o
	}
	return all
}

// pattern is that of the route of an operation; part is what tells apart those
// that share it.
func (o operation) pattern() (pattern, part string) {
	const shared = "/agents/{agent}/"
	rest, ok := strings.CutPrefix(o.path, shared)
	if !ok || o.method != http.MethodGet && o.method != http.MethodDelete {
		return o.method + " " + o.path, ""
	}
	part, item, _ := strings.Cut(rest, "/")
	if item == "" {
		return o.method + " " + shared + "{part}", part
	}
	return o.method + " " + shared + "{part}/" + item, part
}

// dispatch serves operations by the last segment of their path. The map may
// still grow until the first request.
func (a *api) dispatch(parts map[string]operation) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o, ok := parts[r.PathValue("part")]
		if !ok {
			fail(a.log, w, r, operation{}, &web.Problem{
				Status: http.StatusNotFound, Code: "not_found", Message: "There is no such path.", Fix: "GET /openapi.json lists all.",
			})
			return
		}
		a.handler(o).ServeHTTP(w, r)
	})
}

// handler checks the query and serves an operation; an error is answered.
func (a *api) handler(o operation) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := o.checkQuery(r)
		if err == nil {
			err = o.serve(w, r)
		}
		if err != nil {
			fail(a.log, w, r, o, err)
		}
	})
}

// checkQuery refuses parameters that the operation does not have: a misspelt
// one would mean more than was asked for.
func (o operation) checkQuery(r *http.Request) error {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return bad("The query of the URL cannot be read.", "Escape the values of parameters.")
	}
	for name, values := range q {
		i := slices.IndexFunc(o.params, func(p param) bool { return p.name == name && !p.header })
		if i < 0 {
			return bad(fmt.Sprintf("There is no parameter %.40q here.", name), o.known())
		}
		p := o.params[i]
		if len(values) > 1 && !p.many {
			return bad("The parameter "+p.name+" is given more than once.", "")
		}
		for _, v := range values {
			if v != "" && len(p.values) > 0 && !slices.Contains(p.values, v) {
				return bad(fmt.Sprintf("The parameter %s cannot be %.40q.", p.name, v), "It is one of: "+strings.Join(p.values, ", ")+".")
			}
		}
	}
	return nil
}

// known lists the parameters of the query.
func (o operation) known() string {
	var names []string
	for _, p := range o.params {
		if !p.header {
			names = append(names, p.name)
		}
	}
	if len(names) == 0 {
		return "This path has none."
	}
	return "There are: " + strings.Join(names, ", ") + "."
}

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

// An operation is one method of one path: all that is needed to serve and to
// describe it.
type operation struct {
	id      string // in the document, unique
	route   string // of net/http: "GET /path/{name}"
	tag     string
	scope   web.Scope // that a caller needs
	summary string
	about   string   // more, if there is
	params  []param  // of the query, and headers
	body    any      // a value of the type that is read; nil for none
	raw     bool     // the body is no JSON
	limit   int64    // bytes of a body, 0: the server's
	answers []answer // of success
	fails   []int    // statuses of errors, beside those that all have
	missing hint     // for an unknown id
	openAI  bool     // errors have OpenAI's shape
	serve   func(http.ResponseWriter, *http.Request) error
}

func op(id string, scope web.Scope, route, summary string) operation {
	return operation{id: id, scope: scope, route: route, summary: summary}
}

func (o operation) method() string { method, _, _ := strings.Cut(o.route, " "); return method }
func (o operation) path() string   { _, path, _ := strings.Cut(o.route, " "); return path }

// The methods below complete an operation.

func (o operation) tagged(tag string) operation      { o.tag = tag; return o }
func (o operation) explained(about string) operation { o.about = about; return o }
func (o operation) query(params ...param) operation  { o.params = params; return o }
func (o operation) unknown(missing hint) operation   { o.missing = missing; return o }
func (o operation) upTo(bytes int64) operation       { o.limit = bytes; return o }
func (o operation) reading(body any) operation       { o.body = body; return o }
func (o operation) bytes() operation                 { o.raw = true; return o }
func (o operation) forOpenAI() operation             { o.openAI = true; return o }
func (o operation) replying(about string) operation  { o.answers[0].about = about; return o }
func (o operation) failing(statuses ...int) operation {
	o.fails = append([]int{}, statuses...)
	return o
}

// served completes an operation that writes its answers itself.
func (o operation) served(serve func(http.ResponseWriter, *http.Request) error, answers ...answer) operation {
	o.serve, o.answers = serve, answers
	return o
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

// An answer is one kind of success of an operation.
type answer struct {
	status int
	value  any    // of the type that is sent; nil for no content
	or     any    // of another type that may be sent in its place; nil for none
	kind   string // of the content; empty: JSON
	about  string
}

// A hint says what was not found, and where to look.
type hint struct{ message, fix string }

// limitParam is how many rows a page has.
var limitParam = param{name: "limit", about: "Maximum number of rows, 1 to 500. Default: 50.", number: true}

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
		if err := web.ReadJSON(r, &in); err != nil {
			return out, err
		}
		return fn(r, in)
	})
}

func answering[T any](status int, o operation, fn func(http.ResponseWriter, *http.Request) (T, error)) operation {
	return o.served(func(w http.ResponseWriter, r *http.Request) error {
		v, err := fn(w, r)
		if err != nil {
			return err
		}
		return reply(w, status, v)
	}, answer{status: status, value: *new(T)})
}

// does completes an operation that answers without content.
func does(o operation, fn func(*http.Request) error) operation {
	return o.served(func(w http.ResponseWriter, r *http.Request) error {
		if err := fn(r); err != nil {
			return err
		}
		return noContent(w)
	}, answer{status: http.StatusNoContent})
}

// doesWith is does for an operation that reads a body.
func doesWith[In any](o operation, fn func(*http.Request, In) error) operation {
	o.body = *new(In)
	return does(o, func(r *http.Request) error {
		var in In
		if err := web.ReadJSON(r, &in); err != nil {
			return err
		}
		return fn(r, in)
	})
}

// whereOn answers all operations with off unless on.
func whereOn(on bool, off *web.Problem, all []operation) []operation {
	for i := range all {
		if !on {
			all[i].serve = func(http.ResponseWriter, *http.Request) error { return off }
		}
	}
	return all
}

// routes are the routes of the operations. Operations of one method below
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
	method, path, _ := strings.Cut(o.route, " ")
	rest, ok := strings.CutPrefix(path, shared)
	if !ok || method != http.MethodGet && method != http.MethodDelete {
		return o.route, ""
	}
	part, item, _ := strings.Cut(rest, "/")
	if item == "" {
		return method + " " + shared + "{part}", part
	}
	return method + " " + shared + "{part}/" + item, part
}

// dispatch serves operations by the last segment of their path. The map may
// still grow until the first request.
func (a *api) dispatch(parts map[string]operation) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o, ok := parts[r.PathValue("part")]
		if !ok {
			fail(a.log, w, r, operation{}, &web.Problem{Status: http.StatusNotFound, Code: "not_found", Message: "No such path.", Fix: "See GET /openapi.json."})
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

// checkQuery rejects parameters that the operation does not have, because a misspelt
// filter would match too much.
func (o operation) checkQuery(r *http.Request) error {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return bad("The query of the URL is invalid.", "Escape the values of parameters.")
	}
	for name, values := range q {
		i := slices.IndexFunc(o.params, func(p param) bool { return p.name == name && !p.header })
		if i < 0 {
			return bad(fmt.Sprintf("Unknown parameter %.40q.", name), o.known())
		}
		p := o.params[i]
		if len(values) > 1 && !p.many {
			return bad("The parameter "+p.name+" is given more than once.", "")
		}
		for _, v := range values {
			if p.name == limitParam.name && v != "" && limitOf(r, 0) == 0 {
				return bad("limit must be a number from 1.", "")
			}
			if v != "" && len(p.values) > 0 && !slices.Contains(p.values, v) {
				return bad(fmt.Sprintf("Invalid value %.40q for the parameter %s.", v, p.name), "Use one of: "+strings.Join(p.values, ", ")+".")
			}
		}
	}
	return nil
}

func (o operation) known() string {
	var names []string
	for _, p := range o.params {
		if !p.header {
			names = append(names, p.name)
		}
	}
	if len(names) == 0 {
		return "This path has no parameters."
	}
	return "Known parameters: " + strings.Join(names, ", ") + "."
}

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

// An operation is one method of one path, with all that is needed to serve and describe
// it.
type operation struct {
	id      string // in the document, unique
	route   string // of net/http: "GET /path/{name}"
	tag     string
	scope   web.Scope // required of the caller
	chat    bool      // also for the scope chat, which reaches its own conversations there
	summary string
	about   string   // details; optional
	params  []param  // of the query, and headers
	body    any      // a value of the request type; nil: none
	raw     bool     // the body is not JSON
	limit   int64    // bytes of a body, 0: the server's
	answers []answer // success responses
	fails   []int    // error statuses besides the common ones
	missing hint     // for an unknown id
	openAI  bool     // errors have OpenAI's format
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
func (o operation) forChat() operation               { o.chat = true; return o }
func (o operation) forOpenAI() operation             { o.openAI = true; return o }
func (o operation) replying(about string) operation  { o.answers[0].about = about; return o }
func (o operation) failing(statuses ...int) operation {
	o.fails = append([]int{}, statuses...)
	return o
}

// served completes an operation that writes its own responses.
func (o operation) served(serve func(http.ResponseWriter, *http.Request) error, answers ...answer) operation {
	o.serve, o.answers = serve, answers
	return o
}

// A param is a query parameter or a header.
type param struct {
	name   string
	about  string
	values []string // allowed ones; nil: any
	many   bool     // may be repeated
	number bool
	header bool
}

// An answer is a success response of an operation.
type answer struct {
	status int
	value  any    // a value of the response type; nil: no content
	or     any    // a value of an alternative type; nil: none
	kind   string // of the content; empty: JSON
	about  string
}

// A hint is the message and fix of a "not found" error.
type hint struct{ message, fix string }

// limitParam is the number of rows of a page.
var limitParam = param{name: "limit", about: "Maximum number of rows, 1 to 500. Default: 50.", number: true}

// like gives operations the tag, errors and hint of o unless they have their own.
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

// returns completes an operation that responds with the result of fn.
func returns[T any](status int, o operation, fn func(*http.Request) (T, error)) operation {
	return answering(status, o, func(_ http.ResponseWriter, r *http.Request) (T, error) { return fn(r) })
}

// takes completes an operation that reads a body and responds with the result of fn.
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

// does completes an operation that responds without content.
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

// whereOn makes all operations fail with off unless on.
func whereOn(on bool, off *web.Problem, all []operation) []operation {
	for i := range all {
		if !on {
			all[i].serve = func(http.ResponseWriter, *http.Request) error { return off }
		}
	}
	return all
}

// routes returns the routes of the operations. Operations below /agents/{agent}/ with the
// same method share a route if their own would be ambiguous: /agents/{agent}/history and
// /agents/runs/{run} both match /agents/runs/history.
func (a *api) routes() []web.Route {
	parts := make(map[string]map[string]operation) // by pattern and last segment
	var all []web.Route
	for _, o := range a.operations {
		pattern, part := o.pattern()
		if part == "" {
			all = append(all, web.Route{Pattern: pattern, Scope: o.scope, Chat: o.chat, Handler: a.handler(o), Body: o.limit, Raw: o.raw})
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

// pattern returns the route pattern of an operation and, if operations share it, the path
// segment that distinguishes them.
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

// dispatch serves operations by the last segment of their path. Routes may be added to the
// map until the first request.
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

// handler checks the query, serves an operation and reports its error.
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

// checkQuery rejects unknown parameters, because a misspelled filter would match too much.
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

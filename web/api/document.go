package api

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/lazyregexp"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/web"
)

const intro = "JSON over HTTP. Authenticate with a bearer token (claybot token create) or with the session of the web page. " +
	"Times are Unix milliseconds unless noted otherwise. Unknown fields and parameters are errors. " +
	"Lists return a cursor in next; without it, the page is the last one."

// tags are the groups of paths, in order.
var tags = [][2]string{
	{"runs", "Start, watch and cancel runs."},
	{"graphs", "Graph engines and plans."},
	{"agents", "Agents, their history and their inbox."},
	{"questions", "Questions of agents, and answers."},
	{"cron", "Tasks at set times."},
	{"heartbeat", "Tasks of the heartbeat."},
	{"outbox", "Outgoing messages."},
	{"pairing", "Access of users and channels."},
	{"people", "What is kept of a person, and its erasure."},
	{"reports", "Usage, durations and traces of messages."},
	{"tools", "Tools, MCP servers, workspaces and skills."},
	{"notes", "Notes that agents keep across conversations."},
	{"configuration", "The configuration file of the daemon."},
	{"flows", "Workflows: graphs that an operator writes as files, started by messages, events, times or a request."},
	{"nodes", "What is configured: connectors, schedules, workflows, profiles, models, MCP servers, workspaces and relays."},
	{"openai", "Endpoints for OpenAI clients."},
	{"about", "The daemon itself."},
}

// statuses are the descriptions of the error statuses.
var statuses = map[int]string{
	http.StatusBadRequest: "The request is invalid; see the message.", http.StatusUnauthorized: "Missing or invalid credentials.",
	http.StatusForbidden: "The scope of the caller is not sufficient.", http.StatusNotFound: "Not found.",
	http.StatusConflict: "Not possible in the current state, or refused.", http.StatusGone: "Expired.", http.StatusUnprocessableEntity: "The payload does not fit the input of the workflow.",
	http.StatusPreconditionFailed:    "The resource has another version than If-Match.",
	http.StatusRequestEntityTooLarge: "The body is too large.", http.StatusUnsupportedMediaType: "The body is not application/json.",
	http.StatusTooManyRequests: "Too many invalid tokens or codes.", http.StatusInternalServerError: "Internal error; see the log.",
	http.StatusServiceUnavailable: "Temporarily unavailable; try again.",
}

// inPath matches the parameters of a path.
var inPath = lazyregexp.New(`\{([a-z]+)\}`)

// sortedTypes returns the event types by name.
func sortedTypes() []claybot.EventType { return slices.Sorted(maps.Keys(runs.Facts)) }

// describe returns the OpenAPI document.
func (a *api) describe() []byte {
	s := newSchemas()
	paths := make(schema)
	for _, o := range a.operations {
		item, ok := paths[o.path()].(schema)
		if !ok {
			item = make(schema)
			paths[o.path()] = item
		}
		item[strings.ToLower(o.method())] = o.describe(s)
	}
	s.events()
	s.define(reflect.TypeFor[web.Failure]())
	groups := make([]any, len(tags))
	for i, t := range tags {
		groups[i] = schema{"name": t[0], "description": t[1]}
	}
	doc := schema{
		"openapi": "3.1.0",
		"info":    schema{"title": "claybot", "version": cmp.Or(a.version, "unknown"), "description": intro},
		"servers": []any{schema{"url": "/"}},
		"tags":    groups,
		"paths":   paths,
		"security": []any{
			schema{"bearer": []string{}},
			schema{"session": []string{}},
		},
		"components": schema{
			"schemas": s.defs,
			"securitySchemes": schema{
				"bearer":  schema{"type": "http", "scheme": "bearer", "description": "A token; the server knows its scope."},
				"session": schema{"type": "apiKey", "in": "cookie", "name": "claybot", "description": "The login of the web page; the name of the cookie ends with the port."},
			},
		},
	}
	b, err := json.MarshalIndent(doc, "", " ")
	if err != nil {
		a.log.Error("failed to encode the OpenAPI document", "err", err)
		return []byte("{}\n")
	}
	return append(b, '\n')
}

// describe returns the operation's part of the document.
func (o operation) describe(s *schemas) schema {
	responses := make(schema)
	for _, x := range o.answers {
		responses[strconv.Itoa(x.status)] = x.describe(s)
	}
	shape := reflect.TypeFor[web.Failure]()
	if o.openAI {
		shape = reflect.TypeFor[openAIFailure]()
	}
	for _, status := range o.errors() {
		responses[strconv.Itoa(status)] = schema{"description": statuses[status], "content": schema{"application/json": schema{"schema": s.of(shape)}}}
	}
	x := schema{
		"operationId": o.id, "tags": []string{o.tag}, "summary": o.summary, "x-scope": string(o.scope), "responses": responses,
		"description": strings.TrimSpace(o.about + " Needs the scope " + o.scopes() + "."),
	}
	if all := o.parameters(); len(all) > 0 {
		x["parameters"] = all
	}
	if o.raw {
		x["requestBody"] = schema{"required": true, "content": schema{"application/octet-stream": schema{}}}
	}
	if o.body != nil {
		x["requestBody"] = schema{"required": true, "content": schema{"application/json": schema{"schema": s.of(reflect.TypeOf(o.body))}}}
	}
	return x
}

// errors returns the error statuses of an operation.
func (o operation) errors() []int {
	all := append([]int{
		http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusInternalServerError,
	}, o.fails...)
	if o.body != nil {
		all = append(all, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	}
	return all
}

func (o operation) parameters() []any {
	var all []any
	for _, m := range inPath.FindAllStringSubmatch(o.route, -1) {
		all = append(all, schema{"name": m[1], "in": "path", "required": true, "schema": schema{"type": "string"}})
	}
	for _, p := range o.params {
		kind := schema{"type": "string"}
		if p.number {
			kind = schema{"type": "integer", "minimum": 0}
		}
		if len(p.values) > 0 {
			kind["enum"] = p.values
		}
		if p.many {
			kind = schema{"type": "array", "items": kind}
		}
		in := "query"
		if p.header {
			in = "header"
		}
		all = append(all, schema{"name": p.name, "in": in, "required": false, "description": p.about, "schema": kind})
	}
	return all
}

func (x answer) describe(s *schemas) schema {
	out := schema{"description": cmp.Or(x.about, http.StatusText(x.status))}
	if x.value != nil {
		shape := s.of(reflect.TypeOf(x.value))
		if x.or != nil {
			shape = schema{"oneOf": []any{shape, s.of(reflect.TypeOf(x.or))}}
		}
		out["content"] = schema{cmp.Or(x.kind, "application/json"): schema{"schema": shape}}
	}
	return out
}

// scopes names the scopes that an operation needs.
func (o operation) scopes() string {
	if o.chat {
		return string(o.scope) + ", or chat for the caller's own conversations"
	}
	return string(o.scope)
}

package api

import (
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/web"
)

// intro is what the document says about all of it.
const intro = "JSON over HTTP. Log in with a bearer token (claybot token create) or with the session of the web page. " +
	"Times are unix milliseconds unless they say otherwise. Unknown fields and parameters are errors. " +
	"Lists have a cursor in next; without it, the page is the last one."

// tags are the groups of paths, in the order in which they are shown.
var tags = [][2]string{
	{"runs", "Start runs, watch them, end them."},
	{"graphs", "Engines that are graphs, and plans."},
	{"agents", "Agents, what they remember, and what waits for them."},
	{"questions", "What agents ask, and answers to it."},
	{"cron", "Tasks at set times."},
	{"heartbeat", "Tasks that are looked after now and then."},
	{"outbox", "Messages on their way out."},
	{"pairing", "Who may speak."},
	{"reports", "Usage, durations, and what became of a message."},
	{"tools", "What agents work with: tools, servers of tools, workspaces and skills."},
	{"notes", "What agents remember beyond their conversation."},
	{"openai", "The door for OpenAI clients."},
	{"about", "The daemon itself."},
}

// statuses say in words what an error status means.
var statuses = map[int]string{
	http.StatusBadRequest: "Something in the request is wrong; the message names it.", http.StatusUnauthorized: "No login, or a wrong one.",
	http.StatusForbidden: "The caller's scope does not allow it.", http.StatusNotFound: "It is not there.",
	http.StatusConflict: "Not possible in the state it is in, or refused.", http.StatusGone: "Its time has passed.",
	http.StatusRequestEntityTooLarge: "The body is too large.", http.StatusUnsupportedMediaType: "The body is not application/json.",
	http.StatusTooManyRequests: "Too many wrong tokens or codes.", http.StatusInternalServerError: "It did not work; the log says why.",
	http.StatusServiceUnavailable: "Not now; try again.",
}

// inPath finds the parameters of a path.
var inPath = regexp.MustCompile(`\{([a-z]+)\}`)

// sortedTypes are the types of events by name.
func sortedTypes() []claybot.EventType { return slices.Sorted(maps.Keys(runs.Facts)) }

// describe makes the OpenAPI document.
func (a *api) describe() []byte {
	s := newSchemas()
	paths := make(schema)
	for _, o := range a.operations {
		item, ok := paths[o.path].(schema)
		if !ok {
			item = make(schema)
			paths[o.path] = item
		}
		item[strings.ToLower(o.method)] = o.describe(s)
	}
	s.events()
	s.define(reflect.TypeFor[web.Failure]())
	version := a.version
	if version == "" {
		version = "unknown"
	}
	groups := make([]any, len(tags))
	for i, t := range tags {
		groups[i] = schema{"name": t[0], "description": t[1]}
	}
	doc := schema{
		"openapi": "3.1.0",
		"info":    schema{"title": "claybot", "version": version, "description": intro},
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
				"bearer":  schema{"type": "http", "scheme": "bearer", "description": "A token; its scope is kept on the server."},
				"session": schema{"type": "apiKey", "in": "cookie", "name": "claybot", "description": "The login of the web page; the name of the cookie ends with the port."},
			},
		},
	}
	b, err := json.MarshalIndent(doc, "", " ")
	if err != nil {
		a.log.Error("the description of the API cannot be made", "err", err)
		return []byte("{}\n")
	}
	return append(b, '\n')
}

// describe is an operation in the document.
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
		"description": strings.TrimSpace(o.about + " Needs the scope " + string(o.scope) + "."),
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

// errors are the statuses of all errors of an operation.
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
	for _, m := range inPath.FindAllStringSubmatch(o.path, -1) {
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
	text := x.about
	if text == "" {
		text = http.StatusText(x.status)
	}
	out := schema{"description": text}
	if x.value != nil {
		kind := x.kind
		if kind == "" {
			kind = "application/json"
		}
		shape := s.of(reflect.TypeOf(x.value))
		if x.or != nil {
			shape = schema{"oneOf": []any{shape, s.of(reflect.TypeOf(x.or))}}
		}
		out["content"] = schema{kind: schema{"schema": shape}}
	}
	return out
}

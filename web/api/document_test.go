package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/claybot/claybot/web/api"
)

// A document is the OpenAPI document of a rig, ready to hold answers against.
type document struct {
	Paths      map[string]map[string]described `json:"paths"`
	Components struct {
		Schemas         map[string]json.RawMessage `json:"schemas"`
		SecuritySchemes map[string]json.RawMessage `json:"securitySchemes"`
	} `json:"components"`
	Security []map[string][]string   `json:"security"`
	Tags     []struct{ Name string } `json:"tags"`
	OpenAPI  string                  `json:"openapi"`

	mu   sync.Mutex
	seen map[string]bool // operationId and status
	// strict are the definitions, with other references, as they are compiled.
	strict map[string]json.RawMessage
}

type described struct {
	ID         string   `json:"operationId"`
	Summary    string   `json:"summary"`
	Tags       []string `json:"tags"`
	Scope      string   `json:"x-scope"`
	Parameters []struct {
		Name, In, Description string
		Required              bool
	} `json:"parameters"`
	Body      *struct{ Content map[string]media } `json:"requestBody"`
	Responses map[string]struct {
		Description string
		Content     map[string]media
	} `json:"responses"`
}

type media struct {
	Schema json.RawMessage `json:"schema"`
}

func (r *rig) readDocument() *document {
	r.Helper()
	d := &document{seen: make(map[string]bool)}
	g := r.do("GET", "/openapi.json", "")
	if g.code != http.StatusOK {
		r.Fatalf("the document = %d %s", g.code, g.body)
	}
	r.read(g.body, d)
	var defs map[string]any
	b, err := json.Marshal(d.Components.Schemas)
	if err != nil {
		r.Fatal(err)
	}
	r.read(string(b), &defs)
	for _, def := range defs {
		strict(def)
	}
	d.strict = make(map[string]json.RawMessage)
	for name, def := range defs {
		if b, err = json.Marshal(def); err != nil {
			r.Fatal(err)
		}
		d.strict[name] = json.RawMessage(inDefs(string(b)))
	}
	return d
}

// inDefs is a schema with its references as they are below $defs.
func inDefs(s string) string {
	return strings.ReplaceAll(s, "#/components/schemas/", "#/$defs/")
}

var references = regexp.MustCompile(`"#/\$defs/([^"/]+)"`)

// needs adds the definitions that a schema leads to. One that is not there is left
// out, so that compiling fails.
func (d *document) needs(s string, all map[string]json.RawMessage) {
	for _, m := range references.FindAllStringSubmatch(s, -1) {
		if def, there := d.strict[m[1]]; there && all[m[1]] == nil {
			all[m[1]] = def
			d.needs(string(def), all)
		}
	}
}

// strict makes objects refuse what the document does not name, so that a field
// that is missing from it is found.
func strict(x any) {
	m, ok := x.(map[string]any)
	if !ok {
		return
	}
	if props, ok := m["properties"].(map[string]any); ok && m["type"] == "object" {
		m["additionalProperties"] = false
		for _, p := range props {
			strict(p)
		}
	}
	strict(m["items"])
}

// compiled are schemas of all rigs: their documents are the same.
var (
	compiling sync.Mutex
	compiled  = make(map[string]*jsonschema.Resolved)
)

// schema compiles one of the document's schemas.
func (d *document) schema(t testing.TB, s json.RawMessage) *jsonschema.Resolved {
	t.Helper()
	compiling.Lock()
	defer compiling.Unlock()
	text := inDefs(string(s))
	defs := make(map[string]json.RawMessage)
	d.needs(text, defs)
	whole, err := json.Marshal(map[string]any{"allOf": []json.RawMessage{json.RawMessage(text)}, "$defs": defs})
	if err != nil {
		t.Fatalf("schema %s: %v", text, err)
	}
	if r := compiled[string(whole)]; r != nil {
		return r
	}
	var parsed jsonschema.Schema
	if err := json.Unmarshal(whole, &parsed); err != nil {
		t.Fatalf("schema %s: %v", text, err)
	}
	r, err := parsed.Resolve(nil)
	if err != nil {
		t.Fatalf("schema %s: %v", text, err)
	}
	compiled[string(whole)] = r
	return r
}

// fits reports how a JSON text does not fit a schema.
func (d *document) fits(t testing.TB, s json.RawMessage, body []byte) error {
	t.Helper()
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return err
	}
	return d.schema(t, s).Validate(v)
}

// find is the operation of a request; false for paths of the door.
func (d *document) find(method, path string) (described, bool) {
	path, _, _ = strings.Cut(path, "?")
	want := strings.Split(path, "/")
	var best described
	fixed := -1
	for pattern, methods := range d.Paths {
		o, ok := methods[strings.ToLower(method)]
		parts := strings.Split(pattern, "/")
		if !ok || len(parts) != len(want) {
			continue
		}
		n := 0
		for i, p := range parts {
			switch {
			case p == want[i]:
				n++
			case !strings.HasPrefix(p, "{"):
				n = -len(parts)
			}
		}
		if n > fixed {
			best, fixed = o, n
		}
	}
	return best, fixed >= 0
}

// check holds an answer against the document.
func (d *document) check(t testing.TB, method, path string, resp *http.Response, body []byte) {
	t.Helper()
	o, ok := d.find(method, path)
	if !ok {
		return
	}
	status := fmt.Sprint(resp.StatusCode)
	said, ok := o.Responses[status]
	if !ok {
		t.Errorf("%s %s answers %s, which is not described: %s", method, path, status, body)
		return
	}
	d.mu.Lock()
	d.seen[o.ID+" "+status] = true
	d.mu.Unlock()
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	content, ok := said.Content[kind]
	switch {
	case len(said.Content) == 0:
		if len(body) > 0 {
			t.Errorf("%s %s answers %s with %q, and none is described", method, path, status, body)
		}
	case !ok && kind != "text/csv" && kind != "text/event-stream":
		t.Errorf("%s %s answers %s with %s, which is not described", method, path, status, kind)
	case kind == "application/json":
		if err := d.fits(t, content.Schema, body); err != nil {
			t.Errorf("%s %s answers %s with what is not described: %v\n%s", method, path, status, err, body)
		}
	}
}

// Every route is described, and what is described is a route.
func TestDocumentAndRoutesAreTheSame(t *testing.T) {
	r := start(t)
	mux := http.NewServeMux()
	for _, route := range api.Routes(api.Config{}) {
		mux.Handle(route.Pattern, http.NotFoundHandler())
	}
	covered := make(map[string]bool)
	for path, methods := range r.doc.Paths {
		for method, o := range methods {
			req, err := http.NewRequestWithContext(t.Context(), strings.ToUpper(method), strings.NewReplacer("{", "", "}", "").Replace(path), http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			_, pattern := mux.Handler(req)
			if pattern == "" {
				t.Errorf("%s %s is described and is not a route", method, path)
			}
			covered[pattern] = true
			for _, route := range api.Routes(api.Config{}) {
				if route.Pattern == pattern && string(route.Scope) != o.Scope {
					t.Errorf("%s %s needs %q, and the document says %q", method, path, route.Scope, o.Scope)
				}
			}
		}
	}
	for _, route := range api.Routes(api.Config{}) {
		if !covered[route.Pattern] {
			t.Errorf("%s is a route and is not described", route.Pattern)
		}
	}
}

func TestDocumentIsWhole(t *testing.T) {
	r := start(t)
	d := r.doc
	if d.OpenAPI != "3.1.0" || len(d.Security) == 0 {
		t.Errorf("version %q, security %v", d.OpenAPI, d.Security)
	}
	for _, s := range d.Security {
		for name := range s {
			if d.Components.SecuritySchemes[name] == nil {
				t.Errorf("there is no security scheme %s", name)
			}
		}
	}
	ids := make(map[string]bool)
	for path, methods := range d.Paths {
		for method, o := range methods {
			d.whole(t, method+" "+path, o)
			if o.ID == "" || ids[o.ID] {
				t.Errorf("%s %s: the operationId %q is empty or not the only one", method, path, o.ID)
			}
			ids[o.ID] = true
			for _, name := range pathParams(path) {
				if !slices.ContainsFunc(o.Parameters, func(p struct {
					Name, In, Description string
					Required              bool
				},
				) bool {
					return p.Name == name && p.In == "path" && p.Required
				}) {
					t.Errorf("%s %s: the parameter %s of the path is not described", method, path, name)
				}
			}
		}
	}
	for name, def := range d.Components.Schemas {
		d.schema(t, json.RawMessage(`{"$ref":"#/components/schemas/`+name+`"}`)) // a reference to nothing fails
		if len(def) < 3 {
			t.Errorf("the schema %s is empty", name)
		}
	}
}

// whole checks one operation.
func (d *document) whole(t *testing.T, name string, o described) {
	t.Helper()
	if o.Summary == "" || len(o.Tags) != 1 || !slices.ContainsFunc(d.Tags, func(x struct{ Name string }) bool { return x.Name == o.Tags[0] }) {
		t.Errorf("%s has no summary, or the tags %v", name, o.Tags)
	}
	for _, status := range []string{"400", "401", "403", "429", "500"} {
		if _, ok := o.Responses[status]; !ok {
			t.Errorf("%s does not say what %s means", name, status)
		}
	}
	for status, resp := range o.Responses {
		if resp.Description == "" {
			t.Errorf("%s: %s has no description", name, status)
		}
		for _, m := range resp.Content {
			d.schema(t, m.Schema)
		}
		if status >= "400" && len(resp.Content) == 0 {
			t.Errorf("%s: the error %s has no shape", name, status)
		}
	}
	if o.Body != nil {
		for kind, m := range o.Body.Content {
			if kind == "application/json" {
				d.schema(t, m.Schema)
			}
		}
	}
}

func pathParams(path string) (names []string) {
	for part := range strings.SplitSeq(path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			names = append(names, strings.TrimSuffix(name, "}"))
		}
	}
	return names
}

func esc(s string) string { return url.PathEscape(s) }

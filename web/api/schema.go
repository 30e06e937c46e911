package api

import (
	"cmp"
	"encoding/json"
	"reflect"
	"strings"
	"time"
	"unicode"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/web"
)

// A schema is a JSON Schema (2020-12, which OpenAPI 3.1 uses).
type schema = map[string]any

// schemas creates JSON Schemas of Go types. A named struct becomes a referenced
// definition.
type schemas struct {
	defs  map[string]any
	names map[reflect.Type]string
	taken map[string]reflect.Type
}

// refPath is the path of the definitions in the document.
const refPath = "#/components/schemas/"

func newSchemas() *schemas {
	return &schemas{defs: make(map[string]any), names: make(map[reflect.Type]string), taken: make(map[string]reflect.Type)}
}

// special are types whose JSON differs from their Go structure.
var special = map[reflect.Type]schema{
	reflect.TypeFor[claybot.Time]():    {"type": "integer", "format": "int64", "description": "Unix milliseconds; 0 for never."},
	reflect.TypeFor[time.Time]():       {"type": "string", "format": "date-time"},
	reflect.TypeFor[json.RawMessage](): {},
	reflect.TypeFor[web.Value]():       {"oneOf": []any{schema{"type": "string"}, schema{"type": "number"}, schema{"type": "boolean"}, schema{"type": "array"}}},
	reflect.TypeFor[content]():         {"oneOf": []any{schema{"type": "string"}, schema{"type": "array"}, schema{"type": "null"}}},
	reflect.TypeFor[responseInput]():   {"oneOf": []any{schema{"type": "string"}, schema{"type": "array"}}},

	reflect.TypeFor[conversationName](): {"oneOf": []any{schema{"type": "string"}, schema{"type": "object"}}},
	reflect.TypeFor[[]byte]():           {"type": "string", "contentEncoding": "base64"},
}

// enums are the values of named strings.
var enums = map[reflect.Type][]string{
	reflect.TypeFor[claybot.RunState]():      runStates,
	reflect.TypeFor[claybot.AgentType]():     {string(claybot.AgentUser), string(claybot.AgentCron), string(claybot.AgentHeartbeat), string(claybot.AgentSubagent)},
	reflect.TypeFor[claybot.SendState]():     {string(claybot.SendWaiting), string(claybot.SendAttempted), string(claybot.SendSent), string(claybot.SendAmbiguous), string(claybot.SendFailed)},
	reflect.TypeFor[claybot.AwaitReason]():   {string(claybot.AwaitInfo), string(claybot.AwaitApproval), string(claybot.AwaitChildren), string(claybot.AwaitBudget), string(claybot.AwaitTime), string(claybot.AwaitCallback)},
	reflect.TypeFor[claybot.AnswerVia]():     {string(claybot.ViaText), string(claybot.ViaButton), string(claybot.ViaWeb), string(claybot.ViaHTTP), string(claybot.ViaDefault), string(claybot.ViaLimit)},
	reflect.TypeFor[claybot.ApprovalScope](): approvalScopes,
	reflect.TypeFor[claybot.OutgoingKind]():  {string(claybot.OutgoingAnswer), string(claybot.OutgoingNotice), string(claybot.OutgoingCommand), string(claybot.OutgoingPairing), string(claybot.OutgoingFile)},
}

// published are definition names that generated clients use and that differ from the Go
// types.
var published = map[reflect.Type]string{
	reflect.TypeFor[claybot.Answer]():           "Answered",
	reflect.TypeFor[connectors.HeartbeatTask](): "Beat",
	reflect.TypeFor[web.HeartbeatList]():        "BeatList",
	reflect.TypeFor[web.HeartbeatRequest]():     "BeatRequest",
	reflect.TypeFor[web.HeartbeatResult]():      "BeatDone",
	reflect.TypeFor[web.HeartbeatSpec]():        "BeatSpec",
	reflect.TypeFor[nodes.View]():               "Node",
}

// of returns the schema of a type, or a reference to its definition.
func (s *schemas) of(t reflect.Type) schema {
	if x, ok := special[t]; ok {
		return x
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.String:
		if values, ok := enums[t]; ok {
			return schema{"type": "string", "enum": values}
		}
		return schema{"type": "string"}
	case reflect.Int, reflect.Int64, reflect.Int32:
		return schema{"type": "integer", "format": "int64"}
	case reflect.Float64:
		return schema{"type": "number"}
	case reflect.Slice:
		return schema{"type": "array", "items": s.of(t.Elem())}
	case reflect.Map:
		return schema{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.Struct:
		if t.Name() == "" {
			return s.object(t)
		}
		return schema{"$ref": refPath + s.define(t)}
	}
	return schema{} // anything
}

// define adds the definition of a struct, once, and returns its name.
func (s *schemas) define(t reflect.Type) string {
	if name, ok := s.names[t]; ok {
		return name
	}
	name := cmp.Or(published[t], strings.TrimSuffix(capital(t.Name()), "View"))
	if s.taken[name] != nil { // the same name in another package
		pkg, _, _ := strings.Cut(t.String(), ".")
		name = capital(pkg) + name
	}
	s.names[t], s.taken[name] = name, t // before its fields, which may be recursive
	s.defs[name] = s.object(t)
	return name
}

func capital(s string) string {
	return string(unicode.ToUpper(rune(s[0]))) + s[1:]
}

// object returns the schema of a struct.
func (s *schemas) object(t reflect.Type) schema {
	properties, required := make(schema), []string{}
	s.fields(t, properties, &required, true)
	x := schema{"type": "object", "properties": properties}
	if len(required) > 0 {
		x["required"] = required
	}
	return x
}

// fields adds the fields of a struct as encoding/json sees them, with those of embedded
// structs; behind an embedded pointer, which may be nil, no field is required.
func (s *schemas) fields(t reflect.Type, properties schema, required *[]string, present bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && tag == "" {
			inner, sure := f.Type, present
			if inner.Kind() == reflect.Pointer {
				inner, sure = inner.Elem(), false
			}
			s.fields(inner, properties, required, sure)
			continue
		}
		if !f.IsExported() || tag == "-" {
			continue
		}
		if tag == "" {
			tag = f.Name
		}
		x := s.of(f.Type)
		if doc := f.Tag.Get("doc"); doc != "" {
			x = described(x, doc)
		}
		properties[tag] = x
		if strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero") {
			continue
		}
		if f.Type.Kind() == reflect.Pointer {
			properties[tag] = schema{"anyOf": []any{x, schema{"type": "null"}}}
		}
		if present {
			*required = append(*required, tag)
		}
	}
}

// described returns x with a description.
func described(x schema, text string) schema {
	out := schema{"description": text}
	for k, v := range x {
		if k != "description" {
			out[k] = v
		}
	}
	return out
}

// events gives the definition of an event one variant per type.
func (s *schemas) events() {
	name := s.define(reflect.TypeFor[wireEvent]())
	event := s.defs[name].(schema)
	var types []string
	var forms []any
	add := func(t string, data any) {
		types = append(types, t)
		forms = append(forms, schema{"properties": schema{"type": schema{"const": t}, "data": s.of(reflect.TypeOf(data))}, "required": []string{"type", "data"}})
	}
	for _, t := range sortedTypes() {
		add(string(t), runs.Facts[t])
	}
	add(deltaType, deltaData{})
	add(nodeStatus, runs.NodeStatus{})
	event["properties"].(schema)["type"] = schema{"type": "string", "enum": types}
	event["oneOf"] = forms
}

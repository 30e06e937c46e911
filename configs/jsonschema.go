package configs

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// An object is a JSON Schema, or a part of one.
type object = map[string]any

// JSONSchema returns the JSON Schema of the file, draft 2020-12, for editors. It comes from
// the declarations of the keys and accepts what Load reads without a warning about it.
// It does not know rules that cross keys.
func JSONSchema() ([]byte, error) {
	s := &schemaWriter{defs: make(object), defaults: Default()}
	root := s.group(reflect.TypeFor[Config](), "")
	root["type"] = []string{"object", "null"} // all of it may be comments
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = FileName
	root["$defs"] = s.defs
	text, err := json.MarshalIndent(root, "", " ")
	return append(text, '\n'), err
}

// A schemaWriter writes the schema of groups of keys.
type schemaWriter struct {
	defs     object // by name: groups that stand in several places
	defaults Config
}

// group returns the schema of a mapping with the keys of a struct type, except those named.
// path is that of the group; empty for the root, and for entries whose keys have no path.
func (s *schemaWriter) group(t reflect.Type, path string, except ...string) object {
	keys := make(object)
	for _, k := range keysOf(t) {
		if !slices.Contains(except, k.name) {
			keys[k.name] = s.key(k, joinPath(path, k.name))
		}
	}
	return object{"type": "object", "properties": keys, "additionalProperties": false}
}

// key returns the schema of a key with its help and its default.
func (s *schemaWriter) key(k key, path string) object {
	value := s.value(k, path)
	if bare(path) {
		value = anyOf(value, object{"type": "null"})
	}
	h := HelpOf(path)
	if text := h.Values; text != "" {
		if h.Default != "" && h.Default != "none" {
			text += ". Default: " + h.Default
		}
		value["description"] = text
	}
	if path == "node.name" { // the name of this machine
		return value
	}
	if text, ok := s.defaults.inForce(path); ok && text != "" && text != Hidden {
		var v any
		if yaml.Unmarshal([]byte(text), &v) == nil {
			value["default"] = v
		}
	}
	return value
}

// anyOf returns the schema of what any of several takes; those of an anyOf stand beside the
// others.
func anyOf(all ...object) object {
	var flat []object
	for _, one := range all {
		if inner, ok := one["anyOf"].([]object); ok {
			flat = append(flat, inner...)
		} else {
			flat = append(flat, one)
		}
	}
	return object{"anyOf": flat}
}

// ref returns a reference to the schema with a name, which make returns.
func (s *schemaWriter) ref(name string, make func() object) object {
	if _, ok := s.defs[name]; !ok {
		s.defs[name] = nil // make may refer to it
		s.defs[name] = make()
	}
	return object{"$ref": "#/$defs/" + name}
}

// byName is the schema of a mapping whose keys are names that the operator chooses.
func byName(value object) object {
	return object{"type": "object", "additionalProperties": value}
}

// value returns the schema of the values of a key.
func (s *schemaWriter) value(k key, path string) object {
	if schema := s.mapping(k, path); schema != nil {
		return schema
	}
	if schema := s.mixed(k, path); schema != nil {
		return schema
	}
	t, list := k.below()
	switch {
	case list:
		return object{"type": "array", "items": s.group(t, s.entryPath(path))}
	case t != nil:
		return s.group(t, path)
	case k.kind == "prompt variables": // which are checked at the end of the file
		names := object{"type": []string{"string", "boolean"}}
		return anyOf(object{"type": "array", "items": names}, names)
	case k.typ.Kind() == reflect.Slice:
		return anyOf(object{"type": "array", "items": k.probed()}, k.probed())
	}
	return k.scalar()
}

// entryPath is the path of the entries of a list; empty where the reader knows none.
func (s *schemaWriter) entryPath(path string) string {
	if path == "budgets" {
		return path + "[]"
	}
	return ""
}

// mapping returns the schema of a kind of mapping with names; nil for others.
func (s *schemaWriter) mapping(k key, path string) object {
	switch k.kind {
	case "profiles":
		profile := s.ref("profile", func() object {
			return anyOf(s.group(reflect.TypeFor[draft](), profilePath), object{"type": "null"})
		})
		schema := byName(profile)
		schema["properties"] = object{foregroundScope: object{"enum": []string{ScopeOwner, ScopeAll}, "description": HelpOf(path + "." + foregroundScope).Values}}
		return schema
	case "instances":
		return s.instances()
	case "people by name":
		return byName(anyOf(object{"type": "array", "items": object{"type": "string"}}, object{"type": "string"}))
	case "mcp":
		schema := byName(s.group(reflect.TypeFor[MCPServer](), ""))
		schema["propertyNames"] = object{"pattern": mcpName.String()}
		return schema
	case "model headers", "headers", "OTLP headers":
		return byName(scalars())
	case "own texts", "variables":
		return byName(anyOf(scalars(), object{"type": "null"}))
	case "secret variables":
		return byName(secretSchema())
	case "rates":
		return byName(object{"type": "string", "pattern": forms["rate"].looks.String()})
	case "effects":
		return byName(object{"enum": []string{EffectOnce, EffectIdempotent, EffectReadOnly}})
	case "confirm":
		return byName(object{"enum": []string{ConfirmAlways, ConfirmNever, ConfirmUnlessAllowed}})
	case "prices":
		return byName(s.group(reflect.TypeFor[Price](), ""))
	}
	return nil
}

// instances is the schema of the group connectors.
func (s *schemaWriter) instances() object {
	known, others := make(object), []object(nil)
	for _, t := range connectorTypes {
		settings := func(typ object, required ...string) object {
			schema := s.group(reflect.TypeOf(t.plain()).Elem(), t.path)
			schema["properties"].(object)["type"] = typ
			if required != nil {
				schema["required"] = required
			}
			return schema
		}
		known[t.name] = s.ref(t.name, func() object { return settings(object{"const": t.name}) })
		others = append(others, object{"$ref": "#/$defs/" + t.name, "required": []string{"type"}})
	}
	schema := byName(object{"anyOf": others})
	schema["properties"], schema["propertyNames"] = known, object{"pattern": instanceName.String()}
	return schema
}

// mixed returns the schema of a kind that is a group of keys or a single value; nil for others.
func (s *schemaWriter) mixed(k key, path string) object {
	off := object{"enum": []any{Off, false, "false"}}
	list := func(schema object) object { return object{"type": "array", "items": schema} }
	switch k.kind {
	case "http", "access", "files":
		group := s.group(k.typ, path)
		return anyOf(alone(k.typ, cmp.Or(short[path], "url")), group)
	case "model":
		return s.ref("model", func() object { return anyOf(alone(k.typ, "name"), s.group(k.typ, "model")) })
	case "fallback":
		one := s.ref("fallback", func() object {
			return anyOf(alone(reflect.TypeFor[Model](), "name"), s.group(reflect.TypeFor[Model](), "model.fallback[]", "fallback"))
		})
		return anyOf(list(one), one)
	case "transcription", "speech":
		return anyOf(object{"type": "boolean"}, alone(k.typ, "model"), s.group(k.typ, path))
	case "workspace":
		return s.ref("workspace", func() object { return anyOf(alone(k.typ, "provider"), s.group(k.typ, "workspaces")) })
	case "deep", "OAuth":
		return anyOf(truthSchema(""), s.group(k.typ.Elem(), path))
	case "explore":
		return s.group(k.typ.Elem(), path)
	case "plan":
		return s.group(reflect.TypeFor[planDraft](), path)
	case "fetch":
		return anyOf(object{"enum": []any{"public", Off, false, "false"}}, hostsSchema())
	case "network":
		return anyOf(object{"enum": []string{NetworkNone, NetworkFull, NetworkHostUnsafe}}, off, hostsSchema())
	case "workspace variables":
		return list(object{
			"type": "object", "additionalProperties": false, "required": []string{"name"},
			"properties": object{"name": object{"type": []string{"string", "boolean"}}, "value": scalars(), "secret": secretSchema()},
		})
	case "volumes":
		return list(s.group(reflect.TypeFor[WorkspaceVolume](), ""))
	case "MCP tools":
		patterns := anyOf(list(scalars()), scalars())
		return object{"type": "object", "properties": object{"allow": patterns, "deny": patterns}, "additionalProperties": false}
	case "model keys":
		return anyOf(list(secretSchema()), secretSchema())
	}
	return nil
}

// hostsSchema is that of {allow: [hosts]}.
func hostsSchema() object {
	hosts := anyOf(object{"type": "array", "items": scalars()}, scalars())
	return object{"type": "object", "properties": object{"allow": hosts}, "additionalProperties": false}
}

// alone is the schema of the key of a struct type which a single value in place of the group means.
func alone(t reflect.Type, name string) object {
	keys := keysOf(t)
	return keys[slices.IndexFunc(keys, func(k key) bool { return k.name == name })].scalar()
}

// scalars is the schema of any single value: claybot reads its text.
func scalars() object { return object{"type": []string{"string", "number", "boolean"}} }

// secretSchema is that of a reference to a secret.
func secretSchema() object {
	return object{"type": "string", "pattern": "^(env:|file:)"}
}

// truthSchema is that of true and false, or of the two words for them.
func truthSchema(words string) object {
	if yes, no, ok := strings.Cut(words, ","); ok {
		return object{"enum": []any{yes, no, true, false, "true", "false"}}
	}
	return object{"anyOf": []object{{"type": "boolean"}, {"type": "string", "pattern": caseless("true", "false", "on", "off", "yes", "no")}}}
}

// caseless is a pattern of words in any case.
func caseless(words ...string) string {
	var b strings.Builder
	for _, c := range strings.Join(words, "|") {
		if c == '|' {
			b.WriteRune(c)
			continue
		}
		b.WriteString("[" + strings.ToUpper(string(c)) + strings.ToLower(string(c)) + "]")
	}
	return "^(" + b.String() + ")$"
}

// limited adds the limits of a key to the schema of a number, which may be quoted.
func (k key) limited(number object, form string) object {
	least, most, ok := strings.Cut(k.limits, "..")
	if low, err := strconv.ParseFloat(least, 64); ok && err == nil {
		number["minimum"] = low
	}
	if high, err := strconv.ParseFloat(most, 64); ok && err == nil {
		number["maximum"] = high
	}
	return anyOf(number, object{"type": "string", "pattern": form})
}

// quantity is the schema of a duration or a size, whose limits are a comment.
func (k key) quantity(pattern string, bareNumber bool) object {
	text := object{"type": "string", "pattern": pattern}
	if least, most, ok := strings.Cut(k.limits, ".."); ok {
		text["$comment"] = "from " + least + " to " + most
	}
	switch {
	case bareNumber:
		n := object{"type": "integer", "minimum": k.leastBytes()}
		if k.words == "0" {
			return anyOf(text, n, object{"const": 0})
		}
		return anyOf(text, n)
	case k.words == "0" || strings.HasPrefix(k.limits, "0"):
		return anyOf(text, object{"const": 0})
	}
	return text
}

// leastBytes is the least value of a size.
func (k key) leastBytes() int64 {
	low, _, _ := strings.Cut(k.limits, "..")
	n, _ := parseSize(low) // declared as one
	if k.kind == "bytes" {
		n = minToolOutput
	}
	return max(n, 1)
}

// Patterns of texts for numbers. A zero alone stands for none where it may.
const (
	wholePattern    = `^[+-]?[0-9]+$`
	decimalPattern  = `^([0-9]+\.?[0-9]*|\.[0-9]+)$`
	durationPattern = `^(0|[0-9]+d|[+-]?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`
	sizePattern     = `^(0|[0-9]+([kKmMgGtT][iI]?[bB]?)?)$`
	bytesPattern    = `^[0-9]+( *[KMG]iB)?$`
)

// scalar returns the schema of a key with a single value.
func (k key) scalar() object {
	switch k.kind {
	case "level":
		return anyOf(object{"enum": []string{"debug", "info", "warn", "error"}}, object{"type": "string", "pattern": caseless("debug", "info", "warn", "error")})
	case "milliseconds", "longest debounce":
		return k.limited(object{"type": "integer"}, wholePattern)
	case "window":
		return anyOf(object{"const": 0}, object{"type": "integer", "minimum": minWindow, "maximum": maxWindow}, object{"type": "string", "pattern": wholePattern})
	case "micro-USD", "price":
		return k.limited(object{"type": "number", "minimum": 0}, decimalPattern)
	case "number":
		return anyOf(object{"type": "number"}, object{"type": "string"})
	case "size":
		return k.quantity(sizePattern, true)
	case "bytes":
		return k.quantity(bytesPattern, true)
	case "pprof":
		return anyOf(truthSchema(""), object{"enum": []any{0, 1, "0", "1"}})
	case "memory", "global notes":
		return truthSchema(truths[k.kind])
	case "notes", "browser":
		return truthSchema("on,off")
	case "system fallback":
		return object{"enum": []string{"auto", "always", "never"}}
	case "quiet":
		return object{"enum": []string{QuietPlanOnly, QuietDefer, QuietBlock}}
	}
	return k.typed()
}

// typed is scalar for the kinds that the type of the field says.
func (k key) typed() object {
	if k.kind == "" {
		switch reflect.New(k.typ).Interface().(type) {
		case *bool:
			return truthSchema(k.words)
		case *int, **int, *int64:
			return k.limited(object{"type": "integer"}, wholePattern)
		case *float64:
			return k.limited(object{"type": "number"}, decimalPattern)
		case *Secret:
			return secretSchema()
		}
	}
	switch {
	case k.typ == reflect.TypeFor[Secret]():
		return secretSchema()
	case k.kind == "" && k.typ.Kind() == reflect.Int64: // a duration
		return k.quantity(durationPattern, false)
	case k.kind == "" && k.words != "":
		words := make([]any, 0, 8)
		for _, w := range strings.Split(k.words, ",") {
			words = append(words, w)
			if w == Off {
				words = append(words, false, "false")
			}
		}
		return object{"enum": words}
	}
	return k.probed()
}

// probed is the schema of a key whose text has a form: its parser says whether it takes
// numbers and words for true and false as well.
func (k key) probed() object {
	types := []string{"string"}
	switch {
	case k.takes("1.5"):
		types = append(types, "number")
	case k.takes("7") || k.takes("10001"):
		types = append(types, "integer")
	}
	yes, no := k.takes("true"), k.takes("false")
	if yes && no {
		types = append(types, "boolean")
	}
	schema := object{"type": types}
	if f, ok := forms[k.kind]; ok && k.typ.Kind() == reflect.String {
		schema["pattern"], schema["maxLength"] = f.looks.String(), f.most
	}
	if no && !yes {
		return anyOf(schema, object{"const": false})
	}
	return schema
}

// takes reports whether the key takes any of the values.
func (k key) takes(values ...string) bool {
	return slices.ContainsFunc(values, func(v string) bool {
		r := &reader{env: func(string) (string, bool) { return "", false }}
		setterOf(k)(r, place{}, &yaml.Node{Kind: yaml.ScalarNode, Value: v}, k, reflect.New(k.in).Interface())
		return len(r.warnings) == 0
	})
}

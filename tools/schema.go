package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

const (
	// maxInPlace is how many schemas one schema may apply to the same value, by references and
	// by keywords such as allOf.
	maxInPlace = 10_000
	// maxNested is how deep these may be nested.
	maxNested = 64
	// maxLevels is how deep a value may be nested that a schema with references is checked with.
	maxLevels = 200
	// maxChecks bounds the work of checking one value with such a schema.
	maxChecks = 300_000
)

var errBroken = errors.New("the schema is broken")

// A schema checks values. It ends for every value: the library follows references without a
// limit, and a stack without one ends the process.
type schema struct {
	resolved *jsonschema.Resolved
	refs     map[*jsonschema.Schema]*jsonschema.Schema // what $ref means; empty: there is none
}

// resolve reads a schema; without a text, it is that of any object.
func resolve(raw json.RawMessage) (_ *schema, err error) {
	defer func() { // it is unknown what the library makes of every schema
		if recover() != nil {
			err = errBroken
		}
	}()
	root := &jsonschema.Schema{Type: "object"}
	if len(raw) > 0 {
		root = new(jsonschema.Schema)
		if err := json.Unmarshal(raw, root); err != nil {
			return nil, err
		}
	}
	resolved, err := root.Resolve(nil)
	if err != nil {
		return nil, err
	}
	d := &schemaDocument{
		at: make(map[string]*jsonschema.Schema), bases: make(map[*jsonschema.Schema]schemaBase), anchors: make(map[string]*jsonschema.Schema),
		refs: make(map[*jsonschema.Schema]*jsonschema.Schema), sizes: make(map[*jsonschema.Schema]schemaSize),
	}
	if err := d.read(root); err != nil {
		return nil, err
	}
	return &schema{resolved, d.refs}, nil
}

// Validate returns why a value does not match.
func (s *schema) Validate(v any) error {
	if len(s.refs) > 0 { // else each part of the schema is applied at most once to each part of the value
		w := &checkWork{refs: s.refs, left: maxChecks}
		if err := w.apply(s.resolved.Schema(), v, 0); err != nil {
			return err
		}
	}
	return s.resolved.Validate(v)
}

// A schemaBase is where the references of a schema begin.
type schemaBase struct {
	uri  *url.URL
	path string
}

// A schemaDocument is a schema with all that is in it.
type schemaDocument struct {
	at      map[string]*jsonschema.Schema // by JSON pointer
	bases   map[*jsonschema.Schema]schemaBase
	ids     map[string]string             // path by URI
	anchors map[string]*jsonschema.Schema // by path of the base, #, and name; nil: there are two
	refs    map[*jsonschema.Schema]*jsonschema.Schema
	sizes   map[*jsonschema.Schema]schemaSize
	draft7  bool
}

// read resolves all references, and refuses those that lead to endless work.
func (d *schemaDocument) read(root *jsonschema.Schema) error {
	d.ids, d.draft7 = map[string]string{"": ""}, strings.Contains(root.Schema, "/draft-07/")
	if err := d.collect(root, "", schemaBase{uri: new(url.URL)}); err != nil {
		return err
	}
	for s := range d.bases {
		if s.DynamicRef != "" {
			return errors.New("$dynamicRef is not supported")
		}
		if s.Ref == "" {
			continue
		}
		if d.refs[s] = d.target(s); d.refs[s] == nil {
			return fmt.Errorf("the reference %.100q is not supported", s.Ref)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(d.at)) {
		if _, err := d.size(d.at[path]); err != nil {
			return err
		}
	}
	return nil
}

func (d *schemaDocument) collect(s *jsonschema.Schema, path string, base schemaBase) error {
	ignored := d.draft7 && s.Ref != "" // so the draft says, of all beside the reference
	if id, err := url.Parse(s.ID); err == nil && s.ID != "" && !ignored {
		if id.Fragment != "" { // an anchor of draft 7
			d.anchor(base.path, id.Fragment, s)
		} else {
			base = schemaBase{base.uri.ResolveReference(id), path}
			if _, two := d.ids[base.uri.String()]; two {
				return fmt.Errorf("two schemas have the $id %.100q", s.ID)
			}
			d.ids[base.uri.String()] = path
		}
	}
	d.at[path], d.bases[s] = s, base
	d.anchor(base.path, s.Anchor, s)
	d.anchor(base.path, s.DynamicAnchor, s)
	for name, sub := range subschemas(s) {
		if err := d.collect(sub, path+name, base); err != nil {
			return err
		}
	}
	return nil
}

func (d *schemaDocument) anchor(base, name string, s *jsonschema.Schema) {
	if name == "" {
		return
	}
	if _, two := d.anchors[base+"#"+name]; two {
		s = nil
	}
	d.anchors[base+"#"+name] = s
}

var (
	pointerUnescaper = strings.NewReplacer("~0", "~", "~1", "/")
	pointerEscaper   = strings.NewReplacer("~", "~0", "/", "~1")
)

// target returns what the reference of a schema means; nil: it is unknown.
func (d *schemaDocument) target(s *jsonschema.Schema) *jsonschema.Schema {
	ref, err := url.Parse(s.Ref)
	if err != nil {
		return nil
	}
	ref = d.bases[s].uri.ResolveReference(ref)
	fragment := ref.Fragment
	ref.Fragment, ref.RawFragment = "", ""
	path, ok := d.ids[ref.String()]
	switch {
	case !ok:
		return nil
	case fragment == "" || fragment[0] == '/':
		return d.at[path+pointerEscaped(fragment)]
	}
	return d.anchors[path+"#"+fragment]
}

// pointerEscaped returns a JSON pointer with the escapes that subschemas uses.
func pointerEscaped(pointer string) string {
	parts := strings.Split(pointer, "/")
	for i, p := range parts {
		parts[i] = pointerEscaper.Replace(pointerUnescaper.Replace(p))
	}
	return strings.Join(parts, "/")
}

// A schemaSize is how many schemas a schema applies to the same value, itself among them, and how
// deep they are nested.
type schemaSize struct{ all, nested int }

func (d *schemaDocument) size(s *jsonschema.Schema) (schemaSize, error) {
	if n, known := d.sizes[s]; known {
		if n.all == 0 {
			return n, errors.New("a reference leads back to itself without a property or an item in between")
		}
		return n, nil
	}
	d.sizes[s] = schemaSize{} // being counted
	n := schemaSize{all: 1}
	for _, sub := range inPlace(s, d.refs) {
		more, err := d.size(sub)
		if err != nil {
			return n, err
		}
		n.all, n.nested = n.all+more.all, max(n.nested, more.nested+1)
		if n.all > maxInPlace || n.nested > maxNested {
			return n, fmt.Errorf("more than %d schemas apply to one value, or more than %d nested ones", maxInPlace, maxNested)
		}
	}
	d.sizes[s] = n
	return n, nil
}

// subschemas yields what is in a schema, by its place.
func subschemas(s *jsonschema.Schema) func(yield func(string, *jsonschema.Schema) bool) {
	return func(yield func(string, *jsonschema.Schema) bool) {
		for name, sub := range map[string]*jsonschema.Schema{
			"items": s.Items, "additionalItems": s.AdditionalItems, "contains": s.Contains, "unevaluatedItems": s.UnevaluatedItems,
			"additionalProperties": s.AdditionalProperties, "propertyNames": s.PropertyNames, "unevaluatedProperties": s.UnevaluatedProperties,
			"not": s.Not, "if": s.If, "then": s.Then, "else": s.Else, "contentSchema": s.ContentSchema,
		} {
			if sub != nil && !yield("/"+name, sub) {
				return
			}
		}
		for name, list := range map[string][]*jsonschema.Schema{"prefixItems": s.PrefixItems, "items": s.ItemsArray, "allOf": s.AllOf, "anyOf": s.AnyOf, "oneOf": s.OneOf} {
			for i, sub := range list {
				if !yield("/"+name+"/"+strconv.Itoa(i), sub) {
					return
				}
			}
		}
		for name, members := range map[string]map[string]*jsonschema.Schema{
			"$defs": s.Defs, "definitions": s.Definitions, "dependencies": s.DependencySchemas, "properties": s.Properties,
			"patternProperties": s.PatternProperties, "dependentSchemas": s.DependentSchemas,
		} {
			for key, sub := range members {
				if !yield("/"+name+"/"+pointerEscaper.Replace(key), sub) {
					return
				}
			}
		}
	}
}

// inPlace returns the schemas that a schema applies to the same value.
func inPlace(s *jsonschema.Schema, refs map[*jsonschema.Schema]*jsonschema.Schema) []*jsonschema.Schema {
	all := slices.Concat([]*jsonschema.Schema{refs[s], s.Not, s.If, s.Then, s.Else}, s.AllOf, s.AnyOf, s.OneOf)
	all = slices.AppendSeq(all, maps.Values(s.DependentSchemas))
	all = slices.AppendSeq(all, maps.Values(s.DependencySchemas))
	return slices.DeleteFunc(all, func(sub *jsonschema.Schema) bool { return sub == nil })
}

// A checkWork counts what it takes to check a value, at most.
type checkWork struct {
	refs map[*jsonschema.Schema]*jsonschema.Schema
	left int
}

func (w *checkWork) apply(s *jsonschema.Schema, v any, depth int) error {
	if w.left--; w.left < 0 {
		return fmt.Errorf("checking it takes more than %d steps", maxChecks)
	}
	if depth > maxLevels {
		return fmt.Errorf("it is nested more than %d deep", maxLevels)
	}
	for _, sub := range inPlace(s, w.refs) {
		if err := w.apply(sub, v, depth); err != nil {
			return err
		}
	}
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if err := w.each(ofMember(s, name), member, depth); err != nil {
				return err
			}
		}
	case []any:
		for i, item := range v {
			if err := w.each(ofItem(s, i), item, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *checkWork) each(all []*jsonschema.Schema, v any, depth int) error {
	for _, sub := range all {
		if sub == nil {
			continue
		}
		if err := w.apply(sub, v, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// ofMember returns the schemas that a schema may apply to a member of an object, and to its name.
func ofMember(s *jsonschema.Schema, name string) []*jsonschema.Schema {
	all := []*jsonschema.Schema{s.Properties[name], s.PropertyNames}
	if all[0] == nil {
		all = append(all, s.AdditionalProperties, s.UnevaluatedProperties)
	}
	return slices.AppendSeq(all, maps.Values(s.PatternProperties))
}

// ofItem returns the schemas that a schema may apply to an item of a list.
func ofItem(s *jsonschema.Schema, i int) []*jsonschema.Schema {
	all := []*jsonschema.Schema{s.Contains}
	for _, list := range [][]*jsonschema.Schema{s.PrefixItems, s.ItemsArray} {
		if i < len(list) {
			return append(all, list[i])
		}
	}
	return append(all, s.Items, s.AdditionalItems, s.UnevaluatedItems)
}

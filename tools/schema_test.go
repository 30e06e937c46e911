package tools_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/claybot/claybot/tools"
)

// doubled is a schema in which each of n definitions applies the next one twice.
func doubled(n int) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
	for i := range n {
		fmt.Fprintf(&b, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	fmt.Fprintf(&b, `"d%d":{}}}`, n)
	return b.String()
}

// chained is a schema with n references, each to the next.
func chained(n int) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
	for i := range n {
		fmt.Fprintf(&b, `"d%d":{"$ref":"#/$defs/d%d"},`, i, i+1)
	}
	fmt.Fprintf(&b, `"d%d":{}}}`, n)
	return b.String()
}

// A schema whose check would not end, or not soon, is refused: the stack of the process is at stake.
func TestEndlessSchemas(t *testing.T) {
	const loops, many = "leads back to itself", "schemas apply to one value"
	for name, c := range map[string]struct{ schema, want string }{
		"root":          {`{"$ref":"#"}`, loops},
		"two":           {`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`, loops},
		"not reached":   {`{"$defs":{"a":{"$ref":"#/$defs/a"}}}`, loops},
		"of a property": {`{"properties":{"a":{"$ref":"#/properties/a"}}}`, loops},
		"allOf":         {`{"allOf":[{"$ref":"#"}]}`, loops},
		"anyOf":         {`{"anyOf":[{},{"$ref":"#"}]}`, loops},
		"oneOf":         {`{"oneOf":[{"$ref":"#"}]}`, loops},
		"not":           {`{"not":{"$ref":"#"}}`, loops},
		"if":            {`{"if":{"$ref":"#"}}`, loops},
		"then":          {`{"if":{},"then":{"$ref":"#"}}`, loops},
		"else":          {`{"if":false,"else":{"$ref":"#"}}`, loops},
		"dependent":     {`{"dependentSchemas":{"a":{"$ref":"#"}}}`, loops},
		"draft 7":       {`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":{"$ref":"#"}}}`, loops},
		"draft 7, id":   {`{"$schema":"http://json-schema.org/draft-07/schema#","$id":"http://example.com/s","definitions":{"a":{"$id":"#a","allOf":[{"$ref":"#a"}]}}}`, loops},
		"ignored id":    {`{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#/definitions/a","$id":"http://example.com/s","definitions":{"a":{"$ref":"#/definitions/a"}}}`, loops},
		"anchor":        {`{"$anchor":"a","allOf":[{"$ref":"#a"}]}`, loops},
		"id":            {`{"$id":"https://example.com/s","allOf":[{"$ref":"https://example.com/s"}]}`, loops},
		"nested id":     {`{"$id":"https://example.com/s","$defs":{"a":{"$id":"t","allOf":[{"$ref":"t#"}]}}}`, loops},
		"escaped":       {`{"$defs":{"a/b c":{"$ref":"#/$defs/a~1b%20c"}}}`, loops},
		"case":          {`{"$REF":"#"}`, loops},
		"dynamic":       {`{"$dynamicAnchor":"a","allOf":[{"$dynamicRef":"#a"}]}`, "$dynamicRef"},
		"exponential":   {doubled(40), many},
		"a long chain":  {chained(500), many},
		"odd index":     {`{"allOf":[{},{"$ref":"#/allOf/+0"}]}`, "not supported"},
	} {
		err := tools.CheckSchema(json.RawMessage(c.schema))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		// One that is stored already fails with a reason.
		if err := tools.CheckJSON(json.RawMessage(c.schema), `{}`); err == nil || !strings.Contains(err.Error(), "invalid schema: ") {
			t.Errorf("%s, stored: %v", name, err)
		}
	}
}

// References, trees among them, check values as before; a value that takes too long is refused.
func TestSchemasWithReferences(t *testing.T) {
	const (
		tree  = `{"type":"object","properties":{"name":{"type":"string"},"children":{"type":"array","items":{"$ref":"#"}}},"required":["name"]}`
		terms = `{"$ref":"#/$defs/e","$defs":{"e":{"anyOf":[{"type":"number"},{"type":"object","properties":{"op":{"const":"neg"},"of":{"$ref":"#/$defs/e"}},"required":["op","of"]},` +
			`{"type":"object","properties":{"op":{"const":"add"},"of":{"$ref":"#/$defs/e"},"to":{"$ref":"#/$defs/e"}},"required":["op","of","to"]}]}}}`
		twice = `{"allOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}]}`
		ids   = `{"$id":"https://example.com/s","$ref":"https://example.com/n","$defs":{"n":{"$id":"n","type":"array","items":{"$ref":"#x"},"$defs":{"x":{"$anchor":"x","type":"integer"}}}}}`
	)
	deep := func(n int) string { return strings.Repeat(`{"a":`, n) + "{}" + strings.Repeat("}", n) }
	for _, c := range []struct{ schema, text, want string }{
		{tree, `{"name":"a","children":[{"name":"b","children":[]},{"name":"c"}]}`, ""},
		{tree, `{"name":"a","children":[{"name":"b","children":[{}]}]}`, "missing properties"},
		{terms, `{"op":"add","of":{"op":"neg","of":{"op":"neg","of":1}},"to":2}`, ""},
		{terms, `{"op":"add","of":{"op":"neg","of":"x"},"to":2}`, "anyOf"},
		{twice, deep(8), ""},
		{twice, deep(40), "steps"},
		{`{"properties":{"a":{"$ref":"#"}}}`, deep(150), ""},
		{`{"properties":{"a":{"$ref":"#"}}}`, deep(5000), "nested more than"},
		{`{"additionalProperties":{"$ref":"#"}}`, deep(5000), "nested more than"},
		{`{"patternProperties":{"^a":{"$ref":"#"}}}`, deep(5000), "nested more than"},
		{`{"items":{"$ref":"#"}}`, strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "nested more than"},
		{`{"prefixItems":[{"$ref":"#"}]}`, strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "nested more than"},
		{ids, `[1,2]`, ""},
		{ids, `["x"]`, "integer"},
		{doubled(10), `{}`, ""},
	} {
		if err := tools.CheckSchema(json.RawMessage(c.schema)); err != nil {
			t.Errorf("%.60s: %v", c.schema, err)
		}
		err := tools.CheckJSON(json.RawMessage(c.schema), c.text)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60s with %.60s: %v, want %q", c.schema, c.text, err, c.want)
		}
	}
}

package prompts

import (
	"maps"
	"slices"
)

// tests are the words after is, with the number of values that they take; in is
// what the parser makes of the operator.
var tests = map[string]int{
	"defined": 0, "undefined": 0, "none": 0, "string": 0, "number": 0, "boolean": 0,
	"mapping": 0, "sequence": 0, "iterable": 0, "odd": 0, "even": 0, "in": 1,
}

func testNames() []string { return slices.Sorted(maps.Keys(tests)) }

// test answers whether v is what the name says. with is nil but for in.
func (r *renderer) test(name string, v, with any) bool {
	u, undefined := v.(*undefined)
	switch name {
	case "defined":
		return !undefined
	case "undefined":
		return undefined
	}
	if undefined {
		r.report(u)
		return false
	}
	switch name {
	case "in":
		return r.contains(with, v)
	case "none":
		return v == nil
	case "string":
		_, ok := v.(string)
		return ok
	case "number":
		return isNumber(v)
	case "boolean":
		_, ok := v.(bool)
		return ok
	case "mapping":
		_, ok := v.(map[string]any)
		return ok
	case "odd", "even":
		n, ok := v.(int64)
		return ok && (n%2 == 0) == (name == "even")
	default: // sequence, iterable
		switch v.(type) {
		case string, []any, map[string]any:
			return true
		}
		return false
	}
}

// contains reports whether in has v: a part of a text, an entry, a key.
func (r *renderer) contains(in, v any) bool {
	switch in := in.(type) {
	case *undefined:
		r.report(in)
		return false
	case string:
		part, ok := v.(string)
		if !ok {
			stop(r.line, "only a text can be in a text, not %s", kind(v))
		}
		r.spend(len(in)/copied + len(part)/copied)
		return containsText(in, part)
	case map[string]any:
		key, ok := v.(string)
		_, has := in[key]
		return ok && has
	case []any:
		return slices.ContainsFunc(in, func(e any) bool { return r.equal(e, v) })
	}
	stop(r.line, "nothing can be in %s", kind(in))
	return false
}

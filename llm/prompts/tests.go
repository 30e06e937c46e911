package prompts

import (
	"maps"
	"slices"
	"strings"
)

var tests = map[string]func(r *renderer, v any) bool{
	"defined":   func(_ *renderer, v any) bool { return !is[*undefined](v) },
	"undefined": func(_ *renderer, v any) bool { return is[*undefined](v) },
	"none":      ofDefined(func(v any) bool { return v == nil }),
	"string":    ofDefined(is[string]),
	"number":    ofDefined(isNumber),
	"boolean":   ofDefined(is[bool]),
	"mapping":   ofDefined(is[map[string]any]),
	"sequence":  ofDefined(hasEntries),
	"iterable":  ofDefined(hasEntries),
	"odd":       ofDefined(func(v any) bool { n, ok := v.(int64); return ok && n%2 != 0 }),
	"even":      ofDefined(func(v any) bool { n, ok := v.(int64); return ok && n%2 == 0 }),
}

func testNames() []string { return slices.Sorted(maps.Keys(tests)) }

func ofDefined(test func(v any) bool) func(*renderer, any) bool {
	return func(r *renderer, v any) bool { return !r.isUndefined(v) && test(v) }
}

func is[T any](v any) bool {
	_, ok := v.(T)
	return ok
}

func isNumber(v any) bool   { return is[int64](v) || is[float64](v) }
func hasEntries(v any) bool { return is[string](v) || is[[]any](v) || is[map[string]any](v) }

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
		return strings.Contains(in, part)
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

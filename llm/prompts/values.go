package prompts

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"
)

// The values of templates are nil, bool, int64, float64, string, time.Time,
// []any, map[string]any, *undefined and *turn; nothing else gets in.

type undefined struct {
	what string
	line int
}

func (r *renderer) isUndefined(v any) bool {
	u, ok := v.(*undefined)
	if ok {
		r.report(u)
	}
	return ok
}

const maxDepth = 100

// plain makes a value of templates from one of the host, by way of JSON where
// it has a form of its own.
func plain(v any, depth int) any {
	if depth > maxDepth {
		stop(0, "a value is nested too deeply")
	}
	switch v := v.(type) {
	case nil, bool, string, int64, time.Time:
		return v
	case float64:
		if whole := int64(v); float64(whole) == v && math.Abs(v) < 1<<53 {
			return whole // as JSON shows it
		}
		return v
	case int:
		return int64(v)
	case json.Number:
		return number(v)
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = plain(e, depth+1)
		}
		return list
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, e := range v {
			m[k] = plain(e, depth+1)
		}
		return m
	}
	b, err := json.Marshal(v)
	if err != nil {
		stop(0, "a value of the type %T cannot be shown", v)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var x any
	if err := d.Decode(&x); err != nil {
		stop(0, "a value of the type %T cannot be shown", v)
	}
	return plain(x, depth+1)
}

func number(n json.Number) any {
	if i, err := strconv.ParseInt(n.String(), 10, 64); err == nil {
		return i
	}
	f, err := n.Float64()
	if err != nil {
		return n.String()
	}
	return f
}

func asFloat(v any) float64 {
	if i, ok := v.(int64); ok {
		return float64(i)
	}
	f, _ := v.(float64)
	return f
}

func kind(v any) string {
	switch v.(type) {
	case nil:
		return "none"
	case bool:
		return "true or false"
	case int64, float64:
		return "a number"
	case string:
		return "a text"
	case time.Time:
		return "a time"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	case *undefined:
		return "something undefined"
	}
	return "a loop"
}

func (r *renderer) truth(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return !r.isUndefined(v)
}

// equal compares as Jinja2 does, numbers by value.
func (r *renderer) equal(a, b any) bool {
	r.spend(1)
	if r.isUndefined(a) || r.isUndefined(b) {
		return false
	}
	switch x := a.(type) {
	case int64:
		if y, ok := b.(int64); ok {
			return x == y
		}
		return isNumber(b) && float64(x) == asFloat(b)
	case float64:
		return isNumber(b) && x == asFloat(b)
	case string:
		y, ok := b.(string)
		r.spend(min(len(x), len(y)) / copied)
		return ok && x == y
	case time.Time:
		y, ok := b.(time.Time)
		return ok && x.Equal(y)
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, r.equal)
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && maps.EqualFunc(x, y, r.equal)
	default:
		switch b.(type) {
		case []any, map[string]any:
			return false
		}
		return a == b // nil, bool, a loop
	}
}

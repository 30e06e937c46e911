package imports

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A Value is a part of a text that another program wrote. What is not there, or of another type than
// asked for, is the zero value of that type.
type Value struct{ v any }

// ValueOf returns a Value of what encoding/json, or configs.ReadYAML, makes of a text.
func ValueOf(v any) Value { return Value{v} }

// At returns the value behind keys, each below the one before.
func (v Value) At(keys ...string) Value {
	for _, k := range keys {
		m, _ := v.v.(map[string]any)
		v = Value{m[k]}
	}
	return v
}

// First returns the first of several keys that is there.
func (v Value) First(keys ...string) Value {
	for _, k := range keys {
		if x := v.At(k); x.There() {
			return x
		}
	}
	return Value{}
}

// There reports whether there is a value, other than null.
func (v Value) There() bool { return v.v != nil }

// Text returns a string without white space around it, or a whole number as its digits.
func (v Value) Text() string {
	switch x := v.v.(type) {
	case string:
		return strings.TrimSpace(x)
	case int:
		return strconv.Itoa(x)
	case float64:
		if x == math.Trunc(x) && math.Abs(x) < 1<<53 {
			return strconv.FormatInt(int64(x), 10)
		}
	}
	return ""
}

// Long returns a string as it is.
func (v Value) Long() string { s, _ := v.v.(string); return s }

// Number returns a number.
func (v Value) Number() float64 {
	switch x := v.v.(type) {
	case float64:
		return x
	case int:
		return float64(x)
	}
	return 0
}

// Is reports whether the value is true or false, as wanted.
func (v Value) Is(want bool) bool { b, ok := v.v.(bool); return ok && b == want }

// Keys returns the keys of an object, sorted.
func (v Value) Keys() []string {
	m, _ := v.v.(map[string]any)
	return slices.Sorted(maps.Keys(m))
}

// Object reports whether the value has keys.
func (v Value) Object() bool { _, ok := v.v.(map[string]any); return ok }

// List returns the entries of a list; a single text or number is a list of one.
func (v Value) List() []Value {
	list, ok := v.v.([]any)
	if !ok && v.Text() != "" {
		return []Value{v}
	}
	all := make([]Value, len(list))
	for i, x := range list {
		all[i] = Value{x}
	}
	return all
}

// Texts returns the texts and numbers of a list.
func (v Value) Texts() (all []string) {
	for _, x := range v.List() {
		if t := x.Text(); t != "" {
			all = append(all, t)
		}
	}
	return all
}

// Scalar returns a text, a number or a truth value as text.
func (v Value) Scalar() string {
	switch x := v.v.(type) {
	case string:
		return x
	case bool, float64, int:
		return fmt.Sprint(x)
	}
	return ""
}

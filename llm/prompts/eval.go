package prompts

import (
	"cmp"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"
	"time"
)

// lookup finds a name: of the template itself, of the data, of a node.
func (r *renderer) lookup(e *expr, name string) any {
	for _, names := range slices.Backward(r.scopes) {
		if v, ok := names[name]; ok {
			return v
		}
	}
	if v, ok := r.root(name); ok {
		return v
	}
	if name == "none" || name == "null" {
		return nil
	}
	return r.missing(e)
}

func (r *renderer) missing(e *expr) *undefined {
	what := e.describe()
	r.spend(len(what) / copied)
	if runes := []rune(what); len(runes) > maxNamed {
		what = string(runes[:maxNamed]) + "…"
	}
	return &undefined{what, e.line}
}

const maxNamed = 120

func (r *renderer) get(e *expr, v, key any) any {
	switch v := v.(type) {
	case *undefined:
		return r.longer(v, key)
	case *turn:
		if name, ok := key.(string); ok {
			if x, ok := v.attribute(name); ok {
				return x
			}
		}
	case map[string]any:
		if name, ok := key.(string); ok {
			if x, ok := v[name]; ok {
				return x
			}
		}
	case []any:
		if i, ok := index(key, len(v)); ok {
			return v[i]
		}
	case string:
		r.spend(len(v) / copied)
		runes := []rune(v)
		if i, ok := index(key, len(runes)); ok {
			return string(runes[i])
		}
	}
	r.isUndefined(key)
	return r.missing(e)
}

// longer is an attribute of something undefined. Its name says more.
func (r *renderer) longer(u *undefined, key any) *undefined {
	name, ok := key.(string)
	if !ok || len(u.what)+len(name) > maxNamed {
		return u
	}
	r.spend(4)
	return &undefined{u.what + "." + name, u.line}
}

// index is the place in n entries that key means; negative ones count from the
// end.
func index(key any, n int) (int, bool) {
	i, ok := key.(int64)
	if i < 0 {
		i += int64(n)
	}
	return int(i), ok && i >= 0 && i < int64(n)
}

// slice is a part of a list or a text, as in Python. bounds are where it begins and
// ends, and its step; nil for what is left out.
func (r *renderer) slice(v any, bounds []*expr) any {
	text, isText := v.(string)
	if _, ok := v.([]any); !ok && !isText {
		if u, ok := v.(*undefined); ok {
			return u
		}
		stop(r.line, "%s has no parts", kind(v))
	}
	list := r.items(v)
	length := int64(len(list))
	step := r.bound(bounds[2], 1)
	if step == 0 {
		stop(r.line, "the step of a part must not be 0")
	}
	low, high := int64(0), length
	if step < 0 {
		low, high = -1, length-1
	}
	clamp := func(i int64) int64 {
		if i < 0 {
			i += length
		}
		return min(max(i, low), high)
	}
	from, to := low, high
	if step < 0 {
		from, to = high, low
	}
	if bounds[0] != nil {
		from = clamp(r.bound(bounds[0], from))
	}
	if bounds[1] != nil {
		to = clamp(r.bound(bounds[1], to))
	}
	step = min(max(step, -length-1), length+1) // no overflow below
	part := []any{}
	for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
		part = append(part, list[i])
	}
	r.spend(len(part))
	if !isText {
		return part
	}
	if step == 1 && len(text) == len(list) && from <= to {
		return text[from:to]
	}
	s := r.sheet()
	for _, c := range part {
		s.put(c.(string))
	}
	return s.String()
}

// bound is a number of a slice; otherwise where none is given.
func (r *renderer) bound(e *expr, otherwise int64) int64 {
	if e == nil {
		return otherwise
	}
	switch x := r.eval(e).(type) {
	case int64:
		return x
	case nil:
		return otherwise
	}
	stop(r.line, "the bounds of a part must be whole numbers")
	return 0
}

func (r *renderer) items(v any) []any {
	switch v := v.(type) {
	case []any:
		return v
	case map[string]any:
		r.spend(len(v))
		keys := make([]any, 0, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			keys = append(keys, k)
		}
		return keys
	case string:
		r.spend(len(v))
		list := make([]any, 0, len(v))
		for _, c := range v {
			list = append(list, string(c))
		}
		return list
	case *undefined:
		r.report(v)
		return nil
	}
	stop(r.line, "%s has no entries", kind(v))
	return nil
}

func (r *renderer) pairs(m map[string]any) []any {
	list := r.items(m)
	r.spend(2 * len(list))
	for i, k := range list {
		list[i] = []any{k, m[k.(string)]}
	}
	return list
}

func (r *renderer) entries(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return r.pairs(v)
	case *undefined:
		r.report(v)
	default:
		stop(r.line, "%s has no items()", kind(v))
	}
	return []any{}
}

func (r *renderer) numbers(args []any) any {
	bounds := []int64{0, 0, 1}
	for i, v := range args {
		x, ok := v.(int64)
		if !ok {
			stop(r.line, "range needs whole numbers, not %s", kind(v))
		}
		if len(args) == 1 {
			i = 1
		}
		bounds[i] = x
	}
	from, to, step := bounds[0], bounds[1], bounds[2]
	if step == 0 {
		stop(r.line, "the step of range must not be 0")
	}
	list := []any{}
	for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
		if len(list) == MaxTurns {
			exceed(r.line, "range has more than %d numbers", MaxTurns)
		}
		list = append(list, i)
		if next := i + step; (next > i) != (step > 0) {
			break // beyond the largest number
		}
	}
	r.spend(3 * len(list))
	return list
}

func (r *renderer) signed(sign string, v any) any {
	switch {
	case r.isUndefined(v):
		return v
	case !isNumber(v):
		stop(r.line, "%s has no sign", kind(v))
	case sign == "+":
		return v
	}
	if f, ok := v.(float64); ok {
		return -f
	}
	return r.integers("-", 0, v.(int64))
}

func (r *renderer) operate(op string, a, b *expr) any {
	left := r.eval(a)
	switch {
	case op == "and" && !r.truth(left), op == "or" && r.truth(left):
		return left
	}
	right := r.eval(b)
	switch op {
	case "and", "or":
		return right
	case "==":
		return r.equal(left, right)
	case "!=":
		return !r.equal(left, right)
	case "~":
		return r.join(r.text(left), r.text(right))
	}
	ordering := op[0] == '<' || op[0] == '>'
	for _, v := range [...]any{left, right} {
		if r.isUndefined(v) {
			if ordering {
				return false
			}
			return v
		}
	}
	if !ordering {
		return r.calculate(op, left, right)
	}
	switch order := r.compare(left, right); op {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	default:
		return order >= 0
	}
}

func (r *renderer) join(a, b string) string {
	s := r.sheet()
	s.put(a)
	s.put(b)
	return s.String()
}

func (r *renderer) calculate(op string, left, right any) any {
	if op == "+" {
		switch a := left.(type) {
		case string:
			if b, ok := right.(string); ok {
				return r.join(a, b)
			}
		case []any:
			if b, ok := right.([]any); ok {
				r.spend(len(a) + len(b))
				return append(a[:len(a):len(a)], b...)
			}
		}
	}
	if !isNumber(left) || !isNumber(right) {
		stop(r.line, "%s and %s cannot be put together like this; ~ joins texts, and filters such as int make numbers", kind(left), kind(right))
	}
	a, whole := left.(int64)
	b, both := right.(int64)
	if whole && both && op != "/" && (op != "**" || b >= 0) {
		return r.integers(op, a, b)
	}
	return r.floats(op, asFloat(left), asFloat(right))
}

func (r *renderer) integers(op string, a, b int64) any {
	x, y, z := big.NewInt(a), big.NewInt(b), new(big.Int)
	switch op {
	case "+":
		z.Add(x, y)
	case "-":
		z.Sub(x, y)
	case "*":
		z.Mul(x, y)
	case "**":
		if b > 63 && (a > 1 || a < -1) {
			b = 64 // too large in any case
		} else if b > 63 {
			b = 62 + b%2
		}
		z.Exp(x, big.NewInt(b), nil)
	default: // // and %, which round down
		if b == 0 {
			stop(r.line, "a number is divided by 0")
		}
		if b < 0 {
			x.Neg(x)
			y.Neg(y)
		}
		if z.Div(x, y); op == "%" {
			z.Sub(big.NewInt(a), z.Mul(z, big.NewInt(b)))
		}
	}
	if !z.IsInt64() {
		stop(r.line, "the number becomes too large")
	}
	return z.Int64()
}

func (r *renderer) floats(op string, a, b float64) any {
	switch op {
	case "+":
		return a + b
	case "-":
		return a - b
	case "*":
		return a * b
	case "**":
		return math.Pow(a, b)
	}
	if b == 0 {
		stop(r.line, "a number is divided by 0")
	}
	switch op {
	case "/":
		return a / b
	case "//":
		return math.Floor(a / b)
	}
	m := math.Mod(a, b)
	if m != 0 && (m < 0) != (b < 0) {
		m += b
	}
	return m
}

func (r *renderer) compare(left, right any) int {
	switch a := left.(type) {
	case int64:
		if b, ok := right.(int64); ok {
			return cmp.Compare(a, b)
		}
	case string:
		if b, ok := right.(string); ok {
			r.spend(min(len(a), len(b)) / copied)
			return strings.Compare(a, b)
		}
	case time.Time:
		if b, ok := right.(time.Time); ok {
			return a.Compare(b)
		}
	}
	if !isNumber(left) || !isNumber(right) {
		stop(r.line, "%s cannot be compared with %s; filters such as int make numbers", kind(left), kind(right))
	}
	return cmp.Compare(asFloat(left), asFloat(right))
}

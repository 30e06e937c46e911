package prompts

import (
	"maps"
	"slices"

	"github.com/nikolalohinski/gonja/v2/nodes"
)

// eval is the value of a checked expression.
func (r *renderer) eval(e nodes.Node) any {
	r.spend(1)
	switch n := e.(type) {
	case *nodes.None:
		return nil
	case *nodes.Bool:
		return n.Val
	case *nodes.Integer:
		r.line = n.Location.Line
		return int64(n.Val)
	case *nodes.Float:
		r.line = n.Location.Line
		return n.Val
	case *nodes.String:
		r.line = n.Location.Line
		return n.Val
	case *nodes.Name:
		r.line = n.Name.Line
		return r.lookup(n)
	case *nodes.List:
		return r.evalAll(n.Val)
	case *nodes.Tuple:
		return r.evalAll(n.Val)
	case *nodes.Dict:
		return r.object(n)
	case *nodes.GetAttribute:
		if n.Attribute == "" {
			return r.get(n, r.eval(n.Node), int64(n.Index))
		}
		return r.get(n, r.eval(n.Node), n.Attribute)
	case *nodes.GetItem:
		return r.get(n, r.eval(n.Node), r.eval(n.Arg))
	case *nodes.GetSlice:
		return r.slice(n)
	case *nodes.Negation:
		return !r.truth(r.eval(n.Term))
	case *nodes.UnaryExpression:
		return r.unary(n)
	case *nodes.BinaryExpression:
		return r.binary(n)
	case *nodes.Call:
		return r.call(n)
	case *nodes.TestExpression:
		v := r.eval(n.Expression)
		var with any
		if len(n.Test.Args) > 0 {
			with = r.eval(n.Test.Args[0])
		}
		return r.test(n.Test.Name, v, with)
	case *nodes.FilteredExpression:
		v := r.eval(n.Expression)
		for _, f := range n.Filters {
			v = r.filter(f, v)
		}
		return v
	}
	stop(r.line, "an expression cannot be read") // unreachable: the checker refused it
	return nil
}

func (r *renderer) evalAll(list []nodes.Expression) []any {
	values := make([]any, len(list))
	for i, e := range list {
		values[i] = r.eval(e)
	}
	return values
}

func (r *renderer) object(n *nodes.Dict) any {
	m := make(map[string]any, len(n.Pairs))
	for _, p := range n.Pairs {
		key, ok := r.eval(p.Key).(string)
		if !ok {
			stop(r.line, "the keys of an object must be texts")
		}
		m[key] = r.eval(p.Value)
	}
	return m
}

// lookup finds a name: of the template itself, of the data, of a node.
func (r *renderer) lookup(n *nodes.Name) any {
	name := n.Name.Val
	for _, names := range slices.Backward(r.scopes) {
		if v, ok := names[name]; ok {
			return v
		}
	}
	if v, ok := r.root(name); ok {
		return v
	}
	if name == "none" || name == "null" { // gonja knows None and nil
		return nil
	}
	return r.missing(n)
}

// missing stands for an expression that is not defined.
func (r *renderer) missing(e nodes.Node) *undefined {
	what := describe(e)
	r.spend(len(what) / copied)
	if runes := []rune(what); len(runes) > maxNamed {
		what = string(runes[:maxNamed]) + "…"
	}
	return &undefined{what, lineOf(e, r.line)}
}

// maxNamed is how many characters of an expression a message shows.
const maxNamed = 120

// get is an attribute or an entry of v.
func (r *renderer) get(e nodes.Node, v, key any) any {
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
	if u, ok := key.(*undefined); ok {
		r.report(u)
	}
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

// slice is a part of a list or a text, as in Python.
func (r *renderer) slice(n *nodes.GetSlice) any {
	v := r.eval(n.Node)
	text, isText := v.(string)
	if _, ok := v.([]any); !ok && !isText {
		if u, ok := v.(*undefined); ok {
			return u
		}
		stop(r.line, "%s has no parts", kind(v))
	}
	list := r.items(v)
	length := int64(len(list))
	step := r.bound(n.Step, 1)
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
	if n.Start != nil {
		from = clamp(r.bound(n.Start, from))
	}
	if n.End != nil {
		to = clamp(r.bound(n.End, to))
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
func (r *renderer) bound(e nodes.Node, otherwise int64) int64 {
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

// items are the entries that a loop or a filter goes through.
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

// call is one of the two that the checker lets pass.
func (r *renderer) call(n *nodes.Call) any {
	if m, ok := n.Func.(*nodes.GetAttribute); ok {
		switch v := r.eval(m.Node).(type) {
		case map[string]any:
			return r.pairs(v)
		case *undefined:
			r.report(v)
		default:
			stop(r.line, "%s has no items()", kind(v))
		}
		return []any{}
	}
	bounds := []int64{0, 0, 1}
	for i, v := range r.evalAll(n.Args) {
		x, ok := v.(int64)
		if !ok {
			stop(r.line, "range needs whole numbers, not %s", kind(v))
		}
		if len(n.Args) == 1 {
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
			stop(r.line, "range has more than %d numbers", MaxTurns)
		}
		list = append(list, i)
		if next := i + step; (next > i) != (step > 0) {
			break // beyond the largest number
		}
	}
	r.spend(3 * len(list))
	return list
}

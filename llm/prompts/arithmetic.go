package prompts

import (
	"math"
)

func (r *renderer) sign(n *signed) any {
	v := r.eval(n.of)
	switch x := v.(type) {
	case *undefined:
		r.report(x)
		return x
	case int64:
		if n.minus {
			return r.whole(-x, x != math.MinInt64)
		}
		return x
	case float64:
		if n.minus {
			return -x
		}
		return x
	}
	stop(r.line, "%s has no sign", kind(v))
	return nil
}

func (r *renderer) binary(n *binary) any {
	left := r.eval(n.left)
	op := n.op
	switch op {
	case "and":
		if !r.truth(left) {
			return left
		}
		return r.eval(n.right)
	case "or":
		if r.truth(left) {
			return left
		}
		return r.eval(n.right)
	}
	right := r.eval(n.right)
	switch op {
	case "==":
		return r.equal(left, right)
	case "!=":
		return !r.equal(left, right)
	case "~":
		return r.join(r.text(left), r.text(right))
	}
	for _, v := range [...]any{left, right} {
		if u, ok := v.(*undefined); ok {
			r.report(u)
			if ordering(op) {
				return false
			}
			return u
		}
	}
	switch op {
	case "<":
		return r.compare(left, right) < 0
	case "<=":
		return r.compare(left, right) <= 0
	case ">":
		return r.compare(left, right) > 0
	case ">=":
		return r.compare(left, right) >= 0
	}
	return r.calculate(op, left, right)
}

func ordering(op string) bool {
	switch op {
	case "<", "<=", ">", ">=":
		return true
	}
	return false
}

func (r *renderer) join(a, b string) string {
	s := r.sheet()
	s.put(a)
	s.put(b)
	return s.String()
}

func (r *renderer) calculate(op string, left, right any) any {
	if op == "+" {
		if a, ok := left.(string); ok {
			if b, ok := right.(string); ok {
				return r.join(a, b)
			}
		}
		if a, ok := left.([]any); ok {
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
	if whole && both && (op != "**" || b >= 0) {
		return r.integers(op, a, b)
	}
	return r.floats(op, asFloat(left), asFloat(right))
}

// whole is a result, unless it does not fit.
func (r *renderer) whole(x int64, fits bool) int64 {
	if !fits {
		stop(r.line, "the number becomes too large")
	}
	return x
}

func (r *renderer) integers(op string, a, b int64) any {
	switch op {
	case "+":
		return r.whole(a+b, (a+b > a) == (b > 0))
	case "-":
		return r.whole(a-b, (a-b < a) == (b > 0))
	case "*":
		return r.times(a, b)
	case "**":
		result := int64(1)
		for ; b > 0 && result != 0 && !(a == 1); b-- {
			if a == -1 {
				return 1 - 2*(b%2)
			}
			result = r.times(result, a)
		}
		return result
	}
	if b == 0 {
		stop(r.line, "a number is divided by 0")
	}
	switch op {
	case "/":
		return float64(a) / float64(b)
	case "//":
		q := r.whole(a/b, a != math.MinInt64 || b != -1)
		if a%b != 0 && (a < 0) != (b < 0) {
			q-- // down, not towards 0
		}
		return q
	default:
		m := a % b
		if m != 0 && (m < 0) != (b < 0) {
			m += b
		}
		return m
	}
}

func (r *renderer) times(a, b int64) int64 {
	if a == 0 || b == 0 {
		return 0
	}
	x := a * b
	return r.whole(x, x/b == a && !(a == -1 && b == math.MinInt64) && !(b == -1 && a == math.MinInt64))
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
	default:
		m := math.Mod(a, b)
		if m != 0 && (m < 0) != (b < 0) {
			m += b
		}
		return m
	}
}

package prompts

import (
	"cmp"
	"math"
	"math/big"
	"strings"
	"time"
)

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

package prompts

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxParts bounds how deep the parts of an expression lie in each other.
const maxParts = 4 * maxNesting

// An expr is an expression that was checked by Parse.
type expr struct {
	line, depth int // where it begins, and how deep its parts lie
	value       func(r *renderer) any
	fixed       any           // of a constant: its value
	what        func() string // how messages name it; nil: as an expression
	use         *Use          // the name that it reads, with what it reads of it; nil: more than a name
	// call is what a call of it means; nil: it cannot be called.
	call func(args []*expr, named map[string]*expr) *expr
}

// above is an expression that has parts and begins where the first one does.
func above(value func(r *renderer) any, parts ...*expr) *expr {
	e := &expr{line: parts[0].line, value: value}
	for _, part := range parts {
		if part != nil {
			e.depth = max(e.depth, part.depth+1)
		}
	}
	if e.depth > maxParts {
		stop(e.line, "the expression has too many parts; set some of them to names first")
	}
	return e
}

func constant(line int, v any) *expr {
	return &expr{line: line, fixed: v, value: func(r *renderer) any { r.line = line; return v }}
}

func (e *expr) describe() string {
	if e.what == nil {
		return "an expression"
	}
	return e.what()
}

func (r *renderer) eval(e *expr) any {
	r.spend(1)
	return e.value(r)
}

func (r *renderer) evalAll(list []*expr) []any {
	values := make([]any, len(list))
	for i, e := range list {
		values[i] = r.eval(e)
	}
	return values
}

// levels are the binary operators, those that bind least first. Between the second and
// the third stand not, in and is.
var levels = [][]string{
	{"or"}, {"and"}, {"==", "!=", "<", "<=", ">", ">="}, {"+", "-"}, {"~"}, {"*", "/", "//", "%"}, {"**"},
}

const comparison = 2

func (p *parser) expression() *expr { return p.binary(0) }

func (p *parser) binary(level int) *expr {
	if level == len(levels) {
		return p.signed()
	}
	below := func() *expr {
		if level+1 == comparison {
			return p.condition()
		}
		return p.binary(level + 1)
	}
	e := below()
	for slices.Contains(levels[level], p.now().kind) {
		op, left := p.next().kind, e
		right := below()
		e = above(func(r *renderer) any { return r.operate(op, left, right) }, left, right)
	}
	return e
}

// condition reads a comparison with not before it, and in or is behind it.
func (p *parser) condition() *expr {
	line := p.now().line
	if !p.take("not") {
		return p.trial()
	}
	n := negated(p.trial())
	n.line = line
	return n
}

func negated(e *expr) *expr {
	return above(func(r *renderer) any { return !r.truth(r.eval(e)) }, e)
}

func (p *parser) trial() *expr {
	e := p.binary(comparison)
	isTest := p.take("is")
	not := (isTest || p.at+1 < len(p.list) && p.list[p.at+1].kind == "in") && p.take("not")
	switch t := p.now(); {
	case p.take("in"):
		e = p.within(e)
	case isTest:
		e = p.test(e)
		if p.now().kind == "|" {
			stop(t.line, "a filter cannot follow the test %.40q; put the test into brackets", t.text)
		}
	default:
		return e
	}
	if not {
		e = negated(e)
	}
	return e
}

func (p *parser) within(part *expr) *expr {
	whole := p.filters(p.postfix())
	return above(func(r *renderer) any {
		v, in := r.eval(part), r.eval(whole)
		return !r.isUndefined(v) && r.contains(in, v)
	}, part, whole)
}

func (p *parser) test(of *expr) *expr {
	t := p.want(word, "the name of a test is missing")
	test, known := tests[t.text]
	if !known {
		stop(t.line, "there is no test %.40q; there are %s", t.text, strings.Join(testNames(), ", "))
	}
	if t.text == "defined" || t.text == "undefined" {
		of.use.optional()
	}
	switch next := p.now(); {
	case next.text == "if" || next.text == "else":
	case slices.Contains([]string{word, whole, decimal, quoted, "(", "[", "{"}, next.kind):
		stop(t.line, "the test %s takes nothing; put it into brackets when more follows", t.text)
	}
	return above(func(r *renderer) any { return test(r, r.eval(of)) }, of)
}

// signed reads a value with a sign before it and filters behind it.
func (p *parser) signed() *expr {
	sign := p.now().kind
	if !p.take("-") && !p.take("+") {
		return p.filters(p.postfix())
	}
	e := p.postfix()
	return p.filters(above(func(r *renderer) any { return r.signed(sign, r.eval(e)) }, e))
}

func (p *parser) filters(e *expr) *expr {
	for p.take("|") {
		e = p.filter(e)
	}
	return e
}

func (p *parser) arguments() (args []*expr, named map[string]*expr) {
	named = make(map[string]*expr)
	for !p.take(")") {
		if t := p.now(); t.kind == word && p.list[p.at+1].kind == "=" {
			p.at += 2
			named[t.text] = p.expression()
		} else {
			args = append(args, p.expression())
		}
		if !p.take(",") && p.now().kind != ")" {
			p.fail("expected , or )")
		}
	}
	return args, named
}

// postfix reads a value with its attributes, entries, parts and calls.
func (p *parser) postfix() *expr {
	e := p.value()
	for {
		switch {
		case p.take("."):
			e = p.attribute(e)
		case p.take("["):
			e = p.entry(e)
		case p.take("("):
			args, named := p.arguments()
			if e.call == nil {
				e.notCallable()
			}
			e = e.call(args, named)
		default:
			return e
		}
	}
}

func (e *expr) notCallable() {
	stop(e.line, "%s cannot be called; there are range() and .items(), and filters such as name|upper", e.describe())
}

func (p *parser) attribute(of *expr) *expr {
	t := p.now()
	var key any = t.text
	switch t.kind {
	case word:
	case whole:
		key = p.whole(t)
	default:
		p.fail("expected name or integer")
	}
	p.next()
	e := get(of, constant(t.line, key))
	e.use = of.use.more(key)
	e.what = func() string { return fmt.Sprintf("%s.%v", of.describe(), key) }
	if key == "items" {
		e.call = func(args []*expr, named map[string]*expr) *expr {
			if len(args)+len(named) > 0 {
				e.notCallable()
			}
			e.use.less()
			pairs := above(func(r *renderer) any { return r.entries(r.eval(of)) }, of)
			pairs.what = func() string { return of.describe() + ".items()" }
			return pairs
		}
	}
	return e
}

func get(of, key *expr) *expr {
	e := above(nil, of, key)
	e.value = func(r *renderer) any {
		v, k := r.eval(of), r.eval(key)
		return r.get(e, v, k)
	}
	return e
}

func (p *parser) entry(of *expr) *expr {
	var parts []*expr
	colons := 0
	for {
		var part *expr
		if k := p.now().kind; k != ":" && k != "]" {
			part = p.expression()
		}
		parts = append(parts, part)
		if colons == 2 || !p.take(":") {
			break
		}
		colons++
	}
	p.want("]", "expected ]")
	if colons > 0 {
		parts = append(parts, nil) // the step
		return above(func(r *renderer) any { return r.slice(r.eval(of), parts) }, of, parts[0], parts[1], parts[2])
	}
	if parts[0] == nil {
		stop(of.line, "an expression is missing or cannot be read")
	}
	e := get(of, parts[0])
	e.use = of.use.more(parts[0].fixed)
	e.what = func() string {
		switch key := parts[0].fixed.(type) {
		case string, int64:
			return fmt.Sprintf("%s[%#v]", of.describe(), key)
		}
		return of.describe() + "[…]"
	}
	return e
}

func (p *parser) value() *expr {
	t := p.now()
	switch t.kind {
	case "[", "(":
		return p.listed()
	case "{":
		return p.object()
	case word, quoted, whole, decimal:
		p.next()
	default:
		p.fail("expected either a number, string, keyword or identifier")
	}
	switch t.kind {
	case word:
		return p.reference(t)
	case whole:
		return constant(t.line, p.whole(t))
	case decimal:
		f, err := strconv.ParseFloat(strings.ReplaceAll(t.text, "_", ""), 64)
		if err != nil {
			stop(t.line, "a number is too large")
		}
		return constant(t.line, f)
	}
	return constant(t.line, t.text)
}

func (p *parser) reference(t token) *expr {
	switch t.text {
	case "true", "True", "false", "False":
		return constant(t.line, t.text[0]|0x20 == 't')
	case "nil", "None":
		return constant(t.line, nil)
	}
	e := &expr{line: t.line, what: func() string { return t.text }}
	e.value = func(r *renderer) any { r.line = t.line; return r.lookup(e, t.text) }
	e.use = p.reads(t)
	if t.text == "range" {
		e.call = func(args []*expr, named map[string]*expr) *expr {
			if len(args) < 1 || len(args) > 3 || len(named) > 0 {
				stop(e.line, "range takes one to three numbers")
			}
			numbers := above(func(r *renderer) any { return r.numbers(r.evalAll(args)) }, append([]*expr{e}, args...)...)
			numbers.what = func() string { return "range()" }
			return numbers
		}
	}
	return e
}

func (p *parser) whole(t token) int64 {
	n, err := strconv.ParseInt(strings.ReplaceAll(t.text, "_", ""), 0, 64)
	if err != nil {
		stop(t.line, "a number is too large")
	}
	return n
}

// listed reads a list in either kind of brackets, or an expression in round ones.
func (p *parser) listed() *expr {
	open := p.next()
	shut := string(brackets[open.text[0]])
	var items []*expr
	comma := false
	for !p.take(shut) {
		if len(items) > 0 && !comma {
			p.fail("expected , or " + shut)
		}
		items = append(items, p.expression())
		comma = p.take(",")
	}
	if open.kind == "(" && len(items) == 1 && !comma {
		return items[0]
	}
	return enclosed(open, items, func(r *renderer) any { return r.evalAll(items) })
}

func (p *parser) object() *expr {
	open := p.next()
	var keys, values []*expr
	for comma := true; !p.take("}"); comma = p.take(",") {
		if !comma {
			p.fail("expected , or }")
		}
		keys = append(keys, p.expression())
		p.want(":", `expected ":"`)
		values = append(values, p.expression())
	}
	return enclosed(open, slices.Concat(keys, values), func(r *renderer) any {
		m := make(map[string]any, len(keys))
		for i, e := range keys {
			key, ok := r.eval(e).(string)
			if !ok {
				stop(r.line, "the keys of an object must be texts")
			}
			m[key] = r.eval(values[i])
		}
		return m
	})
}

func enclosed(open token, parts []*expr, value func(r *renderer) any) *expr {
	if len(parts) == 0 {
		return &expr{line: open.line, value: value}
	}
	e := above(value, parts...)
	e.line = open.line
	return e
}

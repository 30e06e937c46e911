package prompts

import (
	"slices"
	"strconv"
	"strings"
)

// levels are the operators that stand between two values, those that bind least first.
// Between the second and the third stand not, in and is.
var levels = [][]string{
	{"or"}, {"and"}, {"==", "!=", "<", "<=", ">", ">="}, {"+", "-"}, {"~"}, {"*", "/", "//", "%"}, {"**"},
}

const comparison = 2

func (p *parser) expression() expr { return p.binary(0) }

// binary reads operators from a level on; equal ones group from the left.
func (p *parser) binary(level int) expr {
	if level == len(levels) {
		return p.signed()
	}
	below := func() expr {
		if level+1 == comparison {
			return p.condition()
		}
		return p.binary(level + 1)
	}
	e := below()
	for slices.Contains(levels[level], p.now().kind) {
		op := p.next().kind
		right := below()
		e = &binary{above(e, right), op, e, right}
	}
	return e
}

// condition reads a comparison with not before it, and in or is behind it.
func (p *parser) condition() expr {
	if t := p.now(); p.take("not") {
		e := p.trial()
		n := &negation{above(e), e}
		n.line = t.line
		return n
	}
	return p.trial()
}

func (p *parser) trial() expr {
	e := p.binary(comparison)
	isTest := p.take("is")
	not := (isTest || p.at+1 < len(p.list) && p.list[p.at+1].kind == "in") && p.take("not")
	switch t := p.now(); {
	case p.take("in"):
		with := p.filters(p.postfix())
		e = &trial{above(e, with), e, "in", with}
	case isTest:
		e = p.test(e)
		if p.now().kind == "|" {
			stop(t.line, "a filter cannot follow the test %.40q; put the test into brackets", t.text)
		}
	default:
		return e
	}
	if not {
		e = &negation{above(e), e}
	}
	return e
}

// test reads what stands behind is.
func (p *parser) test(of expr) expr {
	t := p.want(word, "the name of a test is missing")
	if _, known := tests[t.text]; !known || t.text == "in" {
		stop(t.line, "there is no test %.40q; there are %s", t.text, strings.Join(testNames(), ", "))
	}
	switch next := p.now(); {
	case next.text == "if" || next.text == "else":
	case slices.Contains([]string{word, whole, decimal, quoted, "(", "[", "{"}, next.kind):
		stop(t.line, "the test %s takes nothing; put it into brackets when more follows", t.text)
	}
	return &trial{above(of), of, t.text, nil}
}

// signed reads a value with a sign before it and filters behind it.
func (p *parser) signed() expr {
	t := p.now()
	if !p.take("-") && !p.take("+") {
		return p.filters(p.postfix())
	}
	e := p.postfix()
	return p.filters(&signed{above(e), t.kind == "-", e})
}

func (p *parser) filters(e expr) expr {
	for p.take("|") {
		e = p.filter(e)
	}
	return e
}

func (p *parser) filter(of expr) expr {
	t := p.want(word, "filter name must be an identifier")
	var args []expr
	var named map[string]expr
	if p.take("(") {
		args, named = p.arguments()
	}
	f, why := filterFor(t.text, args, named)
	if why != "" {
		stop(t.line, "%s", why)
	}
	given := make([]expr, len(f.params))
	copy(given, args)
	for name, e := range named {
		given[f.param(name)] = e
	}
	return &filtered{above(append([]expr{of}, given...)...), of, f, t.line, given}
}

// arguments are the values up to the closing bracket, and those that have names.
func (p *parser) arguments() (args []expr, named map[string]expr) {
	for !p.take(")") {
		if t := p.now(); t.kind == word && p.list[p.at+1].kind == "=" {
			p.at += 2
			if named == nil {
				named = make(map[string]expr)
			}
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
func (p *parser) postfix() expr {
	e := p.value()
	for {
		switch {
		case p.take("."):
			t := p.now()
			key := &literal{place{line: t.line}, t.text}
			switch t.kind {
			case word:
			case whole:
				key.value = p.whole(t)
			default:
				p.fail("expected name or integer")
			}
			p.next()
			e = &get{above(e, key), e, key, true}
		case p.take("["):
			e = p.entry(e)
		case p.take("("):
			e = p.call(e)
		default:
			return e
		}
	}
}

// entry reads of[key] and of[from:to:step].
func (p *parser) entry(of expr) expr {
	var parts []expr
	colons := 0
	for {
		var part expr
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
	if colons == 0 {
		if parts[0] == nil {
			stop(of.where().line, "an expression is missing or cannot be read")
		}
		return &get{above(of, parts[0]), of, parts[0], false}
	}
	parts = append(parts, nil) // the step
	return &slice{above(of, parts[0], parts[1], parts[2]), of, parts[0], parts[1], parts[2]}
}

// call allows what is no call into the host.
func (p *parser) call(of expr) expr {
	args, named := p.arguments()
	line := of.where().line
	if f, ok := of.(*name); ok && f.text == "range" {
		if len(args) < 1 || len(args) > 3 || len(named) > 0 {
			stop(line, "range takes one to three numbers")
		}
		return &numbers{above(append([]expr{of}, args...)...), args}
	}
	if m, ok := of.(*get); ok && m.dot && m.key.(*literal).value == "items" && len(args)+len(named) == 0 {
		return &pairs{above(m.of), m.of}
	}
	stop(line, "%s cannot be called; there are range() and .items(), and filters such as name|upper", describe(of))
	return nil
}

// value reads a name, a number, a text, a list, an object, or what is in brackets.
func (p *parser) value() expr {
	t := p.now()
	at := place{line: t.line}
	switch t.kind {
	case word:
		p.next()
		switch t.text {
		case "true", "True":
			return &literal{at, true}
		case "false", "False":
			return &literal{at, false}
		case "nil", "None":
			return &literal{at, nil}
		}
		return &name{at, t.text}
	case quoted:
		p.next()
		return &literal{at, t.text}
	case whole:
		p.next()
		return &literal{at, p.whole(t)}
	case decimal:
		p.next()
		f, err := strconv.ParseFloat(strings.ReplaceAll(t.text, "_", ""), 64)
		if err != nil {
			stop(t.line, "a number is too large")
		}
		return &literal{at, f}
	case "[", "(":
		return p.listed()
	case "{":
		return p.object()
	}
	p.fail("expected either a number, string, keyword or identifier")
	return nil
}

func (p *parser) whole(t token) int64 {
	n, err := strconv.ParseInt(strings.ReplaceAll(t.text, "_", ""), 0, 64)
	if err != nil {
		stop(t.line, "a number is too large")
	}
	return n
}

// listed reads a list in either kind of brackets, or an expression in round ones.
func (p *parser) listed() expr {
	open := p.next()
	shut := string(brackets[open.text[0]])
	l := &list{place: place{line: open.line}}
	comma := false
	for !p.take(shut) {
		if len(l.items) > 0 && !comma {
			p.fail("expected , or " + shut)
		}
		l.items = append(l.items, p.expression())
		comma = p.take(",")
	}
	if open.kind == "(" && len(l.items) == 1 && !comma {
		return l.items[0]
	}
	if len(l.items) > 0 {
		l.depth = above(l.items...).depth
	}
	return l
}

func (p *parser) object() expr {
	o := &object{place: place{line: p.next().line}}
	for comma := true; !p.take("}"); comma = p.take(",") {
		if !comma {
			p.fail("expected , or }")
		}
		key := p.expression()
		p.want(":", `expected ":"`)
		o.keys, o.values = append(o.keys, key), append(o.values, p.expression())
	}
	if len(o.keys) > 0 {
		o.depth = above(append(slices.Clone(o.keys), o.values...)...).depth
	}
	return o
}

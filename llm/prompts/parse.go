package prompts

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

func parse(text string) (t *Template, err error) {
	defer func() { // a mistake of ours must cost one template, not the process
		if x := recover(); x != nil {
			e, ok := x.(*Error)
			if !ok {
				e = &Error{Text: "the template cannot be read: an expression or a tag in it is not complete"}
			}
			t, err = nil, e
		}
	}()
	if !utf8.ValidString(text) {
		return nil, &Error{Text: "the template is not valid UTF-8"}
	}
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	p := &parser{list: lex(text)}
	t = new(Template)
	t.root, _ = p.body(token{}, "")
	t.uses = p.settled()
	if len(t.root) == 1 {
		t.value = p.first
	}
	return t, nil
}

func stop(line int, format string, args ...any) {
	panic(&Error{Line: line, Text: fmt.Sprintf(format, args...)})
}

// exceed is stop for a limit that other data would not reach.
func exceed(line int, format string, args ...any) {
	panic(&Error{Line: line, Text: fmt.Sprintf(format, args...), Limit: true})
}

// A parser reads tokens, the last of which is the end. What is wrong panics with an *Error.
type parser struct {
	list  []token
	at    int
	depth int // of tags

	uses  []*Use
	own   map[string]bool             // names that the template gives
	first func(*renderer) (any, bool) // the value of the text if its only part is an expression
}

func (p *parser) now() token { return p.list[p.at] }

func (p *parser) next() token {
	t := p.list[p.at]
	if t.kind != ended {
		p.at++
	}
	return t
}

func (p *parser) take(kind string) bool {
	if p.now().kind != kind {
		return false
	}
	p.next()
	return true
}

func (p *parser) takeWord(text string) bool {
	if t := p.now(); t.kind != word || t.text != text {
		return false
	}
	p.next()
	return true
}

func (p *parser) want(kind, otherwise string) token {
	if p.now().kind != kind {
		p.fail(otherwise)
	}
	return p.next()
}

func (p *parser) fail(what string) {
	t := p.now()
	if near := strings.TrimSpace(t.text); near != "" && len(near) <= 40 {
		what += fmt.Sprintf(", near %q", near)
	}
	stop(t.line, "%s", what)
}

// A part of a template writes itself.
type part func(r *renderer)

func (p *parser) body(tag token, begin string, ends ...string) (parts []part, end string) {
	parts = []part{}
	for {
		switch t := p.next(); t.kind {
		case ended:
			if begin != "" {
				stop(tag.line, "{%% %s %%} has no {%% end%s %%}", begin, begin)
			}
			return parts, ""
		case data:
			parts = append(parts, func(r *renderer) { r.out.put(t.text) })
		case "{{":
			value := p.output()
			if begin == "" && len(parts) == 0 {
				p.first = value
			}
			parts = append(parts, func(r *renderer) {
				if v, ok := value(r); ok {
					r.out.put(r.text(v))
				}
			})
			p.want("}}", "'}}' expected here")
		default: // {%
			name := p.want(word, "expected a tag name here")
			if slices.Contains(ends, name.text) {
				if name.text != "elif" {
					p.want("%}", fmt.Sprintf("{%% %s %%} takes nothing", name.text))
				}
				return parts, name.text
			}
			parts = append(parts, p.tag(name))
		}
	}
}

func (p *parser) tag(t token) part {
	if p.depth++; p.depth > maxNesting {
		stop(t.line, "tags are nested too deeply")
	}
	defer func() { p.depth-- }()
	switch t.text {
	case "if":
		return p.branches(t)
	case "for":
		return p.loop(t)
	case "set":
		return p.set(t)
	case "else", "elif", "endif":
		stop(t.line, "{%% %s %%} has no {%% if %%} before it", t.text)
	case "endfor", "endset", "endraw":
		stop(t.line, "{%% %s %%} has no {%% %s %%} before it", t.text, strings.TrimPrefix(t.text, "end"))
	}
	stop(t.line, "there is no tag %.40q; there are if, for, set and raw", t.text)
	return nil
}

func (p *parser) branches(t token) part {
	type arm struct {
		when *expr
		body []part
	}
	var arms []arm
	var otherwise []part
	for end := "elif"; end == "elif"; {
		a := arm{when: p.expression()}
		p.want("%}", "the condition does not end here")
		a.body, end = p.body(t, "if", "elif", "else", "endif")
		arms = append(arms, a)
		if end == "else" {
			otherwise, _ = p.body(t, "if", "endif")
		}
	}
	return func(r *renderer) {
		for _, a := range arms {
			if r.line = t.line; r.truth(r.eval(a.when)) {
				r.render(a.body)
				return
			}
		}
		r.render(otherwise)
	}
}

// set gives a name to a value, up to the end of the loop around it.
func (p *parser) set(t token) part {
	const form = "a value is set as {%% set name = value %%}"
	if p.now().kind != word {
		stop(t.line, form)
	}
	name := p.next().text
	p.gives(name)
	var value func(*renderer) (any, bool)
	if p.take("%}") {
		body, _ := p.body(t, "set", "endset")
		value = func(r *renderer) (any, bool) {
			outer := r.out
			defer func() { r.out = outer }()
			r.out = r.sheet()
			r.render(body)
			return r.out.String(), true
		}
	} else {
		if !p.take("=") {
			stop(t.line, form)
		}
		value = p.output()
		p.want("%}", "the value does not end here")
	}
	return func(r *renderer) {
		r.line = t.line
		v, _ := value(r)
		if len(r.scopes) == 0 {
			r.scopes = append(r.scopes, make(map[string]any))
		}
		r.scopes[len(r.scopes)-1][name] = v
	}
}

// output reads value, value if when, and value if when else otherwise. The result is
// false where there is no value.
func (p *parser) output() func(*renderer) (any, bool) {
	value := p.expression()
	if !p.takeWord("if") {
		return func(r *renderer) (any, bool) { return r.eval(value), true }
	}
	when := p.expression()
	var otherwise *expr
	if p.takeWord("else") {
		otherwise = p.expression()
	}
	return func(r *renderer) (any, bool) {
		switch {
		case r.truth(r.eval(when)):
			return r.eval(value), true
		case otherwise != nil:
			return r.eval(otherwise), true
		}
		return nil, false
	}
}

// A loop is {% for %} with its optional condition and {% else %}.
type loop struct {
	line  int
	names []string // one or two
	over  *expr
	only  *expr // nil: all
	body  []part
	empty []part
}

func (p *parser) loop(t token) part {
	const form = "a loop is written {%% for name in list %%} or {%% for key, value in object %%}"
	l := &loop{line: t.line}
	for len(l.names) == 0 || p.take(",") {
		if p.now().kind != word {
			stop(t.line, form)
		}
		l.names = append(l.names, p.next().text)
		p.gives(l.names[len(l.names)-1])
	}
	if len(l.names) > 2 || !p.take("in") {
		stop(t.line, form)
	}
	l.over = p.expression()
	if p.takeWord("if") {
		l.only = p.expression()
	}
	p.want("%}", "the loop's list does not end here")
	var end string
	if l.body, end = p.body(t, "for", "else", "endfor"); end == "else" {
		l.empty, _ = p.body(t, "for", "endfor")
	}
	return l.render
}

func (l *loop) render(r *renderer) {
	r.line = l.line
	turns := l.turns(r, r.eval(l.over))
	outer := len(r.scopes)
	defer func() { r.scopes = r.scopes[:outer] }()
	if l.only != nil {
		kept := turns[:0]
		for _, names := range turns {
			r.spendTurn()
			r.scopes = append(r.scopes[:outer], names)
			if r.truth(r.eval(l.only)) {
				kept = append(kept, names)
			}
		}
		r.scopes = r.scopes[:outer]
		turns = kept
	}
	if len(turns) == 0 {
		r.render(l.empty)
		return
	}
	for i, names := range turns {
		if l.only == nil {
			r.spendTurn()
		}
		names["loop"] = &turn{i, len(turns)}
		r.scopes = append(r.scopes[:outer], names)
		r.render(l.body)
	}
}

func (l *loop) turns(r *renderer, over any) []map[string]any {
	if m, ok := over.(map[string]any); ok && len(l.names) == 2 {
		over = r.pairs(m)
	}
	list := r.items(over)
	if len(list) > MaxTurns {
		exceed(r.line, "the loops have more than %d turns in all", MaxTurns)
	}
	r.spend(len(list))
	turns := make([]map[string]any, len(list))
	for i, v := range list {
		if len(l.names) == 1 {
			turns[i] = map[string]any{l.names[0]: v}
			continue
		}
		pair, ok := v.([]any)
		if !ok || len(pair) != 2 {
			stop(r.line, "a loop with two names needs an object, or a list of pairs")
		}
		turns[i] = map[string]any{l.names[0]: pair[0], l.names[1]: pair[1]}
	}
	return turns
}

type turn struct{ index, length int }

func (t *turn) attribute(name string) (any, bool) {
	switch name {
	case "index":
		return int64(t.index + 1), true
	case "index0":
		return int64(t.index), true
	case "revindex":
		return int64(t.length - t.index), true
	case "revindex0":
		return int64(t.length - t.index - 1), true
	case "first":
		return t.index == 0, true
	case "last":
		return t.index == t.length-1, true
	case "length":
		return int64(t.length), true
	}
	return nil, false
}

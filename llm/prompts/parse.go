package prompts

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// parse reads a text into nodes that the renderer knows.
func parse(text string) (root []node, err error) {
	defer func() { // a mistake of ours must cost one template, not the process
		if x := recover(); x != nil {
			e, ok := x.(*Error)
			if !ok {
				e = &Error{Text: "the template cannot be read: an expression or a tag in it is not complete"}
			}
			root, err = nil, e
		}
	}()
	if !utf8.ValidString(text) {
		return nil, &Error{Text: "the template is no text in UTF-8"}
	}
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	p := &parser{list: lex(text)}
	root, _ = p.body(token{}, "")
	return root, nil
}

func stop(line int, format string, args ...any) {
	panic(&Error{Line: line, Text: fmt.Sprintf(format, args...)})
}

// A parser reads tokens, the last of which is the end. What is wrong panics with an *Error.
type parser struct {
	list  []token
	at    int
	depth int // of tags
}

func (p *parser) now() token { return p.list[p.at] }

func (p *parser) next() token {
	t := p.list[p.at]
	if t.kind != ended {
		p.at++
	}
	return t
}

// take takes the token of a kind, if that is next.
func (p *parser) take(kind string) bool {
	if p.now().kind != kind {
		return false
	}
	p.next()
	return true
}

// takeWord takes a name, if that is next.
func (p *parser) takeWord(text string) bool {
	if t := p.now(); t.kind != word || t.text != text {
		return false
	}
	p.next()
	return true
}

// want takes the token of a kind, or else fails with what there should be.
func (p *parser) want(kind, otherwise string) token {
	if p.now().kind != kind {
		p.fail(otherwise)
	}
	return p.next()
}

// fail says what is wrong with the next token.
func (p *parser) fail(what string) {
	t := p.now()
	if near := strings.TrimSpace(t.text); near != "" && len(near) <= 40 {
		what += fmt.Sprintf(", near %q", near)
	}
	stop(t.line, "%s", what)
}

// body reads up to one of the tags that end what tag has begun, and past its name.
func (p *parser) body(tag token, begin string, ends ...string) (nodes []node, end string) {
	nodes = []node{}
	for {
		switch t := p.next(); t.kind {
		case ended:
			if begin != "" {
				stop(tag.line, "{%% %s %%} has no {%% end%s %%}", begin, begin)
			}
			return nodes, ""
		case data:
			nodes = append(nodes, text(t.text))
		case "{{":
			nodes = append(nodes, p.output())
			p.want("}}", "'}}' expected here")
		default: // {%
			name := p.want(word, "expected a tag name here")
			if slices.Contains(ends, name.text) {
				if name.text != "elif" {
					p.want("%}", fmt.Sprintf("{%% %s %%} takes nothing", name.text))
				}
				return nodes, name.text
			}
			nodes = append(nodes, p.tag(name))
		}
	}
}

func (p *parser) tag(t token) node {
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

func (p *parser) branches(t token) node {
	n := &branches{line: t.line}
	for end := "elif"; end == "elif"; {
		when := p.expression()
		p.want("%}", "the condition does not end here")
		var body []node
		body, end = p.body(t, "if", "elif", "else", "endif")
		n.arms = append(n.arms, arm{when, body})
		if end == "else" {
			n.otherwise, _ = p.body(t, "if", "endif")
		}
	}
	return n
}

func (p *parser) loop(t token) node {
	const form = "a loop is written {%% for name in list %%} or {%% for key, value in object %%}"
	n := &loop{line: t.line}
	for len(n.names) == 0 || p.take(",") {
		if p.now().kind != word {
			stop(t.line, form)
		}
		n.names = append(n.names, p.next().text)
	}
	if len(n.names) > 2 || !p.take("in") {
		stop(t.line, form)
	}
	n.over = p.expression()
	if p.takeWord("if") {
		n.only = p.expression()
	}
	p.want("%}", "the loop's list does not end here")
	var end string
	if n.body, end = p.body(t, "for", "else", "endfor"); end == "else" {
		n.empty, _ = p.body(t, "for", "endfor")
	}
	return n
}

func (p *parser) set(t token) node {
	const form = "a value is set as {%% set name = value %%}"
	if p.now().kind != word {
		stop(t.line, form)
	}
	n := &set{line: t.line, name: p.next().text}
	if p.take("%}") {
		n.body, _ = p.body(t, "set", "endset")
		return n
	}
	if !p.take("=") {
		stop(t.line, form)
	}
	n.value = p.output()
	p.want("%}", "the value does not end here")
	return n
}

// output reads value, value if when, and value if when else otherwise.
func (p *parser) output() *output {
	n := &output{value: p.expression()}
	if p.takeWord("if") {
		n.when = p.expression()
		if p.takeWord("else") {
			n.otherwise = p.expression()
		}
	}
	return n
}

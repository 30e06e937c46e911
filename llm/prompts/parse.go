package prompts

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/nikolalohinski/gonja/v2/config"
	"github.com/nikolalohinski/gonja/v2/nodes"
	"github.com/nikolalohinski/gonja/v2/parser"
	"github.com/nikolalohinski/gonja/v2/tokens"
)

// parse reads a text into nodes that the renderer knows, all of them checked.
func parse(text string) (root []nodes.Node, err error) {
	defer func() { // a parser that breaks over a text must not take the rest with it
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
	list := lex(text)
	b := &builder{}
	// The loader is nil: there is nothing that a template could load.
	p := parser.NewParser("", tokens.NewStream(list), config.New(), nil, b)
	t, err := p.Parse()
	if err != nil {
		return nil, parseError(err, 1)
	}
	c := checker{tokens: list}
	c.nodes(t.Nodes)
	if t.Nodes == nil {
		return []nodes.Node{}, nil
	}
	return t.Nodes, nil
}

// parseError is err in our words, with a line if there is any.
func parseError(err error, line int) error {
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	var s *parser.SyntaxError
	if !errors.As(err, &s) {
		return &Error{Line: line, Text: lowered(err.Error())}
	}
	if s.Line > 0 {
		line = s.Line
	}
	text := strings.ReplaceAll(lowered(s.Message), "controlStructure", "tag")
	if strings.HasPrefix(text, "strconv") { // all that the lexer lets pass
		text = "a number is too large"
	}
	if near := strings.TrimSpace(s.Raw); near != "" && len(near) <= 40 {
		text += fmt.Sprintf(", near %q", near)
	}
	return &Error{Line: line, Text: text}
}

func lowered(s string) string {
	s = strings.TrimSuffix(s, ".")
	if s == "" {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}

// A builder makes the nodes of tags.
type builder struct{ depth int }

// Get returns what reads a tag; for one that does not exist, what says so.
func (b *builder) Get(name string) (parser.ControlStructureParser, bool) {
	read := map[string]func(tag, *parser.Parser, *parser.Parser) (nodes.ControlStructure, error){
		"if": b.branches, "for": b.loop, "set": b.set, "raw": b.raw,
	}[name]
	return func(p, args *parser.Parser) (nodes.ControlStructure, error) {
		at := tag{args.Current()}
		if at.line() == 0 { // the tag has no arguments
			at = tag{p.Current()}
		}
		if read == nil {
			return nil, at.fault("%s", unknownTag(name))
		}
		if b.depth++; b.depth > maxNesting {
			return nil, at.fault("tags are nested too deeply")
		}
		defer func() { b.depth-- }()
		n, err := read(at, p, args)
		if err != nil {
			return nil, parseError(err, at.line())
		}
		return n, nil
	}, true
}

func unknownTag(name string) string {
	switch name {
	case "else", "elif", "endif":
		return fmt.Sprintf("{%% %s %%} has no {%% if %%} before it", name)
	case "endfor", "endset", "endraw":
		return fmt.Sprintf("{%% %s %%} has no {%% %s %%} before it", name, strings.TrimPrefix(name, "end"))
	}
	return fmt.Sprintf("there is no tag %.40q; there are if, for, set and raw", name)
}

// A tag is where a node begins.
type tag struct{ at *tokens.Token }

func (t tag) Position() *tokens.Token { return t.at }

func (t tag) String() string { return "tag" }

func (t tag) line() int { return t.at.Line }

func (t tag) fault(format string, args ...any) error {
	return &Error{Line: t.line(), Text: fmt.Sprintf(format, args...)}
}

// The nodes of tags.
type (
	branches struct {
		tag
		arms      []arm
		otherwise []nodes.Node
	}
	arm struct {
		when nodes.Expression
		body []nodes.Node
	}
	loop struct {
		tag
		names []string // one or two
		over  nodes.Expression
		only  nodes.Expression // nil: all
		body  []nodes.Node
		empty []nodes.Node
	}
	set struct {
		tag
		name  string
		value *nodes.Output // nil: the body is it
		body  []nodes.Node
	}
	raw struct {
		tag
		text string
	}
)

// until reads what a tag encloses, and returns the arguments of the tag that
// ends it.
func (t tag) until(p *parser.Parser, begin string, ends ...string) (*nodes.Wrapper, *parser.Parser, error) {
	w, args, err := p.WrapUntil(ends...)
	var s *parser.SyntaxError
	if errors.As(err, &s) && strings.HasPrefix(s.Message, "Unexpected EOF, expected tag") {
		return nil, nil, t.fault("{%% %s %%} has no {%% end%s %%}", begin, begin)
	}
	if err == nil && w.EndTag != "elif" && !args.End() {
		return nil, nil, args.Error(fmt.Sprintf("{%% %s %%} takes nothing", w.EndTag), args.Current())
	}
	return w, args, err
}

func (b *builder) branches(at tag, p, args *parser.Parser) (nodes.ControlStructure, error) {
	n := &branches{tag: at}
	for {
		when, err := args.ParseExpression()
		if err != nil {
			return nil, err
		}
		if !args.End() {
			return nil, args.Error("the condition does not end here", args.Current())
		}
		w, next, err := at.until(p, "if", "elif", "else", "endif")
		if err != nil {
			return nil, err
		}
		n.arms = append(n.arms, arm{when, w.Nodes})
		switch w.EndTag {
		case "elif":
			args = next
			continue
		case "else":
			if w, _, err = at.until(p, "if", "endif"); err != nil {
				return nil, err
			}
			n.otherwise = w.Nodes
		}
		return n, nil
	}
}

func (b *builder) loop(at tag, p, args *parser.Parser) (_ nodes.ControlStructure, err error) {
	n := &loop{tag: at}
	for {
		name := args.Match(tokens.Name)
		if name == nil {
			return nil, at.fault("a loop is written {%% for name in list %%} or {%% for key, value in object %%}")
		}
		n.names = append(n.names, name.Val)
		if args.Match(tokens.Comma) == nil {
			break
		}
	}
	if len(n.names) > 2 || args.Match(tokens.In) == nil {
		return nil, at.fault("a loop is written {%% for name in list %%} or {%% for key, value in object %%}")
	}
	if n.over, err = args.ParseExpression(); err != nil {
		return nil, err
	}
	if args.MatchName("if") != nil {
		if n.only, err = args.ParseExpression(); err != nil {
			return nil, err
		}
		if n.only == nil {
			return nil, at.fault("the condition of the loop is missing")
		}
	}
	if !args.End() {
		return nil, args.Error("the loop's list does not end here", args.Current())
	}
	w, _, err := at.until(p, "for", "else", "endfor")
	if err != nil {
		return nil, err
	}
	n.body = w.Nodes
	if w.EndTag == "else" {
		if w, _, err = at.until(p, "for", "endfor"); err != nil {
			return nil, err
		}
		n.empty = w.Nodes
	}
	return n, nil
}

func (b *builder) set(at tag, p, args *parser.Parser) (nodes.ControlStructure, error) {
	name := args.Match(tokens.Name)
	if name == nil {
		return nil, at.fault("a value is set as {%% set name = value %%}")
	}
	n := &set{tag: at, name: name.Val}
	if args.End() {
		w, _, err := at.until(p, "set", "endset")
		if err != nil {
			return nil, err
		}
		n.body = w.Nodes
		return n, nil
	}
	if args.Match(tokens.Assign) == nil {
		return nil, at.fault("a value is set as {%% set name = value %%}")
	}
	value, err := args.ParseExpression()
	if err != nil {
		return nil, err
	}
	when, otherwise, err := args.ParseCondition()
	if err != nil {
		return nil, err
	}
	if !args.End() {
		return nil, args.Error("the value does not end here", args.Current())
	}
	n.value = &nodes.Output{Start: at.at, Expression: value, Condition: when, Alternative: otherwise}
	return n, nil
}

func (b *builder) raw(at tag, p, args *parser.Parser) (nodes.ControlStructure, error) {
	if !args.End() {
		return nil, at.fault("{%% raw %%} takes nothing")
	}
	w, _, err := at.until(p, "raw", "endraw")
	if err != nil {
		return nil, err
	}
	n := &raw{tag: at}
	for _, node := range w.Nodes {
		data, ok := node.(*nodes.Data)
		if !ok {
			return nil, at.fault("{%% raw %%} cannot be read")
		}
		n.text += trimmed(data)
	}
	return n, nil
}

package prompts

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nikolalohinski/gonja/v2/nodes"
	"github.com/nikolalohinski/gonja/v2/tokens"
)

// A checker refuses what the renderer would not know. It panics with an *Error.
type checker struct {
	tokens []*tokens.Token
	depth  int
}

func stop(line int, format string, args ...any) {
	panic(&Error{Line: line, Text: fmt.Sprintf(format, args...)})
}

func (c *checker) nodes(list []nodes.Node) {
	for _, n := range list {
		switch n := n.(type) {
		case nil, *nodes.Data, *nodes.Comment:
		case *nodes.Output:
			c.output(n)
		case *nodes.ControlStructureBlock:
			c.tag(n)
		default:
			stop(0, "the template has a part that is not known here")
		}
	}
}

func (c *checker) output(n *nodes.Output) {
	line := n.Start.Line
	c.expression(n.Expression, line)
	if n.Condition != nil {
		c.expression(n.Condition, line)
	}
	if n.Alternative != nil {
		c.expression(n.Alternative, line)
	}
}

func (c *checker) tag(n *nodes.ControlStructureBlock) {
	switch t := n.ControlStructure.(type) {
	case *branches:
		for _, a := range t.arms {
			c.expression(a.when, t.line())
			c.nodes(a.body)
		}
		c.nodes(t.otherwise)
	case *loop:
		c.expression(t.over, t.line())
		if t.only != nil {
			c.expression(t.only, t.line())
		}
		c.nodes(t.body)
		c.nodes(t.empty)
	case *set:
		if t.value != nil {
			c.output(t.value)
		}
		c.nodes(t.body)
	case *raw:
	default:
		stop(n.Location.Line, "the template has a tag that is not known here")
	}
}

// expression checks e, which begins in line unless it knows better.
func (c *checker) expression(e nodes.Node, line int) {
	if c.depth++; c.depth > maxNesting*4 {
		stop(line, "the expression has too many parts; set some of them to names first")
	}
	defer func() { c.depth-- }()
	line = lineOf(e, line)
	switch n := e.(type) {
	case *nodes.None, *nodes.Bool, *nodes.Integer, *nodes.Float, *nodes.String, *nodes.Name:
	case *nodes.List:
		c.all(n.Val, line)
	case *nodes.Tuple:
		c.all(n.Val, line)
	case *nodes.Dict:
		for _, p := range n.Pairs {
			c.expression(p.Key, line)
			c.expression(p.Value, line)
		}
	case *nodes.GetAttribute:
		c.expression(n.Node, line)
	case *nodes.GetItem:
		c.expression(n.Node, line)
		c.expression(n.Arg, line)
	case *nodes.GetSlice:
		c.expression(n.Node, line)
		for _, x := range []nodes.Node{n.Start, n.End, n.Step} {
			if x != nil {
				c.expression(x, line)
			}
		}
	case *nodes.Negation:
		c.expression(n.Term, line)
	case *nodes.UnaryExpression:
		c.expression(n.Term, line)
	case *nodes.BinaryExpression:
		c.expression(n.Left, line)
		c.expression(n.Right, line)
	case *nodes.Call:
		c.call(n, line)
	case *nodes.TestExpression:
		c.test(n, line)
	case *nodes.FilteredExpression:
		c.filtered(n, line)
	default: // nil, too
		stop(line, "an expression is missing or cannot be read")
	}
}

func (c *checker) all(list []nodes.Expression, line int) {
	for _, e := range list {
		c.expression(e, line)
	}
}

// call allows what is no call into the host.
func (c *checker) call(n *nodes.Call, line int) {
	c.all(n.Args, line)
	if f, ok := n.Func.(*nodes.Name); ok && f.Name.Val == "range" {
		if len(n.Args) < 1 || len(n.Args) > 3 || len(n.Kwargs) > 0 {
			stop(line, "range takes one to three numbers")
		}
		return
	}
	if m, ok := n.Func.(*nodes.GetAttribute); ok && m.Attribute == "items" && len(n.Args) == 0 && len(n.Kwargs) == 0 {
		c.expression(m.Node, line)
		return
	}
	stop(line, "%s cannot be called; there are range() and .items(), and filters such as name|upper", describe(n.Func))
}

// test checks a test, and gives those after in what they miss.
func (c *checker) test(n *nodes.TestExpression, line int) {
	c.expression(n.Expression, line)
	c.all(n.Test.Args, line)
	name := n.Test.Name
	takes, known := tests[name]
	switch {
	case !known:
		stop(line, "there is no test %.40q; there are %s", name, strings.Join(testNames(), ", "))
	case len(n.Test.Args) != takes && takes == 0:
		stop(line, "the test %s takes nothing; put it into brackets when more follows", name)
	case len(n.Test.Args) != takes:
		stop(line, "the test %s needs %d value", name, takes)
	}
}

// filtered checks filters. The parser gives the whole of "a in b|lower" to the
// filter; as in Jinja2, b alone is its.
func (c *checker) filtered(n *nodes.FilteredExpression, line int) {
	if t, ok := n.Expression.(*nodes.TestExpression); ok && !c.bracketed(n.Filters[0].Token, t) {
		if len(t.Test.Args) != 1 {
			stop(line, "a filter cannot follow the test %.40q; put the test into brackets", t.Test.Name)
		}
		t.Test.Args[0] = &nodes.FilteredExpression{Expression: t.Test.Args[0], Filters: n.Filters}
		n.Filters = nil
	} else if _, ok := n.Expression.(*nodes.Negation); ok && !c.bracketed(n.Filters[0].Token, n.Expression) {
		stop(line, "a filter cannot follow here; put what it is for into brackets")
	}
	c.expression(n.Expression, line)
	for _, f := range n.Filters {
		c.all(f.Args, line)
		for _, v := range f.Kwargs {
			c.expression(v, line)
		}
		if err := filterFault(f); err != "" {
			stop(f.Token.Line, "%s", err)
		}
	}
}

// bracketed reports whether e, which the filter follows, stands in brackets as a
// whole.
func (c *checker) bracketed(filter *tokens.Token, e nodes.Node) bool {
	i, _ := slices.BinarySearchFunc(c.tokens, filter, func(a, b *tokens.Token) int { return a.Pos - b.Pos })
	i -= 2 // before the |
	if i < 0 || c.tokens[i].Type != tokens.RightParenthesis {
		return false
	}
	depth := 0
	for ; i >= 0; i-- {
		switch c.tokens[i].Type {
		case tokens.RightParenthesis:
			depth++
		case tokens.LeftParenthesis:
			depth--
		}
		if depth == 0 {
			first := leftmost(e)
			return first != nil && c.tokens[i].Pos < first.Pos
		}
	}
	return false
}

// leftmost is the token that e begins with, brackets around it left aside.
func leftmost(e nodes.Node) *tokens.Token {
	for {
		switch n := e.(type) {
		case *nodes.GetAttribute:
			e = n.Node
		case *nodes.GetItem:
			e = n.Node
		case *nodes.GetSlice:
			e = n.Node
		case *nodes.Call:
			e = n.Func
		case *nodes.BinaryExpression:
			e = n.Left
		case *nodes.TestExpression:
			e = n.Expression
		case *nodes.FilteredExpression:
			e = n.Expression
		case nil:
			return nil
		default:
			return n.Position()
		}
	}
}

func lineOf(e nodes.Node, otherwise int) int {
	if t := leftmost(e); t != nil && t.Line > 0 {
		return t.Line
	}
	return otherwise
}

// describe is what e looks like, for people.
func describe(e nodes.Node) string {
	switch n := e.(type) {
	case *nodes.Name:
		return n.Name.Val
	case *nodes.GetAttribute:
		if n.Attribute == "" {
			return fmt.Sprintf("%s.%d", describe(n.Node), n.Index)
		}
		return describe(n.Node) + "." + n.Attribute
	case *nodes.GetItem:
		switch arg := n.Arg.(type) {
		case *nodes.String:
			return fmt.Sprintf("%s[%q]", describe(n.Node), arg.Val)
		case *nodes.Integer:
			return fmt.Sprintf("%s[%d]", describe(n.Node), arg.Val)
		}
		return describe(n.Node) + "[…]"
	case *nodes.Call:
		return describe(n.Func) + "()"
	case *nodes.FilteredExpression:
		return describe(n.Expression)
	default:
		return "an expression"
	}
}

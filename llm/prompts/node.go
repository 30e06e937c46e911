package prompts

import "fmt"

// A node is a part of a template: text, *output, *branches, *loop or *set.
type node any

type (
	text string
	// An output is {{ value if when else otherwise }}; when and otherwise may be nil.
	output struct{ value, when, otherwise expr }
	// branches are if, elif and else.
	branches struct {
		line      int
		arms      []arm
		otherwise []node
	}
	arm struct {
		when expr
		body []node
	}
	loop struct {
		line  int
		names []string // one or two
		over  expr
		only  expr // nil: all
		body  []node
		empty []node
	}
	set struct {
		line  int
		name  string
		value *output // nil: the body is it
		body  []node
	}
)

// maxParts bounds how deep the parts of an expression lie in each other.
const maxParts = 4 * maxNesting

// An expr is a part of an expression. Parse has checked all of it.
type expr interface{ where() place }

// A place is the line in which an expression begins, and how deep its parts lie.
type place struct{ line, depth int }

func (p place) where() place { return p }

// above is the place of an expression that has parts, and begins where the first one does.
func above(parts ...expr) place {
	p := place{line: parts[0].where().line}
	for _, part := range parts {
		if part != nil {
			p.depth = max(p.depth, part.where().depth+1)
		}
	}
	if p.depth > maxParts {
		stop(p.line, "the expression has too many parts; set some of them to names first")
	}
	return p
}

// The kinds of expressions.
type (
	literal struct {
		place
		value any
	}
	name struct {
		place
		text string
	}
	list struct {
		place
		items []expr
	}
	object struct {
		place
		keys, values []expr
	}
	// get is of.name, of.1 or of[key].
	get struct {
		place
		of, key expr
		dot     bool
	}
	// slice is of[from:to:step]; those that are left out are nil.
	slice struct {
		place
		of, from, to, step expr
	}
	negation struct {
		place
		of expr
	}
	signed struct {
		place
		minus bool
		of    expr
	}
	binary struct {
		place
		op          string
		left, right expr
	}
	// A numbers is range(args).
	numbers struct {
		place
		args []expr
	}
	// pairs is of.items().
	pairs struct {
		place
		of expr
	}
	// A trial is of is name, and of in with.
	trial struct {
		place
		of   expr
		name string
		with expr
	}
	filtered struct {
		place
		of     expr
		filter filter
		line   int
		args   []expr // by the parameters of the filter; nil for those that are not given
	}
)

// describe is what e looks like, for people.
func describe(e expr) string {
	switch n := e.(type) {
	case *name:
		return n.text
	case *get:
		key, _ := n.key.(*literal)
		switch {
		case n.dot:
			return fmt.Sprintf("%s.%v", describe(n.of), key.value)
		case key == nil:
		default:
			switch key.value.(type) {
			case string, int64:
				return fmt.Sprintf("%s[%#v]", describe(n.of), key.value)
			}
		}
		return describe(n.of) + "[…]"
	case *filtered:
		return describe(n.of)
	case *pairs:
		return describe(n.of) + ".items()"
	case *numbers:
		return "range()"
	default:
		return "an expression"
	}
}

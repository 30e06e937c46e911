package connectors

import (
	"strings"

	"github.com/yuin/goldmark/ast"
)

// A span is a kind of marked text that CommonMark does not have.
type span int

const (
	noSpan span = iota
	spoiler
	underlined
)

// A fragment is a part of a line: rendered text, or what may open or close a span.
type fragment struct {
	out         string
	span        span
	opens, ends bool
}

// inlines renders what is in a block or in a span. Besides Markdown, it understands
// ||spoilers|| and <u>underlined text</u> if the style has them; a mark without its counterpart
// stands as it is.
func (r *renderer) inlines(n ast.Node) string {
	r.depth++
	defer func() { r.depth-- }()
	if r.Spoiler == nil && r.Underline == nil {
		var b strings.Builder
		for c := n.FirstChild(); c != nil; c = c.NextSibling() {
			b.WriteString(r.inline(c))
		}
		return b.String()
	}
	var fragments []fragment
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			fragments = r.spoilers(fragments, c)
		case *ast.RawHTML:
			fragments = append(fragments, r.tag(c))
		default:
			fragments = append(fragments, fragment{out: r.inline(c)})
		}
	}
	return r.join(fragments)
}

// spoilers appends a text, in which || may open or close a spoiler.
func (r *renderer) spoilers(to []fragment, t *ast.Text) []fragment {
	s := string(t.Segment.Value(r.source))
	if r.Spoiler == nil || t.IsRaw() || !strings.Contains(s, "||") {
		return append(to, fragment{out: r.inline(t)})
	}
	parts := strings.Split(s, "||")
	for i, part := range parts {
		if part != "" {
			to = append(to, fragment{out: r.text(unescape(part))})
		}
		if i == len(parts)-1 {
			break
		}
		after := parts[i+1]
		to = append(to, fragment{
			out: r.text("||"), span: spoiler,
			opens: after == "" && i+1 == len(parts)-1 && !t.SoftLineBreak() && !t.HardLineBreak() || after != "" && after[0] != ' ',
			ends:  part == "" && i == 0 || part != "" && part[len(part)-1] != ' ',
		})
	}
	if t.SoftLineBreak() || t.HardLineBreak() {
		to = append(to, fragment{out: r.Break})
	}
	return to
}

// tag is a fragment of raw HTML.
func (r *renderer) tag(n *ast.RawHTML) fragment {
	p := fragment{out: r.inline(n)}
	if r.Underline == nil {
		return p
	}
	var raw strings.Builder
	for i := range n.Segments.Len() {
		at := n.Segments.At(i)
		raw.Write(at.Value(r.source))
	}
	switch strings.ToLower(raw.String()) {
	case "<u>", "<ins>":
		p.span, p.opens = underlined, true
	case "</u>", "</ins>":
		p.span, p.ends = underlined, true
	}
	return p
}

// join joins fragments, and wraps what stands between the two marks of a span.
func (r *renderer) join(fragments []fragment) string {
	type open struct {
		mark fragment
		b    strings.Builder
	}
	stack := []*open{{}}
	for _, p := range fragments {
		top := stack[len(stack)-1]
		at := len(stack) - 1 // of the mark that p closes
		for at > 0 && stack[at].mark.span != p.span {
			at--
		}
		switch {
		case p.ends && at > 0 && top.b.Len() > 0:
			inner := top.b.String()
			for len(stack)-1 > at { // marks of the other kind that are not closed
				lone := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				inner = stack[len(stack)-1].b.String() + lone.mark.out + inner
			}
			stack = stack[:at]
			stack[at-1].b.WriteString(r.wrapSpan(p.span, inner))
		case p.opens && p.span != noSpan && at == 0 && len(stack) <= maxDepth:
			stack = append(stack, &open{mark: p})
		default:
			top.b.WriteString(p.out)
		}
	}
	for len(stack) > 1 { // marks that are not closed
		last := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		stack[len(stack)-1].b.WriteString(last.mark.out + last.b.String())
	}
	return stack[0].b.String()
}

func (r *renderer) wrapSpan(s span, inner string) string {
	if s == spoiler {
		return wrap(r.Spoiler, inner)
	}
	return wrap(r.Underline, inner)
}

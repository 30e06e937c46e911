package connectors

import (
	"strings"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// An Outline is what of a Markdown text a platform may show in a form of its own.
type Outline struct {
	Tables []Table     // in their order
	Code   []CodeBlock // in their order
	// Structured: it has a heading, a rule, a list in a list or a list of tasks, which lines of text
	// only suggest.
	Structured bool
}

// A Table is a table that stands in a Markdown text by itself, in no list, quote or fence.
type Table struct {
	From, To int // md[From:To] are its lines, without the last newline
	// Rows have the plain texts of its cells, each on one line. The headings come first, and all rows
	// have as many cells.
	Rows  [][]string
	Align []string // of each column: left, center or right
}

// A CodeBlock is a fence that stands in a Markdown text by itself.
type CodeBlock struct {
	From, To   int    // md[From:To] are its lines, with those of the fence
	Lang, Text string // Text has no newline at its end
}

// OutlineOf reads Markdown as Render does. It is total.
func OutlineOf(md string) (o Outline) {
	if plain(md) {
		return o
	}
	r := renderer{source: []byte(md)}
	doc := markdown().Parse(text.NewReader(r.source))
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the function returns no error
		if !entering || n.Type() == ast.TypeInline {
			return ast.WalkSkipChildren, nil
		}
		switch n := n.(type) {
		case *ast.Heading, *ast.ThematicBreak:
			o.Structured = true
		case *ast.List:
			o.Structured = o.Structured || n.Parent().Kind() == ast.KindListItem
		case *ast.ListItem:
			o.Structured = o.Structured || r.isTask(n)
		case *ast.FencedCodeBlock:
			if n.Parent() == doc && n.Lines().Len() > 0 {
				o.Code = append(o.Code, r.codeOf(n))
			}
		case *extast.Table:
			if n.Parent() == doc {
				o.Tables = append(o.Tables, r.tableOf(n))
			}
			return ast.WalkSkipChildren, nil
		}
		return ast.WalkContinue, nil
	})
	return o
}

// isTask reports whether an item of a list begins with a box.
func (r *renderer) isTask(item ast.Node) bool {
	words := item.FirstChild()
	if words == nil || words.Lines() == nil || words.Lines().Len() == 0 {
		return false
	}
	line := words.Lines().At(0)
	box := string(line.Value(r.source))
	return strings.HasPrefix(box, "[ ] ") || strings.HasPrefix(box, "[x] ") || strings.HasPrefix(box, "[X] ")
}

// codeOf reads a fence that is not empty.
func (r *renderer) codeOf(n *ast.FencedCodeBlock) CodeBlock {
	md := string(r.source)
	lines := n.Lines()
	c := CodeBlock{Lang: string(n.Language(r.source)), Text: r.lines(n)}
	if first := lineStart(md, lines.At(0).Start); first > 0 {
		c.From = lineStart(md, first-1)
	}
	c.To = lines.At(lines.Len() - 1).Stop
	end := lineEnd(md, c.To)
	if mark := strings.TrimSpace(md[c.To:end]); beginsFence(mark) {
		c.To = end
	}
	c.To = c.From + len(strings.TrimRight(md[c.From:c.To], "\r\n"))
	return c
}

// tableOf reads a table.
func (r *renderer) tableOf(n *extast.Table) Table {
	md := string(r.source)
	t := Table{From: lineStart(md, n.FirstChild().Pos())}
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		cells := make([]string, 0, len(n.Alignments))
		for cell := row.FirstChild(); cell != nil && len(cells) < len(n.Alignments); cell = cell.NextSibling() {
			cells = append(cells, strings.ToValidUTF8(strings.ReplaceAll(r.cell(cell), "\x00", "\uFFFD"), "\uFFFD"))
		}
		t.Rows = append(t.Rows, cells)
	}
	t.To = lineEnd(md, n.LastChild().Pos())
	if len(t.Rows) == 1 {
		t.To = lineEnd(md, t.To) // the line below the headings
	}
	t.To = t.From + len(strings.TrimRight(md[t.From:t.To], "\r\n"))
	for _, a := range n.Alignments {
		align := "left"
		switch a {
		case extast.AlignRight:
			align = "right"
		case extast.AlignCenter:
			align = "center"
		}
		t.Align = append(t.Align, align)
	}
	return t
}

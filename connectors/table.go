package connectors

import (
	"strings"
	"unicode"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
)

// table writes a table as text with aligned columns, for a fence.
func (r *renderer) table(n *extast.Table) string {
	var rows [][]string
	var widths []int
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		var cells []string
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			s := r.cell(cell)
			if len(cells) == len(widths) {
				widths = append(widths, 0)
			}
			widths[len(cells)] = max(widths[len(cells)], columns(s))
			cells = append(cells, s)
		}
		rows = append(rows, cells)
	}
	var b strings.Builder
	for i, cells := range rows {
		var line strings.Builder
		for j, s := range cells {
			if j > 0 {
				line.WriteString("  ")
			}
			left, right := padding(n.Alignments, j, widths[j]-columns(s))
			line.WriteString(strings.Repeat(" ", left) + s + strings.Repeat(" ", right))
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
		if i == 0 {
			for j, w := range widths {
				if j > 0 {
					b.WriteString("  ")
				}
				b.WriteString(strings.Repeat("-", w))
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// width is that of the longest line.
func width(lines string) (widest int) {
	for line := range strings.SplitSeq(lines, "\n") {
		widest = max(widest, columns(line))
	}
	return widest
}

// rows writes a table as a list: of each row the first cell, and below it the others behind
// their headings.
func (r *renderer) rows(n *extast.Table) string {
	var heads, out []string
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		var lines []string
		i := 0
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			switch inner := strings.ReplaceAll(r.inlines(cell), "\n", " "); {
			case row == n.FirstChild():
				heads = append(heads, r.text(r.cell(cell)))
			case inner == "":
			case i == 0:
				lines = append(lines, wrap(r.Strong, inner))
			case i < len(heads) && heads[i] != "":
				lines = append(lines, r.text("• ")+heads[i]+r.text(": ")+inner)
			default:
				lines = append(lines, r.text("• ")+inner)
			}
			i++
		}
		if len(lines) > 0 {
			out = append(out, strings.Join(lines, "\n"))
		}
	}
	if len(out) == 0 { // headings only
		return strings.Join(heads, r.text(", "))
	}
	return strings.Join(out, "\n\n")
}

// cell is the plain text of a table cell, on one line.
func (r *renderer) cell(n ast.Node) string {
	plain := renderer{Style: Style{Break: " "}, source: r.source}
	return strings.TrimSpace(strings.ReplaceAll(plain.inlines(n), "\n", " "))
}

// padding shares out the free columns of cell j.
func padding(a []extast.Alignment, j, free int) (left, right int) {
	if j >= len(a) {
		return 0, free
	}
	switch a[j] {
	case extast.AlignRight:
		return free, 0
	case extast.AlignCenter:
		return free / 2, free - free/2
	}
	return 0, free
}

// columns is the width of s in a fixed-width font.
func columns(s string) int {
	n := 0
	for _, c := range s {
		switch {
		case unicode.In(c, unicode.Mn, unicode.Me, unicode.Cf):
		case wide(c):
			n += 2
		default:
			n++
		}
	}
	return n
}

// wide reports whether c takes two columns: East Asian scripts and emoji.
func wide(c rune) bool {
	return c >= 0x1100 && (c <= 0x115f || c >= 0x2e80 && c <= 0x303e || c >= 0x3041 && c <= 0xa4cf ||
		c >= 0xac00 && c <= 0xd7a3 || c >= 0xf900 && c <= 0xfaff || c >= 0xfe30 && c <= 0xfe6f ||
		c >= 0xff00 && c <= 0xff60 || c >= 0xffe0 && c <= 0xffe6 || c >= 0x1f300 && c <= 0x1faff || c >= 0x20000 && c <= 0x3fffd)
}

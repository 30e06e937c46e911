package connectors

import (
	"html"
	"strconv"
	"strings"
	"sync"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// A Style defines how a platform renders Markdown. Every function is optional:
// without it the content stands as it is, so that the zero Style yields plain
// text. inner is rendered already; s and code are raw and must be escaped by
// the function.
type Style struct {
	Text      func(s string) string // escapes plain text
	Strong    func(inner string) string
	Emphasis  func(inner string) string
	Strike    func(inner string) string
	Code      func(s string) string
	Fence     func(lang, code string) string // code has no newline at its end
	Link      func(inner, url string) string // url is absolute: http, https, ftp, mailto or tel
	Heading   func(level int, inner string) string
	Quote     func(inner string) string
	Spoiler   func(inner string) string // ||hidden||
	Underline func(inner string) string // <u>underlined</u>
	Paragraph func(inner string) string
	// Item is one entry of a list; marker is "•" or a number such as "3.".
	// Lines after the first are indented, except in fences.
	Item func(marker, inner string) string
	// List wraps the items of one list, one on a line; start is the first
	// number of an ordered one.
	List func(ordered bool, start int, items string) string
	// WideTable is the width in columns above which a table is shown as a list of its rows;
	// 0 for never.
	WideTable int
	Rule      string // a thematic break; default "———"
	Break     string // a line break in a paragraph; default "\n"
}

// maxDepth bounds the nesting that is rendered as nesting; what lies deeper is
// shown as plain text. It bounds the time that hostile input can take.
const maxDepth = 24

// Render writes Markdown in the style of a platform. It understands CommonMark
// with tables, strikethrough and bare links. Tables become aligned text in a
// fence, or a list if they are wide, images become links, raw HTML is shown as text, and a link that no
// client should follow (a script, a file, a relative path) becomes its text.
// It is total: every input, also broken UTF-8, has a result, and a text that
// is not blank never renders as blank.
func Render(md string, s Style) string {
	md = strings.ReplaceAll(strings.ToValidUTF8(md, "\uFFFD"), "\x00", "\uFFFD")
	md = strings.TrimRight(strings.TrimLeft(md, "\n"), " \t\r\n")
	if s.Break == "" {
		s.Break = "\n"
	}
	if s.Rule == "" {
		s.Rule = "———"
	}
	r := renderer{Style: s}
	if plain(md) {
		return r.plain(md)
	}
	r.source = []byte(md)
	doc := markdown().Parse(text.NewReader(r.source))
	out := strings.Join(r.blocks(doc), "\n\n")
	if strings.TrimSpace(out) == "" {
		return r.text(md)
	}
	return out
}

// markdown is the parser; it is safe for concurrent use once built.
var markdown = sync.OnceValue(func() parser.Parser {
	p := parser.NewParser(
		parser.WithBlockParsers(parser.DefaultBlockParsers()...),
		parser.WithInlineParsers(parser.DefaultInlineParsers()...),
		parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
	)
	p.AddOptions(
		parser.WithInlineParsers(
			util.Prioritized(extension.NewStrikethroughParser(), 500),
			util.Prioritized(extension.NewLinkifyParser(), 999),
		),
		parser.WithParagraphTransformers(util.Prioritized(extension.NewTableParagraphTransformer(), 200)),
		parser.WithASTTransformers(util.Prioritized(extension.NewTableASTTransformer(), 0)),
	)
	return p
})

// plain reports whether md is only words: nothing in it can mean anything to
// the parser. Most short chat messages are like that, and skip it.
func plain(md string) bool {
	if strings.ContainsAny(md, "*_~`[]<>#\\|&@\r\t\v\f") || strings.Contains(md, "://") || strings.Contains(md, "www.") || strings.Contains(md, "\n\n\n") {
		return false
	}
	for line := range strings.SplitSeq(md, "\n") {
		if line == "" {
			continue
		}
		switch c := line[0]; {
		case c == ' ' || c == '-' || c == '+' || c == '=' || c == ':' || c >= '0' && c <= '9':
			return false
		}
		if line[len(line)-1] == ' ' {
			return false
		}
	}
	return true
}

// A renderer walks one document bottom-up.
type renderer struct {
	Style
	source []byte
	depth  int
}

func (r *renderer) plain(md string) string {
	if r.Paragraph == nil && r.Break == "\n" {
		return r.text(md)
	}
	var parts []string
	for p := range strings.SplitSeq(md, "\n\n") {
		lines := strings.Split(p, "\n")
		for i := range lines {
			lines[i] = r.text(lines[i])
		}
		parts = append(parts, wrap(r.Paragraph, strings.Join(lines, r.Break)))
	}
	return strings.Join(parts, "\n\n")
}

func (r *renderer) text(s string) string { return wrap(r.Text, s) }

func wrap(f func(string) string, s string) string {
	if f == nil {
		return s
	}
	return f(s)
}

// blocks renders the children of n that show something.
func (r *renderer) blocks(n ast.Node) []string {
	r.depth++
	defer func() { r.depth-- }()
	var out []string
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if s := r.block(c); s != "" {
			out = append(out, s)
		}
	}
	return out
}

func (r *renderer) block(n ast.Node) string {
	if r.depth > maxDepth {
		return r.text(r.lines(n))
	}
	switch n := n.(type) {
	case *ast.Paragraph:
		return wrap(r.Paragraph, r.inlines(n))
	case *ast.Heading:
		inner := r.inlines(n)
		if r.Heading == nil || inner == "" {
			return inner
		}
		return r.Heading(n.Level, inner)
	case *ast.ThematicBreak:
		return r.Rule
	case *ast.FencedCodeBlock:
		return r.fence(string(n.Language(r.source)), r.lines(n))
	case *ast.CodeBlock:
		return r.fence("", r.lines(n))
	case *ast.HTMLBlock:
		s := r.lines(n)
		if n.HasClosure() {
			s += "\n" + string(n.ClosureLine.Value(r.source))
		}
		return wrap(r.Paragraph, r.text(strings.Trim(s, "\n")))
	case *ast.Blockquote:
		inner := strings.Join(r.blocks(n), "\n\n")
		if inner == "" {
			return ""
		}
		return wrap(r.Quote, inner)
	case *ast.List:
		return r.list(n)
	case *extast.Table:
		rows := r.table(n)
		if width(rows) > r.WideTable && r.WideTable > 0 {
			return r.rows(n)
		}
		return r.fence("", rows)
	case *ast.LinkReferenceDefinition:
		return ""
	default: // TextBlock, and unknown blocks
		return r.inlines(n)
	}
}

func (r *renderer) fence(lang, code string) string {
	code = strings.TrimRight(code, "\n")
	if r.Fence == nil {
		return r.text(code)
	}
	return r.Fence(lang, code)
}

// lines is the raw text of a block and, for a container, of what is in it.
func (r *renderer) lines(n ast.Node) string {
	var b strings.Builder
	segments := n.Lines()
	for i := range segments.Len() {
		at := segments.At(i)
		b.Write(at.Value(r.source))
	}
	if segments.Len() > 0 {
		return strings.TrimRight(b.String(), "\n")
	}
	// Deep nesting only: the leaves, without their markers.
	_ = ast.Walk(n, func(c ast.Node, entering bool) (ast.WalkStatus, error) { // the function below returns no error
		if !entering || c.Type() != ast.TypeBlock || c == n || c.Lines().Len() == 0 {
			return ast.WalkContinue, nil
		}
		b.WriteString(r.lines(c))
		b.WriteByte('\n')
		return ast.WalkSkipChildren, nil
	})
	return strings.TrimRight(b.String(), "\n")
}

func (r *renderer) list(n *ast.List) string {
	r.depth++
	defer func() { r.depth-- }()
	between := "\n\n"
	if n.IsTight {
		between = "\n"
	}
	number := n.Start
	var items []string
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		marker := "•"
		if n.IsOrdered() {
			marker = strconv.Itoa(number) + string(n.Marker)
			number++
		}
		inner := r.item(c, strings.Repeat(" ", len([]rune(marker))+1), between)
		if r.Item != nil {
			items = append(items, r.Item(marker, inner))
			continue
		}
		items = append(items, strings.TrimRight(r.text(marker)+" "+inner, " "))
	}
	all := strings.Join(items, between)
	if r.List == nil {
		return all
	}
	return r.List(n.IsOrdered(), n.Start, all)
}

// item renders what is in a list item, hanging below its marker.
func (r *renderer) item(n ast.Node, indent, between string) string {
	r.depth++
	defer func() { r.depth-- }()
	var parts []string
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		s := r.block(c)
		if s == "" {
			continue
		}
		switch c.(type) {
		case *ast.FencedCodeBlock, *ast.CodeBlock, *extast.Table: // white space is content
		default:
			if len(parts) > 0 {
				s = indent + s
			}
			s = strings.ReplaceAll(s, "\n", "\n"+indent)
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, between)
}

func (r *renderer) inline(n ast.Node) string {
	switch n := n.(type) {
	case *ast.Text:
		s := string(n.Segment.Value(r.source))
		if !n.IsRaw() {
			s = unescape(s)
		}
		if s != "" {
			s = r.text(s)
		}
		if n.SoftLineBreak() || n.HardLineBreak() {
			s += r.Break
		}
		return s
	case *ast.String:
		return r.text(string(n.Value))
	case *ast.CodeSpan:
		return wrap(r.orText(r.Code), strings.ReplaceAll(r.raw(n), "\n", " "))
	case *ast.RawHTML:
		var b strings.Builder
		for i := range n.Segments.Len() {
			at := n.Segments.At(i)
			b.Write(at.Value(r.source))
		}
		return r.text(b.String())
	case *ast.AutoLink:
		url := string(n.URL(r.source))
		if n.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(url), "mailto:") {
			url = "mailto:" + url
		}
		return r.link(r.text(string(n.Label(r.source))), url)
	}
	if r.depth > maxDepth {
		return r.text(r.raw(n))
	}
	inner := r.inlines(n)
	switch n := n.(type) {
	case *ast.Emphasis:
		if n.Level > 1 {
			return wrap(r.Strong, inner)
		}
		return wrap(r.Emphasis, inner)
	case *extast.Strikethrough:
		return wrap(r.Strike, inner)
	case *ast.Link:
		return r.link(inner, unescape(string(n.Destination)))
	case *ast.Image:
		return r.link(inner, unescape(string(n.Destination)))
	}
	return inner
}

// orText returns f, or plain text if the style has no f.
func (r *renderer) orText(f func(string) string) func(string) string {
	if f == nil {
		return r.Text
	}
	return f
}

// raw is the source text of the leaves below n.
func (r *renderer) raw(n ast.Node) string {
	var b strings.Builder
	_ = ast.Walk(n, func(c ast.Node, entering bool) (ast.WalkStatus, error) { // the function below returns no error
		if !entering {
			return ast.WalkContinue, nil
		}
		switch c := c.(type) {
		case *ast.Text:
			b.Write(c.Segment.Value(r.source))
			if c.SoftLineBreak() || c.HardLineBreak() {
				b.WriteByte('\n')
			}
		case *ast.String:
			b.Write(c.Value)
		case *ast.AutoLink:
			b.Write(c.Label(r.source))
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// link renders a link. For one that is not safe to follow, it renders the text
// and the address.
func (r *renderer) link(inner, url string) string {
	if inner == "" {
		inner = r.text(url)
	}
	if r.Link != nil && followable(url) {
		return r.Link(inner, url)
	}
	if address := r.text(url); url != "" && address != inner && r.text(strings.TrimPrefix(url, "mailto:")) != inner {
		return inner + r.text(" (") + address + r.text(")")
	}
	return inner
}

// followable reports whether url is absolute and of a harmless kind.
func followable(url string) bool {
	scheme, rest, ok := strings.Cut(url, ":")
	if !ok || rest == "" || strings.ContainsAny(url, " \t\r\n\x00\"<>") {
		return false
	}
	switch strings.ToLower(scheme) {
	case "http", "https", "ftp":
		return strings.HasPrefix(rest, "//") && len(rest) > 2
	case "mailto", "tel":
		return true
	}
	return false
}

// unescape resolves backslash escapes and character references.
func unescape(s string) string {
	if !strings.ContainsAny(s, "\\&") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && util.IsPunct(s[i+1]):
			i++
			b.WriteByte(s[i])
		case s[i] == '&':
			n := reference(s[i:])
			b.WriteString(strings.ReplaceAll(html.UnescapeString(s[i:i+n]), "\x00", "\uFFFD"))
			i += n - 1
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// reference is the length of the character reference that s begins with, or 1.
func reference(s string) int {
	for i := 1; i < len(s) && i < 40; i++ {
		switch c := s[i]; {
		case c == ';' && i > 1:
			return i + 1
		case c == '#' && i == 1, c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
		default:
			return 1
		}
	}
	return 1
}

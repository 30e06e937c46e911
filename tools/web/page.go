package web

import (
	"bytes"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/claybot/claybot/lazyregexp"
)

// markdown is a page as a person would read it: without what is not shown, with
// its title, and with whole addresses.
func markdown(page []byte, address *url.URL) string {
	if len(page) > maxPage {
		return bareText(page)
	}
	doc, err := html.Parse(bytes.NewReader(page))
	if err != nil { // nested beyond reason
		return bareText(page)
	}
	title := titleOf(doc)
	where := baseOf(doc, address)
	prune(doc, where)
	flatten(doc, 0, false)
	conv := converter.NewConverter(
		// Models need no escapes, and finding what needs them takes time.
		converter.WithEscapeMode(converter.EscapeModeDisabled),
		converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), table.NewTablePlugin()),
	)
	text, err := conv.ConvertNode(doc)
	if err != nil {
		return bareText(page)
	}
	if title != "" {
		return "# " + title + "\n\n" + strings.TrimSpace(string(text))
	}
	return strings.TrimSpace(string(text))
}

func bareText(page []byte) string {
	var b strings.Builder
	z := html.NewTokenizer(bytes.NewReader(page))
	silent := ""
	for {
		switch z.Next() {
		case html.ErrorToken:
			return strings.Join(strings.Fields(b.String()), " ")
		case html.StartTagToken:
			if name, _ := z.TagName(); unseen[atom.Lookup(name)] {
				silent = string(name)
			}
		case html.EndTagToken:
			if name, _ := z.TagName(); string(name) == silent {
				silent = ""
			}
		case html.TextToken:
			if silent == "" {
				b.Write(z.Text())
				b.WriteByte(' ')
			}
		}
	}
}

// unseen are elements that show no text.
var unseen = map[atom.Atom]bool{
	atom.Script: true, atom.Style: true, atom.Noscript: true, atom.Template: true, atom.Iframe: true, atom.Object: true,
	atom.Embed: true, atom.Svg: true, atom.Canvas: true, atom.Head: true, atom.Datalist: true, atom.Noframes: true, atom.Math: true,
	atom.Audio: true, atom.Video: true, atom.Select: true,
}

func titleOf(doc *html.Node) string {
	for n := range doc.Descendants() {
		if n.DataAtom == atom.Title && n.Namespace == "" && n.FirstChild != nil {
			return strings.Join(strings.Fields(n.FirstChild.Data), " ")
		}
	}
	return ""
}

func baseOf(doc *html.Node, address *url.URL) *url.URL {
	for n := range doc.Descendants() {
		if n.DataAtom == atom.Base {
			if u, err := address.Parse(strings.TrimSpace(attribute(n, "href"))); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
				return u
			}
		}
	}
	return address
}

// prune takes out what people do not see, and makes addresses whole.
func prune(n *html.Node, where *url.URL) {
	for c := n.FirstChild; c != nil; {
		if c.Type == html.TextNode {
			join(c)
		}
		next := c.NextSibling
		switch {
		case c.Type == html.CommentNode, c.Type == html.ElementNode && hidden(c):
			n.RemoveChild(c)
		default:
			if c.Type == html.ElementNode {
				relocate(c, where)
			}
			prune(c, where)
		}
		c = next
	}
}

func join(n *html.Node) {
	if n.NextSibling == nil || n.NextSibling.Type != html.TextNode {
		return
	}
	var b strings.Builder
	b.WriteString(n.Data)
	for next := n.NextSibling; next != nil && next.Type == html.TextNode; next = n.NextSibling {
		b.WriteString(next.Data)
		n.Parent.RemoveChild(next)
	}
	n.Data = b.String()
}

// Making Markdown takes time that grows with how deep elements nest, and for tables
// within tables it doubles with each. So what nests deeper than pages of people do
// becomes plain text.
const (
	maxNesting = 24 // of elements that Markdown has a form for
	maxSpan    = 16 // of the cells of a table
	maxCells   = 5000
	maxPage    = 2 << 20 // bytes
)

// flatten takes their form from elements that nest too deep: depth are those
// above n that have one, and table says that a table is among them.
func flatten(n *html.Node, depth int, table bool) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		below, inTable := depth, table
		if c.Type == html.ElementNode {
			switch c.DataAtom {
			case atom.Table, atom.Caption, atom.Colgroup, atom.Col, atom.Thead, atom.Tbody, atom.Tfoot, atom.Tr, atom.Td, atom.Th:
				if c.DataAtom == atom.Table && !table && depth < maxNesting && cells(c) <= maxCells {
					inTable = true
				} else if c.DataAtom == atom.Table || nested(c) {
					become(c, atom.Div)
				}
				capSpans(c)
			case atom.Div, atom.Span, atom.Html, atom.Body, atom.P, atom.Section, atom.Article, atom.Main:
			default:
				if below++; below > maxNesting {
					become(c, atom.Span)
				}
			}
		}
		flatten(c, below, inTable)
	}
}

func cells(n *html.Node) (count int) {
	for d := range n.Descendants() {
		if d.DataAtom == atom.Td || d.DataAtom == atom.Th || d.DataAtom == atom.Tr {
			count++
		}
	}
	return count
}

// nested reports a part of a table that is no table any more.
func nested(n *html.Node) bool {
	for p := n.Parent; p != nil; p = p.Parent {
		switch p.DataAtom {
		case atom.Table:
			return false
		case atom.Thead, atom.Tbody, atom.Tfoot, atom.Tr:
		default:
			return true
		}
	}
	return true
}

func become(n *html.Node, to atom.Atom) { n.DataAtom, n.Data, n.Attr = to, to.String(), nil }

func capSpans(n *html.Node) {
	for i := range n.Attr {
		if a := &n.Attr[i]; a.Key == "colspan" || a.Key == "rowspan" {
			if span, err := strconv.Atoi(strings.TrimSpace(a.Val)); err != nil || span > maxSpan {
				a.Val = "1"
			}
		}
	}
}

// hidden reports an element that is not shown, as far as it says so itself.
func hidden(n *html.Node) bool {
	if unseen[n.DataAtom] || n.Namespace != "" {
		return true
	}
	if n.DataAtom == atom.Input && strings.EqualFold(attribute(n, "type"), "hidden") {
		return true
	}
	for _, a := range n.Attr {
		switch a.Key {
		case "hidden":
			return true
		case "aria-hidden":
			if strings.EqualFold(strings.TrimSpace(a.Val), "true") {
				return true
			}
		case "style":
			if hidingStyle.MatchString(styleComment.ReplaceAllString(a.Val, "")) {
				return true
			}
		}
	}
	return n.DataAtom == atom.Dialog && !has(n, "open")
}

var (
	styleComment = lazyregexp.New(`(?s)/\*.*?\*/`)
	// hidingStyle is a declaration that hides: not displayed, not visible, without
	// size, or far off the screen.
	hidingStyle = lazyregexp.New(`(?i)(^|[;\s])(` +
		`display\s*:\s*none|visibility\s*:\s*(hidden|collapse)|content-visibility\s*:\s*hidden|` +
		`opacity\s*:\s*0*\.?0+%?\s*(!|;|$)|font-size\s*:\s*0*\.?0+[a-z%]*\s*(!|;|$)|` +
		`(max-)?(width|height)\s*:\s*0*\.?0+(px|em|rem|%)?\s*(!|;|$)|` +
		`(left|right|top|bottom|text-indent|margin-left|margin-top)\s*:\s*-\s*[0-9]{3,}|` +
		`color\s*:\s*transparent|transform\s*:\s*scale\(\s*0+\s*[,)]|` +
		`clip(-path)?\s*:\s*(rect\(\s*0|inset\(\s*(50|100)%|circle\(\s*0))`)
)

// relocate makes the addresses of an element whole, and removes those that lead
// nowhere: scripts, and data that stands in the page.
func relocate(n *html.Node, where *url.URL) {
	for i := range n.Attr {
		a := &n.Attr[i]
		if a.Key != "href" && a.Key != "src" && a.Key != "cite" {
			continue
		}
		u, err := where.Parse(strings.TrimSpace(a.Val))
		if err != nil || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "mailto" && u.Scheme != "tel" {
			a.Val = ""
			if n.DataAtom == atom.A { // its text remains, without a link
				n.DataAtom, n.Data = atom.Span, "span"
			}
			continue
		}
		a.Val = u.String()
	}
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func has(n *html.Node, name string) bool {
	for _, a := range n.Attr {
		if a.Key == name {
			return true
		}
	}
	return false
}

// visible leaves out characters that people do not see and that models read all the
// same: zero width, direction, tags, and selectors of variants. Joiners stay where
// scripts and pictures need them: alone, between characters beyond Latin.
func visible(text string) string {
	if !strings.ContainsFunc(text, unseenRune) {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	runes := []rune(text)
	for i, r := range runes {
		if !unseenRune(r) || joins(runes, i) {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func unseenRune(r rune) bool {
	switch {
	case r < 0xad:
		return false
	case r == 0x034f, r == 0x115f, r == 0x1160, r == 0x17b4, r == 0x17b5, r == 0x2800, r == 0x3164, r == 0xffa0:
		return true // fillers
	case r >= 0xfe00 && r <= 0xfe0d, r >= 0xe0000 && r <= 0xe0fff:
		return true // selectors and tags; those of emoji, fe0e and fe0f, stay
	}
	return unicode.Is(unicode.Cf, r)
}

func joins(runes []rune, i int) bool {
	const zwnj, zwj = 0x200c, 0x200d
	if runes[i] != zwnj && runes[i] != zwj || i == 0 || i == len(runes)-1 {
		return false
	}
	before, after := runes[i-1], runes[i+1]
	return before > 0x300 && after > 0x300 && !unseenRune(before) && !unseenRune(after)
}

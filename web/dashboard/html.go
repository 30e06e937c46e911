package dashboard

import (
	"fmt"
	"html"
	"html/template"
	"strconv"
	"strings"

	"github.com/claybot/claybot/connectors"
)

// markdownLimit is the longest text in bytes that is shown as Markdown; longer
// ones are shown as they were written.
const markdownLimit = 200_000

// markdown renders the Markdown of a model. It creates only the tags below,
// escapes all text, and allows only web and mail links.
func markdown(text string) template.HTML {
	if len(text) > markdownLimit {
		return template.HTML("<pre><code>" + html.EscapeString(text) + "</code></pre>")
	}
	return template.HTML(connectors.Render(text, style)) //nolint:gosec // escaped piece by piece
}

// style leaves the first two levels of headings to the page.
var style = connectors.Style{
	Text:     html.EscapeString,
	Strong:   wrap("strong"),
	Emphasis: wrap("em"),
	Strike:   wrap("del"),
	Code:     func(s string) string { return "<code>" + html.EscapeString(s) + "</code>" },
	Fence: func(_, code string) string {
		return `<pre tabindex="0"><code>` + html.EscapeString(code) + "</code></pre>"
	},
	Link:      anchor,
	Heading:   func(level int, inner string) string { return wrap("h" + strconv.Itoa(min(max(level, 1)+2, 6)))(inner) },
	Quote:     wrap("blockquote"),
	Paragraph: wrap("p"),
	Item:      func(_, inner string) string { return "<li>" + inner + "</li>" },
	List: func(ordered bool, start int, items string) string {
		switch {
		case !ordered:
			return "<ul>" + items + "</ul>"
		case start != 1:
			return `<ol start="` + strconv.Itoa(start) + `">` + items + "</ol>"
		}
		return "<ol>" + items + "</ol>"
	},
	Rule:  "<hr>",
	Break: "<br>",
}

func wrap(tag string) func(string) string {
	return func(inner string) string { return "<" + tag + ">" + inner + "</" + tag + ">" }
}

// anchor checks URLs again although Render does, because this is the security
// boundary.
func anchor(inner, url string) string {
	scheme, _, _ := strings.Cut(strings.ToLower(url), ":")
	switch scheme {
	case "http", "https", "mailto":
		return `<a href="` + html.EscapeString(url) + `" target="_blank" rel="noopener noreferrer nofollow">` + inner + "</a>"
	}
	return inner
}

// turning reports whether r is a bidirectional control character: an embedding
// or override, or an isolate.
func turning(r rune) (overrides, isolates bool) {
	return r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069'
}

// straight drops bidirectional control characters, which have no use in a
// single line.
func straight(r rune) rune {
	if overrides, isolates := turning(r); overrides || isolates {
		return -1
	}
	return r
}

// unturned makes bidirectional overrides in the text of a page visible: with
// one, "gnp.exe" looks like "exe.png". Attributes and fields keep them, because
// they are sent back unchanged. Isolates stay, because they end with their
// element. It relies on templates using < and > only for tags.
func unturned(html string) string {
	if !strings.Contains(html, "\u202a"[:2]) {
		return html
	}
	var b strings.Builder
	b.Grow(len(html))
	tag, field := false, false
	for i, r := range html {
		switch overrides, _ := turning(r); {
		case overrides && !tag && !field:
			fmt.Fprintf(&b, "[U+%04X]", r)
			continue
		case r == '<':
			tag = true
			switch rest := html[i+1:]; {
			case strings.HasPrefix(rest, "textarea"):
				field = true
			case strings.HasPrefix(rest, "/textarea"):
				field = false
			}
		case r == '>':
			tag = false
		}
		b.WriteRune(r)
	}
	return b.String()
}

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

// markdown shows what a model wrote. It makes only the tags below, escapes all
// text, and lets links lead nowhere but to web and mail addresses.
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

// anchor refuses what Render should not let through, too: this is the border.
func anchor(inner, url string) string {
	scheme, _, _ := strings.Cut(strings.ToLower(url), ":")
	switch scheme {
	case "http", "https", "mailto":
		return `<a href="` + html.EscapeString(url) + `" target="_blank" rel="noopener noreferrer nofollow">` + inner + "</a>"
	}
	return inner
}

// turning reports the characters that turn the direction of writing of what
// follows: embeddings and overrides, and isolates.
func turning(r rune) (overrides, isolates bool) {
	return r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069'
}

// straight leaves out the characters that turn the direction of writing: in one
// line among others they are of no use.
func straight(r rune) rune {
	if overrides, isolates := turning(r); overrides || isolates {
		return -1
	}
	return r
}

// unturned shows the overrides in the text of a page as what they are: with one,
// "gnp.exe" is read as "exe.png". Attributes and fields keep them, as they go
// back to where they came from. Isolates stay: they end with their element. Our
// templates write < and > around tags alone.
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

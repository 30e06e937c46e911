package dashboard

import (
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

package webchat

import (
	"fmt"
	"html"
	"strings"

	"github.com/claybot/claybot/connectors"
)

// page renders Markdown as safe HTML: it creates only the tags below, escapes
// all text, and links open in a new tab without a referrer. Render guarantees
// that images become links and raw HTML becomes text.
var page = connectors.Style{
	Text:      html.EscapeString,
	Strong:    tag("strong"),
	Emphasis:  tag("em"),
	Strike:    tag("del"),
	Code:      func(s string) string { return "<code>" + html.EscapeString(s) + "</code>" },
	Fence:     fence,
	Link:      link,
	Heading:   func(level int, inner string) string { return tag(fmt.Sprintf("h%d", min(max(level, 1), 6)))(inner) },
	Quote:     tag("blockquote"),
	Paragraph: tag("p"),
	Item:      func(_, inner string) string { return "<li>" + inner + "</li>" },
	List:      list,
	Rule:      "<hr>",
	Break:     "<br>",
}

func tag(name string) func(string) string {
	return func(inner string) string { return "<" + name + ">" + inner + "</" + name + ">" }
}

func fence(lang, code string) string {
	attr := ""
	if lang != "" {
		attr = ` data-lang="` + html.EscapeString(lang) + `"`
	}
	return "<pre" + attr + "><code>" + html.EscapeString(code) + "</code></pre>"
}

// link checks URLs again although Render does, because this is the security
// boundary.
func link(inner, url string) string {
	scheme, _, _ := strings.Cut(strings.ToLower(url), ":")
	switch scheme {
	case "http", "https", "mailto":
		return `<a href="` + html.EscapeString(url) + `" target="_blank" rel="noopener noreferrer nofollow">` + inner + "</a>"
	}
	return inner
}

func list(ordered bool, start int, items string) string {
	if !ordered {
		return "<ul>" + items + "</ul>"
	}
	if start != 1 {
		return fmt.Sprintf(`<ol start="%d">%s</ol>`, start, items)
	}
	return "<ol>" + items + "</ol>"
}

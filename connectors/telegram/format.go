package telegram

import (
	"html"
	"strings"

	"github.com/claybot/claybot/connectors"
)

var (
	textEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	attrEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")
	noBold      = strings.NewReplacer("<b>", "", "</b>", "")
	noQuote     = strings.NewReplacer("<blockquote>", "", "</blockquote>", "")
)

// style renders Telegram's HTML. Telegram documents nested quotes and nested bold
// but rejects them, so they are flattened.
var style = connectors.Style{
	Text:     textEscaper.Replace,
	Strong:   func(s string) string { return element("b", noBold.Replace(s)) },
	Emphasis: func(s string) string { return element("i", s) },
	Strike:   func(s string) string { return element("s", s) },
	Code:     func(s string) string { return element("code", textEscaper.Replace(s)) },
	Fence: func(lang, code string) string {
		code = textEscaper.Replace(code)
		if lang != "" {
			return `<pre><code class="language-` + attrEscaper.Replace(lang) + `">` + code + "</code></pre>"
		}
		return element("pre", code)
	},
	Link: func(inner, url string) string {
		if inner == textEscaper.Replace(url) { // Telegram links a bare address by itself
			return inner
		}
		return `<a href="` + attrEscaper.Replace(url) + `">` + inner + "</a>"
	},
	Heading: func(_ int, inner string) string { return element("b", noBold.Replace(inner)) },
	Quote:   func(inner string) string { return element("blockquote", noQuote.Replace(inner)) },
}

func element(tag, inner string) string {
	if inner == "" {
		return ""
	}
	return "<" + tag + ">" + inner + "</" + tag + ">"
}

// format turns Markdown into Telegram's HTML, with visible text wherever md
// has any.
func format(md string) string {
	out := connectors.Render(md, style)
	if strings.Contains(out, "<") && strings.TrimSpace(visible(out)) == "" {
		return textEscaper.Replace(strings.ToValidUTF8(md, "\uFFFD"))
	}
	return out
}

// visible returns the text that Telegram shows for our HTML.
func visible(s string) string {
	if !strings.ContainsAny(s, "<&") {
		return s
	}
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '<')
		if i < 0 {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:i])
		end := strings.IndexByte(s[i:], '>')
		if end < 0 {
			break
		}
		s = s[i+end+1:]
	}
	return html.UnescapeString(b.String())
}

// Split cuts Markdown into parts that are one message each: once formatted, at
// most 4,096 UTF-16 units with the mark of a message that is sent again.
func (c *Connector) Split(text string) []string {
	return split(text, maxPartUTF16)
}

func split(text string, limit int) []string {
	parts := connectors.Split(text, limit, connectors.UTF16Len)
	var out []string
	for _, p := range parts {
		if fits(p) || limit < 8 {
			out = append(out, p)
			continue
		}
		// Formatting made it longer, as it does with tables: smaller pieces.
		out = append(out, split(p, min(limit, connectors.UTF16Len(p))/2)...)
	}
	return out
}

// fits reports whether a part of at most maxPartUTF16 still fits once it is formatted.
func fits(part string) bool {
	if len(part) < maxPartUTF16/4 && !strings.Contains(part, "|") {
		return true // nothing but a table makes a text four times as long
	}
	return connectors.UTF16Len(visible(format(part))) <= maxPartUTF16
}

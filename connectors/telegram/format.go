package telegram

import (
	"html"
	"strings"
	"unicode/utf8"

	"github.com/claybot/claybot/connectors"
)

var (
	textEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	attrEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")
	noBold      = strings.NewReplacer("<b>", "", "</b>", "")
	noQuote     = strings.NewReplacer("<blockquote>", "", "<blockquote expandable>", "", "</blockquote>", "")
	noSpoiler   = strings.NewReplacer("<tg-spoiler>", "", "</tg-spoiler>", "")
	noUnderline = strings.NewReplacer("<u>", "", "</u>", "")
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
	Quote:   quote,

	Spoiler:   func(s string) string { return element("tg-spoiler", noSpoiler.Replace(s)) },
	Underline: func(s string) string { return element("u", noUnderline.Replace(s)) },
	WideTable: tableColumns,
}

const (
	// tableColumns is what a line of a fence shows on a phone.
	tableColumns = 36
	// Quotes above either bound are folded until the reader expands them.
	foldLines = 6
	foldRunes = 400
)

// quote renders a quote. Telegram nests none in another
// (core.telegram.org/bots/api#formatting-options, read 2026-11-28).
func quote(inner string) string {
	inner = noQuote.Replace(inner)
	if seen := visible(inner); strings.Count(seen, "\n") >= foldLines || utf8.RuneCountInString(seen) > foldRunes {
		return "<blockquote expandable>" + inner + "</blockquote>"
	}
	return element("blockquote", inner)
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
// most 4,096 UTF-16 units with the mark of a message that is sent again, and entities of
// which Telegram drops none.
func (c *Connector) Split(text string) []string {
	return connectors.SplitFitting(text, maxPartUTF16, connectors.UTF16Len, fits)
}

// fits reports whether a part of at most maxPartUTF16 still fits once it is formatted.
func fits(part string) bool {
	if len(part) < 3*maxEntities && !strings.Contains(part, "|") {
		return true // nothing but a table makes a text four times as long, or has entities of a byte
	}
	formatted := format(part)
	return connectors.UTF16Len(visible(formatted)) <= maxPartUTF16 && entities(formatted) <= maxEntities
}

// entities counts those of our HTML: a fence with a language is one.
func entities(formatted string) int {
	return strings.Count(formatted, "</") - strings.Count(formatted, "</code></pre>")
}

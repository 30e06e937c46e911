package discord

import (
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/texts"
)

// escaper escapes what is a mark in Discord's Markdown, and what names a user, a channel or a time.
var escaper = strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "~", `\~`, "`", "\\`", "|", `\|`, "<", `\<`)

// style renders Discord's Markdown, which lacks tables, images and rules.
//
// docs.discord.com/developers/reference, "Message Formatting", read 2026-11-28.
var style = connectors.Style{
	Text:      escaper.Replace,
	Strong:    func(s string) string { return around("**", s) },
	Emphasis:  func(s string) string { return around("*", s) },
	Strike:    func(s string) string { return around("~~", s) },
	Spoiler:   func(s string) string { return around("||", s) },
	Underline: func(s string) string { return around("__", s) },
	Code: func(s string) string {
		if strings.Contains(s, "`") {
			return "`` " + s + " ``"
		}
		return around("`", s)
	},
	Fence: func(lang, code string) string {
		return "```" + lang + "\n" + strings.ReplaceAll(code, "```", "`\u200b``") + "\n```"
	},
	Link: func(inner, url string) string {
		if inner == escaper.Replace(url) { // Discord links a bare address by itself
			return url
		}
		return "[" + inner + "](<" + url + ">)"
	},
	Heading: func(level int, inner string) string {
		if level > 3 {
			return around("**", inner)
		}
		return strings.Repeat("#", level) + " " + inner
	},
	Quote: func(inner string) string { return "> " + strings.ReplaceAll(inner, "\n", "\n> ") },
}

func around(mark, s string) string {
	if s == "" {
		return ""
	}
	return mark + s + mark
}

// format turns Markdown into that of Discord.
func format(md string) string {
	out := connectors.Render(md, style)
	if strings.TrimSpace(out) == "" {
		return strings.ToValidUTF8(md, "\uFFFD")
	}
	return out
}

// content is the text of o as it is sent.
func content(v texts.Voice, o claybot.Outgoing) string {
	text := format(o.Text)
	if strings.TrimSpace(o.Text) == "" {
		text = ""
	}
	if o.Resent && o.Edit == "" {
		text = strings.TrimSpace(v.Resent() + text)
	}
	return text
}

// fitting cuts unfinished text of which the formatted form would be too long for one message.
func fitting(text string) string {
	cut := text
	for n := connectors.UTF16Len(format(cut)); n > maxPartUTF16; n = connectors.UTF16Len(format(cut)) {
		parts := connectors.Split(text, connectors.UTF16Len(cut)*maxPartUTF16/n-1, connectors.UTF16Len)
		if len(parts) < 2 {
			return text // nothing of it fits: Discord refuses it
		}
		cut = parts[0]
	}
	if cut == text {
		return text
	}
	return cut + " …"
}

// Split cuts Markdown into parts that are one message each, with the mark of a message that is
// sent again.
func (c *Connector) Split(text string) []string {
	return connectors.SplitFitting(text, maxPartUTF16, connectors.UTF16Len, func(part string) bool {
		return connectors.UTF16Len(format(part)) <= maxPartUTF16
	})
}

// outsideCode returns a text of Discord's Markdown in which change has changed what is neither in a
// code span nor in a code block.
func outsideCode(text string, change func(string) string) string {
	var b strings.Builder
	from := 0 // of what is not written yet
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case text[i] == '`':
			n := len(text[i:]) - len(strings.TrimLeft(text[i:], "`"))
			if end := codeEnd(text[i+n:], n); end > 0 {
				b.WriteString(change(text[from:i]) + text[i:i+n+end])
				from = i + n + end
				n += end
			}
			i += n - 1
		}
	}
	return b.String() + change(text[from:])
}

// codeEnd returns where code ends that n backticks have begun, 0 if it does not: after as many
// backticks, or after three where it is a block.
func codeEnd(s string, n int) int {
	for i := strings.IndexByte(s, '`'); i >= 0 && i < len(s); {
		rest := strings.TrimLeft(s[i:], "`")
		marks := len(s) - i - len(rest)
		if marks == n || min(marks, n) >= 3 {
			return i + marks
		}
		next := strings.IndexByte(rest, '`')
		if next < 0 {
			break
		}
		i += marks + next
	}
	return 0
}

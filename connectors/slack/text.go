package slack

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/claybot/claybot/connectors"
)

// strip removes mentions of the bot from both ends of a raw text, and reports
// whether the text mentions the bot anywhere.
func strip(raw string, self identity) (text string, mentioned bool) {
	if self.User == "" || !strings.Contains(raw, "<@"+self.User) {
		return raw, false
	}
	for {
		s := strings.TrimSpace(raw)
		if end := strings.IndexByte(s, '>'); end >= 0 && strings.HasPrefix(s, "<") && self.meant(s[1:end]) {
			raw, mentioned = strings.TrimLeftFunc(s[end+1:], func(r rune) bool { return unicode.IsSpace(r) || r == ',' || r == ':' }), true
			continue
		}
		if start := strings.LastIndexByte(s, '<'); start >= 0 && strings.HasSuffix(s, ">") && self.meant(s[start+1:len(s)-1]) {
			raw, mentioned = strings.TrimRightFunc(s[:start], unicode.IsSpace), true
			continue
		}
		break
	}
	for rest := raw; !mentioned; {
		start := strings.IndexByte(rest, '<')
		if start < 0 {
			break
		}
		rest = rest[start+1:]
		if end := strings.IndexByte(rest, '>'); end >= 0 {
			mentioned = self.meant(rest[:end])
		}
	}
	return raw, mentioned
}

// meant reports whether inside, the text between < and >, mentions the bot.
func (i identity) meant(inside string) bool {
	id, _, _ := strings.Cut(inside, "|")
	return len(id) > 1 && id[0] == '@' && id[1:] == i.User
}

// plain decodes what Slack writes as <…> and as entities. Everything else,
// line breaks too, stays as it was typed.
func plain(raw string, self identity) string {
	if !strings.ContainsAny(raw, "<&") {
		return raw
	}
	var b strings.Builder
	for raw != "" {
		start := strings.IndexByte(raw, '<')
		if start < 0 {
			break
		}
		end := strings.IndexAny(raw[start+1:], "<>")
		if end < 0 {
			break
		}
		end += start + 1
		b.WriteString(unescape(raw[:start]))
		if raw[end] == '<' { // not closed: no reference
			b.WriteString(unescape(raw[start:end]))
			raw = raw[end:]
			continue
		}
		b.WriteString(unescape(reference(raw[start+1:end], self)))
		raw = raw[end+1:]
	}
	b.WriteString(unescape(raw))
	return b.String()
}

// reference returns the readable form of inside, the text between < and >.
func reference(inside string, self identity) string {
	target, label, labelled := strings.Cut(inside, "|")
	if target == "" {
		return "<" + inside + ">"
	}
	switch target[0] {
	case '@':
		switch {
		case target[1:] == self.User && self.Name != "":
			return "@" + self.Name
		case labelled && label != "":
			return "@" + strings.TrimPrefix(label, "@")
		}
		return target
	case '#':
		if labelled && label != "" {
			return "#" + strings.TrimPrefix(label, "#")
		}
		return target
	case '!':
		if labelled && label != "" { // a group, a date
			return label
		}
		return "@" + target[1:] // here, channel, everyone
	}
	if !labelled || label == target || label == "" {
		return target
	}
	if address, ok := strings.CutPrefix(target, "mailto:"); ok && address == label {
		return label
	}
	if _, short, ok := strings.Cut(target, "://"); ok && strings.TrimSuffix(short, "/") == label {
		return target
	}
	return label + " (" + target + ")"
}

// unescape decodes the three entities that Slack uses, in one pass.
func unescape(s string) string {
	if !strings.Contains(s, "&") {
		return s
	}
	return strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(s)
}

// escape escapes text so that Slack shows it unchanged. It also disables
// <!channel> and similar references.
func escape(s string) string {
	if !strings.ContainsAny(s, "&<>") {
		return s
	}
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}

// escapedChars is the length of escape(s) in characters.
func escapedChars(s string) int {
	return utf8.RuneCountInString(s) + 4*strings.Count(s, "&") + 3*strings.Count(s, "<") + 3*strings.Count(s, ">")
}

// Slack takes a mark only at the border of a word: for a*b*c it shows the asterisks. A zero-width space is such
// a border that no reader sees. Render does not know what stands around a mark, so marks are written with these
// characters of private use, which bounded replaces.
const (
	opens, closes = "\uE000", "\uE001"
	zeroWidth     = "\u200b"
)

var noBounds = strings.NewReplacer(opens, "\uFFFD", closes, "\uFFFD")

// bounded gives the marks of a text zero-width spaces where they need them: beside letters, digits and
// whatever else is neither white space nor punctuation of ASCII, and between two marked texts.
func bounded(text string) string {
	if !strings.Contains(text, opens) {
		return text
	}
	all := []rune(text)
	var b strings.Builder
	for i, r := range all {
		switch string(r) {
		case opens:
			if i > 0 && !border(all[i-1]) && string(all[i-1]) != closes {
				b.WriteString(zeroWidth)
			}
		case closes:
			if i+1 < len(all) && !border(all[i+1]) {
				b.WriteString(zeroWidth)
			}
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// border reports whether Slack takes a mark beside a character.
func border(r rune) bool {
	return unicode.IsSpace(r) || r < utf8.RuneSelf && !unicode.IsLetter(r) && !unicode.IsDigit(r)
}

// mrkdwn converts Markdown to Slack's mrkdwn.
func mrkdwn(md string) string {
	return bounded(connectors.Render(noBounds.Replace(md), connectors.Style{
		Text:     escape,
		Strong:   around("*"),
		Emphasis: around("_"),
		Strike:   around("~"),
		Code:     func(s string) string { return opens + "`" + escape(strings.ReplaceAll(s, "`", "ˋ")) + "`" + closes },
		Fence: func(_, code string) string {
			return "```\n" + escape(strings.ReplaceAll(code, "```", "``\u200b`")) + "\n```"
		},
		Link: anchor,
		Heading: func(_ int, inner string) string {
			if strings.Contains(inner, "*") { // bold inside bold ends it
				return inner
			}
			return around("*")(inner)
		},
		Quote: func(inner string) string { return "> " + strings.ReplaceAll(inner, "\n", "\n> ") },
	}))
}

// around returns a function that wraps text in mark, unless it begins or ends
// with white space, where Slack would show the mark itself. The result is for bounded.
func around(mark string) func(string) string {
	return func(inner string) string {
		core := strings.TrimSpace(inner)
		if core == "" {
			return inner
		}
		before, after, _ := strings.Cut(inner, core)
		return before + opens + mark + core + mark + closes + after
	}
}

// anchor writes <url|text>. The text cannot hold a line break, the address none
// of the characters that end it.
func anchor(inner, url string) string {
	url = strings.NewReplacer("&", "&amp;", "<", "%3C", ">", "%3E", "|", "%7C").Replace(url)
	inner = strings.Join(strings.Fields(strings.NewReplacer("<", "", ">", "", "|", "¦").Replace(inner)), " ")
	if inner == "" || inner == url {
		return "<" + url + ">"
	}
	return "<" + url + "|" + inner + ">"
}

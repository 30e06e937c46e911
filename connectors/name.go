package connectors

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxNameRunes is the longest name of a person that is kept.
const maxNameRunes = 64

// PersonName makes the name of a person safe to show: OneLine with at most 64
// runes.
func PersonName(s string) string { return OneLine(s, maxNameRunes) }

// OneLine converts untrusted text to one line of valid UTF-8, of at most limit
// runes, that cannot change how the text around it looks: white space and
// control characters become single spaces, and invisible ones, those that turn
// the direction of writing among them, are left out. The joiners of emoji and
// of some scripts stay. What is cut off leaves "…".
func OneLine(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r) || unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp):
			return ' '
		case r == zeroWidthJoiner || r == zeroWidthNonJoiner:
			return r
		case r == utf8.RuneError || unicode.In(r, unicode.Cf):
			return -1
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	end := 0
	for range limit - 1 {
		_, size := utf8.DecodeRuneInString(s[end:])
		end += size
	}
	return strings.TrimRight(s[:end], " ") + "…"
}

// Literal is OneLine for a place in Markdown: no character of s is a mark there, so that the
// reader sees the name of a file, a task or a person as it is, and no link under another text.
func Literal(s string, limit int) string { return literal.Replace(OneLine(s, limit)) }

// Code is OneLine as code in Markdown, for what a stranger chose: it does not look like a part
// of the text around it, and no client makes a link or a command of it. It is empty if there is
// nothing to show.
func Code(s string, limit int) string {
	if s = strings.ReplaceAll(OneLine(s, limit), "`", "'"); s == "" { // ends no code
		return ""
	}
	return "`" + s + "`"
}

// literal escapes what can be a mark within a line of Markdown.
var literal = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "~", `\~`, "[", `\[`, "]", `\]`, "<", `\<`, "&", `\&`,
)

const zeroWidthNonJoiner = '\u200c'

// Capital returns s with its first letter in upper case.
func Capital(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	if size == 0 {
		return s
	}
	return string(unicode.ToUpper(first)) + s[size:]
}

// InBrackets is OneLine for a place between square brackets.
func InBrackets(s string, limit int) string { return OneLine(noBrackets.Replace(s), limit) }

// JoinLines joins the lines that are not empty with newlines.
func JoinLines(lines ...string) string {
	var b strings.Builder
	for _, l := range lines {
		if l == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(l)
	}
	return b.String()
}

// Cut cuts s to n characters.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := range s {
		if n == 0 {
			return s[:i] + "…"
		}
		n--
	}
	return s
}

// ForwardMark stands above a message that its sender forwarded; empty for any other.
func ForwardMark(forwarded bool) string {
	if forwarded {
		return "[forwarded message]"
	}
	return ""
}

package prompts

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// maxNesting bounds how deep brackets and tags stand in each other, and with
// that the stack of the code that walks them.
const maxNesting = 64

// The kinds of tokens beside signs, keywords and the marks of tags, which are their own.
const (
	data    = "data" // what stands between tags, without the blanks that these take away
	word    = "name"
	quoted  = "text"
	whole   = "whole number"
	decimal = "decimal number"
	ended   = "end"
)

type token struct {
	kind, text string
	line       int
}

type lexer struct {
	input string // in UTF-8; lines end with \n
	pos   int
	list  []token
	open  []byte // brackets that are to be closed, innermost last
	trim  bool   // the last tag takes away the blanks behind it

	line, counted int // line of the byte counted
}

// lex reads a whole text. It panics with an *Error.
func lex(input string) []token {
	l := &lexer{input: input, line: 1}
	for l.pos < len(input) {
		begin := l.pos
		for l.pos < len(input) && !tagged(input[l.pos:min(l.pos+2, len(input))]) {
			l.pos++
			if next := strings.IndexByte(input[l.pos:], '{'); next >= 0 {
				l.pos += next
			} else {
				l.pos = len(input)
			}
		}
		l.data(begin)
		switch {
		case l.at("{{"):
			l.expression("{{", "}}", "-")
		case l.at("{%"):
			l.tag()
		case l.at("{#"):
			l.comment()
		}
	}
	l.emit(ended, len(input), "")
	return l.list
}

// data emits what stands from begin up to here, before a tag or the end.
func (l *lexer) data(begin int) {
	text := l.input[begin:l.pos]
	if l.trim {
		text = strings.TrimLeft(text, " \n\t")
	}
	if rest := l.input[l.pos:]; len(rest) > 2 && rest[2] == '-' {
		text = strings.TrimRight(text, " \n\t")
	}
	if text != "" {
		l.emit(data, begin, text)
	}
}

func (l *lexer) at(s string) bool { return strings.HasPrefix(l.input[l.pos:], s) }

// emit adds a token that begins at a byte which is not before the last one.
func (l *lexer) emit(kind string, at int, text string) {
	l.list = append(l.list, token{kind, text, l.lineOf(at)})
}

func (l *lexer) lineOf(at int) int {
	l.line += strings.Count(l.input[l.counted:at], "\n")
	l.counted = at
	return l.line
}

func (l *lexer) fail(at int, format string, args ...any) {
	stop(l.lineOf(max(at, l.counted)), format, args...)
}

func (l *lexer) control(signs string) {
	if l.pos < len(l.input) && strings.IndexByte(signs, l.input[l.pos]) >= 0 {
		l.pos++
	}
}

func (l *lexer) comment() {
	begin := l.pos
	l.pos += len("{#")
	l.control("-+")
	length := strings.Index(l.input[l.pos:], "#}")
	if length < 0 {
		l.fail(begin, "a comment {# has no end #}")
	}
	l.pos += length
	l.trim = length > 0 && l.input[l.pos-1] == '-'
	l.pos += len("#}")
}

var endRaw = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{%[-+]?\s*endraw\s*([-+]?)%\}`) })

func (l *lexer) tag() {
	first, begin := len(l.list), l.pos
	l.expression("{%", "%}", "-+")
	words := l.list[first:]
	if words[1].kind != word || words[1].text != "raw" {
		return
	}
	if len(words) > 3 {
		l.fail(begin, "{%% raw %%} takes nothing")
	}
	l.list = l.list[:first]
	end := endRaw().FindStringSubmatchIndex(l.input[l.pos:])
	if end == nil {
		l.fail(begin, "{%% raw %%} has no {%% endraw %%}")
	}
	from := l.pos
	l.pos += end[0]
	l.data(from)
	l.trim = l.input[from+end[2]:from+end[3]] == "-"
	l.pos = from + end[1]
}

// expression reads from begin to end.
func (l *lexer) expression(begin, end, signs string) {
	at := l.pos
	l.emit(begin, at, begin)
	l.pos += len(begin)
	l.control(signs)
	for {
		rest := l.input[l.pos:]
		blank := len(rest) - len(strings.TrimLeft(rest, " \t\n"))
		l.pos += blank
		rest = rest[blank:]
		closing := len(l.open) > 0 && l.open[len(l.open)-1] == '}' && end == "}}"
		switch {
		case rest == "":
			l.fail(at, "%s has no %s", begin, end)
		case !closing && strings.HasPrefix(rest, end):
			l.end(end, 0)
			return
		case strings.IndexByte(signs, rest[0]) >= 0 && strings.HasPrefix(rest[1:], end):
			l.end(end, 1)
			return
		}
		l.token(rest)
	}
}

func (l *lexer) end(end string, sign int) {
	if len(l.open) > 0 {
		l.fail(l.pos, "a bracket is not closed: %c is missing", l.open[len(l.open)-1])
	}
	l.trim = sign > 0 && l.input[l.pos] == '-'
	l.emit(end, l.pos, end)
	l.pos += sign + len(end)
}

// token reads the token that rest begins with.
func (l *lexer) token(rest string) {
	c, _ := utf8.DecodeRuneInString(rest)
	switch {
	case c == '_' || unicode.IsLetter(c):
		l.name(rest)
	case c >= '0' && c <= '9':
		l.number(rest)
	case c == '"' || c == '\'':
		l.quoted(rest)
	default:
		l.sign(rest, c)
	}
}

var keywords = []string{"in", "is", "and", "or", "not"}

func (l *lexer) dotted() bool { return l.list[len(l.list)-1].kind == "." }

func (l *lexer) name(rest string) {
	length := strings.IndexFunc(rest, func(c rune) bool { return c != '_' && !unicode.IsLetter(c) && !unicode.IsDigit(c) })
	if length < 0 {
		length = len(rest)
	}
	kind := word
	if slices.Contains(keywords, rest[:length]) && !l.dotted() {
		kind = rest[:length]
	}
	l.emit(kind, l.pos, rest[:length])
	l.pos += length
}

var (
	wholeNumber = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+|0|[1-9](_?[0-9])*)`)
	})
	floatNumber = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[0-9](_?[0-9])*(\.[0-9](_?[0-9])*([eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+)`)
	})
)

func (l *lexer) number(rest string) {
	kind, value := decimal, floatNumber().FindString(rest)
	if value == "" || l.dotted() {
		kind, value = whole, wholeNumber().FindString(rest)
	}
	next, _ := utf8.DecodeRuneInString(rest[len(value):])
	if value == "" || next == '_' || unicode.IsLetter(next) || unicode.IsDigit(next) {
		l.fail(l.pos, "a number is not written as numbers are")
	}
	l.emit(kind, l.pos, value)
	l.pos += len(value)
}

var escapes = map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', '\\': '\\', '\'': '\'', '"': '"'}

// quoted reads a text in quotes. A backslash before anything but what escapes
// knows is one.
func (l *lexer) quoted(rest string) {
	var b strings.Builder
	for i := 1; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == rest[0]:
			l.emit(quoted, l.pos, b.String())
			l.pos += i + 1
			return
		case c == '\\' && i+1 < len(rest) && escapes[rest[i+1]] != 0:
			i++
			b.WriteByte(escapes[rest[i]])
		default:
			b.WriteByte(c)
		}
	}
	l.fail(l.pos, "a text in quotes has no end")
}

var signs = []string{
	"//", "**", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "<", ">", "=", "|", ",", ":", ".", "(", "[", "{", ")", "]", "}",
}

var brackets = map[byte]byte{'(': ')', '[': ']', '{': '}'}

func (l *lexer) sign(rest string, c rune) {
	for _, s := range signs {
		if strings.HasPrefix(rest, s) {
			l.bracket(rest[0])
			l.emit(s, l.pos, s)
			l.pos += len(s)
			return
		}
	}
	hint := ""
	if c == '!' {
		hint = "; write not"
	}
	l.fail(l.pos, "the character %s has no meaning here%s", fmt.Sprintf("%q", c), hint)
}

func (l *lexer) bracket(c byte) {
	last := len(l.open) - 1
	switch {
	case brackets[c] != 0:
		if len(l.open) == maxNesting {
			l.fail(l.pos, "brackets are nested too deeply")
		}
		l.open = append(l.open, brackets[c])
	case c != ')' && c != ']' && c != '}':
	case last < 0:
		l.fail(l.pos, "a bracket is closed that was never opened: %c", c)
	case l.open[last] != c:
		l.fail(l.pos, "brackets are not closed in the order in which they were opened: %c is missing before %c", l.open[last], c)
	default:
		l.open = l.open[:last]
	}
}

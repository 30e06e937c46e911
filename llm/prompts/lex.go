package prompts

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/nikolalohinski/gonja/v2/tokens"
)

// maxNesting bounds how deep brackets and tags stand in each other, and with
// that the stack of whoever walks them.
const maxNesting = 64

// A lexer makes the tokens of a template for the parser of gonja. That of gonja
// itself drops characters that it does not know, line breaks among them, and
// never comes to an end for some texts.
type lexer struct {
	text string // in UTF-8; lines end with \n
	pos  int
	list []*tokens.Token
	open []byte // brackets that are to be closed, innermost last

	line, counted int // line of the byte counted
}

// lex reads a whole text. It panics with an *Error.
func lex(text string) []*tokens.Token {
	l := &lexer{text: text, line: 1}
	for l.pos < len(text) {
		begin := l.pos
		for l.pos < len(text) && !tagged(text[l.pos:min(l.pos+2, len(text))]) {
			l.pos++
			if next := strings.IndexByte(text[l.pos:], '{'); next >= 0 {
				l.pos += next
			} else {
				l.pos = len(text)
			}
		}
		if l.pos > begin {
			l.emit(tokens.Data, begin, text[begin:l.pos])
		}
		switch {
		case l.at("{{"):
			l.expression(tokens.VariableBegin, "{{", tokens.VariableEnd, "}}", "-")
		case l.at("{%"):
			l.tag()
		case l.at("{#"):
			l.comment()
		}
	}
	l.emit(tokens.EOF, len(text), "")
	return l.list
}

func (l *lexer) at(s string) bool { return strings.HasPrefix(l.text[l.pos:], s) }

// emit adds a token that begins at a byte which is not before the last one.
func (l *lexer) emit(kind tokens.Type, at int, value string) {
	l.list = append(l.list, &tokens.Token{Type: kind, Val: value, Pos: at, Line: l.lineOf(at)})
}

func (l *lexer) lineOf(at int) int {
	l.line += strings.Count(l.text[l.counted:at], "\n")
	l.counted = at
	return l.line
}

func (l *lexer) fail(at int, format string, args ...any) {
	stop(l.lineOf(max(at, l.counted)), format, args...)
}

// control takes one of the signs that a tag may have for the blanks around it.
func (l *lexer) control(signs string) {
	if l.pos < len(l.text) && strings.IndexByte(signs, l.text[l.pos]) >= 0 {
		l.pos++
	}
}

func (l *lexer) comment() {
	begin := l.pos
	l.pos += len("{#")
	l.control("-+")
	l.emit(tokens.CommentBegin, begin, l.text[begin:l.pos])
	length := strings.Index(l.text[l.pos:], "#}")
	if length < 0 {
		l.fail(begin, "a comment {# has no end #}")
	}
	end := l.pos + length
	if length > 0 && strings.IndexByte("-+", l.text[end-1]) >= 0 {
		end--
	}
	if end > l.pos {
		l.emit(tokens.Data, l.pos, l.text[l.pos:end])
	}
	l.pos += length + len("#}")
	l.emit(tokens.CommentEnd, end, l.text[end:l.pos])
}

var endRaw = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{%[-+]?\s*endraw\s*[-+]?%\}`) })

// tag reads {% … %}, and after raw what is not to be read.
func (l *lexer) tag() {
	first, begin := len(l.list), l.pos
	l.expression(tokens.BlockBegin, "{%", tokens.BlockEnd, "%}", "-+")
	if l.list[first+1].Type != tokens.Name || l.list[first+1].Val != "raw" {
		return
	}
	end := endRaw().FindStringIndex(l.text[l.pos:])
	if end == nil {
		l.fail(begin, "{%% raw %%} has no {%% endraw %%}")
	}
	if end[0] > 0 {
		l.emit(tokens.Data, l.pos, l.text[l.pos:l.pos+end[0]])
	}
	l.pos += end[0]
}

// expression reads from begin to end.
func (l *lexer) expression(open tokens.Type, begin string, shut tokens.Type, end, signs string) {
	at := l.pos
	l.pos += len(begin)
	l.control(signs)
	l.emit(open, at, l.text[at:l.pos])
	for {
		rest := l.text[l.pos:]
		blank := len(rest) - len(strings.TrimLeft(rest, " \t\n"))
		l.pos += blank
		rest = rest[blank:]
		closing := len(l.open) > 0 && l.open[len(l.open)-1] == '}' && end == "}}"
		switch {
		case rest == "":
			l.fail(at, "%s has no %s", begin, end)
		case !closing && strings.HasPrefix(rest, end):
			l.end(shut, len(end))
			return
		case strings.IndexByte(signs, rest[0]) >= 0 && strings.HasPrefix(rest[1:], end):
			l.end(shut, 1+len(end))
			return
		}
		l.token(rest)
	}
}

func (l *lexer) end(shut tokens.Type, length int) {
	if len(l.open) > 0 {
		l.fail(l.pos, "a bracket is not closed: %c is missing", l.open[len(l.open)-1])
	}
	l.emit(shut, l.pos, l.text[l.pos:l.pos+length])
	l.pos += length
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

var keywords = map[string]tokens.Type{"in": tokens.In, "is": tokens.Is, "and": tokens.And, "or": tokens.Or, "not": tokens.Not}

// dotted reports that an attribute is next.
func (l *lexer) dotted() bool { return l.list[len(l.list)-1].Type == tokens.Dot }

func (l *lexer) name(rest string) {
	length := strings.IndexFunc(rest, func(c rune) bool { return c != '_' && !unicode.IsLetter(c) && !unicode.IsDigit(c) })
	if length < 0 {
		length = len(rest)
	}
	kind, known := keywords[rest[:length]]
	if !known || l.dotted() {
		kind = tokens.Name
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
	kind, value := tokens.Float, floatNumber().FindString(rest)
	if value == "" || l.dotted() {
		kind, value = tokens.Integer, wholeNumber().FindString(rest)
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
			// The parser reads escapes, and wants each backslash twice.
			l.emit(tokens.String, l.pos, strings.ReplaceAll(b.String(), `\`, `\\`))
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

// signs are the tokens that are no names, numbers and texts; longer ones first.
var signs = []struct {
	text string
	kind tokens.Type
}{
	{"//", tokens.FloorDivision},
	{"**", tokens.Power},
	{"==", tokens.Equals},
	{"!=", tokens.Ne},
	{"<=", tokens.LowerThanOrEqual},
	{">=", tokens.GreaterThanOrEqual},
	{"+", tokens.Addition},
	{"-", tokens.Subtraction},
	{"*", tokens.Multiply},
	{"/", tokens.Division},
	{"%", tokens.Modulo},
	{"~", tokens.Tilde},
	{"<", tokens.LowerThan},
	{">", tokens.GreaterThan},
	{"=", tokens.Assign},
	{"|", tokens.Pipe},
	{",", tokens.Comma},
	{":", tokens.Colon},
	{".", tokens.Dot},
	{"(", tokens.LeftParenthesis},
	{"[", tokens.LeftBracket},
	{"{", tokens.LeftBrace},
	{")", tokens.RightParenthesis},
	{"]", tokens.RightBracket},
	{"}", tokens.RightBrace},
}

var brackets = map[byte]byte{'(': ')', '[': ']', '{': '}'}

func (l *lexer) sign(rest string, c rune) {
	for _, s := range signs {
		if !strings.HasPrefix(rest, s.text) {
			continue
		}
		l.bracket(rest[0])
		l.emit(s.kind, l.pos, s.text)
		l.pos += len(s.text)
		return
	}
	hint := ""
	if c == '!' {
		hint = "; write not"
	}
	l.fail(l.pos, "the character %s has no meaning here%s", fmt.Sprintf("%q", c), hint)
}

// bracket keeps account of brackets.
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

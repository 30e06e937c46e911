package imports

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/claybot/claybot/configs"
)

// maxDepth bounds the nesting of a text.
const maxDepth = 100

// ParseJSON5 reads JSON5, of which JSON is a part. Numbers are float64, as in encoding/json; of keys
// that stand twice, the last one counts. The error is a *configs.LineError, which quotes nothing of the
// text but single characters. It never panics.
func ParseJSON5(text []byte) (Value, error) {
	if !utf8.Valid(text) {
		return Value{}, &configs.LineError{Line: 1, Text: "it is not UTF-8"}
	}
	p := &parser{text: strings.TrimPrefix(string(text), "\ufeff")}
	v, err := p.value(0)
	if err == nil {
		err = p.space()
	}
	if err == nil && p.at < len(p.text) {
		err = p.unexpected("the end")
	}
	if err != nil {
		return Value{}, err
	}
	return Value{v}, nil
}

type parser struct {
	text string
	at   int
}

func (p *parser) fail(format string, args ...any) error {
	return &configs.LineError{Line: 1 + strings.Count(p.text[:min(p.at, len(p.text))], "\n"), Text: fmt.Sprintf(format, args...)}
}

func (p *parser) unexpected(want string) error {
	if p.at >= len(p.text) {
		return p.fail("the text ends, want %s", want)
	}
	r, _ := utf8.DecodeRuneInString(p.text[p.at:])
	return p.fail("found %q, want %s", r, want)
}

// space skips white space and comments.
func (p *parser) space() error {
	for p.at < len(p.text) {
		rest := p.text[p.at:]
		r, size := utf8.DecodeRuneInString(rest)
		switch {
		case unicode.IsSpace(r) || r == '\ufeff':
			p.at += size
		case strings.HasPrefix(rest, "//"):
			end := strings.IndexByte(rest, '\n')
			if end < 0 {
				end = len(rest)
			}
			p.at += end
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 {
				return p.fail("a comment has no end")
			}
			p.at += end + 4
		default:
			return nil
		}
	}
	return nil
}

// peek returns the next byte behind white space; 0 at the end.
func (p *parser) peek() (byte, error) {
	if err := p.space(); err != nil || p.at >= len(p.text) {
		return 0, err
	}
	return p.text[p.at], nil
}

func (p *parser) value(depth int) (any, error) {
	c, err := p.peek()
	switch {
	case err != nil:
		return nil, err
	case depth > maxDepth:
		return nil, p.fail("it is nested deeper than %d levels", maxDepth)
	case c == '{':
		return p.object(depth)
	case c == '[':
		return p.array(depth)
	case c == '"' || c == '\'':
		return p.str()
	}
	word := p.word()
	switch word {
	case "":
		return nil, p.unexpected("a value")
	case "null":
		return nil, nil //nolint:nilnil // it is the value
	case "true", "false":
		return word == "true", nil
	}
	n, ok := number(word)
	if !ok {
		p.at -= len(word)
		return nil, p.unexpected("a value")
	}
	return n, nil
}

// word takes what a number or a name may consist of.
func (p *parser) word() string {
	from := p.at
	for p.at < len(p.text) {
		r, size := utf8.DecodeRuneInString(p.text[p.at:])
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_$+-.", r) {
			break
		}
		p.at += size
	}
	return p.text[from:p.at]
}

func number(word string) (float64, bool) {
	rest, negative := strings.CutPrefix(word, "-")
	if !negative {
		rest = strings.TrimPrefix(rest, "+")
	}
	if strings.HasPrefix(rest, "-") || strings.HasPrefix(rest, "+") {
		return 0, false
	}
	var n float64
	switch hex, isHex := strings.CutPrefix(strings.ToLower(rest), "0x"); {
	case rest == "Infinity":
		n = math.Inf(1)
	case rest == "NaN":
		n = math.NaN()
	case isHex:
		u, err := strconv.ParseUint(hex, 16, 64)
		if err != nil {
			return 0, false
		}
		n = float64(u)
	case strings.Trim(rest, "0123456789.eE+-") != "" || rest == "":
		return 0, false
	default:
		f, err := strconv.ParseFloat(rest, 64)
		if err != nil {
			return 0, false
		}
		n = f
	}
	if negative {
		n = -n
	}
	return n, true
}

func (p *parser) object(depth int) (any, error) {
	all := make(map[string]any)
	p.at++
	for {
		c, err := p.peek()
		if err != nil {
			return nil, err
		}
		if c == '}' {
			p.at++
			return all, nil
		}
		key, err := p.key(c)
		if err != nil {
			return nil, err
		}
		if c, err = p.peek(); err == nil && c != ':' {
			err = p.unexpected("a colon")
		}
		if err != nil {
			return nil, err
		}
		p.at++
		if all[key], err = p.value(depth + 1); err != nil {
			return nil, err
		}
		if err := p.separator('}', "a comma or }"); err != nil {
			return nil, err
		}
	}
}

func (p *parser) key(c byte) (string, error) {
	if c == '"' || c == '\'' {
		return p.str()
	}
	from := p.at
	word := p.word()
	if word == "" || strings.ContainsAny(word, "+-.") || unicode.IsDigit(rune(word[0])) {
		p.at = from
		return "", p.unexpected("a key")
	}
	return word, nil
}

// separator takes a comma, unless the end is next.
func (p *parser) separator(end byte, want string) error {
	c, err := p.peek()
	switch {
	case err != nil:
		return err
	case c == ',':
		p.at++
	case c != end:
		return p.unexpected(want)
	}
	return nil
}

func (p *parser) array(depth int) (any, error) {
	all := []any{}
	p.at++
	for {
		c, err := p.peek()
		if err != nil {
			return nil, err
		}
		if c == ']' {
			p.at++
			return all, nil
		}
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
		if err := p.separator(']', "a comma or ]"); err != nil {
			return nil, err
		}
	}
}

// str reads a string in either kind of quotes.
func (p *parser) str() (string, error) {
	quote := p.text[p.at]
	p.at++
	var b strings.Builder
	for p.at < len(p.text) {
		c := p.text[p.at]
		switch {
		case c == quote:
			p.at++
			return b.String(), nil
		case c == '\n':
			return "", p.fail("a string has no end")
		case c != '\\':
			b.WriteByte(c)
			p.at++
		default:
			if err := p.escape(&b); err != nil {
				return "", err
			}
		}
	}
	return "", p.fail("a string has no end")
}

// escapes are the characters that stand for others behind a backslash.
var escapes = map[byte]string{'n': "\n", 't': "\t", 'r': "\r", 'b': "\b", 'f': "\f", 'v': "\v", '0': "\x00", '\n': ""}

func (p *parser) escape(b *strings.Builder) error {
	p.at++
	if strings.HasPrefix(p.text[p.at:], "\r\n") { // a line that goes on
		p.at += 2
		return nil
	}
	if p.at >= len(p.text) {
		return p.fail("a string has no end")
	}
	c := p.text[p.at]
	digits := map[byte]int{'x': 2, 'u': 4}[c]
	if digits == 0 {
		text, ok := escapes[c]
		if !ok {
			r, size := utf8.DecodeRuneInString(p.text[p.at:])
			b.WriteRune(r)
			p.at += size
			return nil
		}
		b.WriteString(text)
		p.at++
		return nil
	}
	p.at++
	r, ok := p.hex(digits)
	if low := rune(0); ok && c == 'u' && r >= 0xd800 && r < 0xdc00 && strings.HasPrefix(p.text[p.at:], `\u`) {
		p.at += 2
		if low, ok = p.hex(digits); ok {
			r = (r-0xd800)<<10 + (low - 0xdc00) + 0x10000
		}
	}
	if !ok {
		return p.fail("an escape in a string is not hexadecimal")
	}
	b.WriteRune(r) // half a pair is the replacement character
	return nil
}

func (p *parser) hex(digits int) (rune, bool) {
	if len(p.text)-p.at < digits {
		return 0, false
	}
	n, err := strconv.ParseUint(p.text[p.at:p.at+digits], 16, 32)
	p.at += digits
	return rune(n), err == nil //nolint:gosec // at most four digits
}

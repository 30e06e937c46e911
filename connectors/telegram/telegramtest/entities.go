package telegramtest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// An Entity marks a part of a text; offset and length count UTF-16 units.
type Entity struct {
	Type     string `json:"type"`
	Offset   int    `json:"offset"`
	Length   int    `json:"length"`
	URL      string `json:"url,omitempty"`
	Language string `json:"language,omitempty"`
}

// kinds are the tags that Telegram's HTML has, and what they mean.
var kinds = map[string]string{
	"a": "text_link", "b": "bold", "strong": "bold", "i": "italic", "em": "italic", "s": "strikethrough",
	"strike": "strikethrough", "del": "strikethrough", "u": "underline", "ins": "underline", "code": "code", "pre": "pre",
	"blockquote": "blockquote", "span": "spoiler", "tg-spoiler": "spoiler", "tg-emoji": "custom_emoji",
}

// A tag is an open element.
type tag struct {
	name     string
	argument string
	offset   int // in UTF-16 units
	at       int // in bytes of the text
}

// parser reads Telegram's HTML, with the rules and the errors of the Bot API
// server.
type htmlParser struct {
	in       string
	i        int
	out      strings.Builder
	units    int
	open     []tag
	entities []Entity
}

// ParseHTML returns the text that people see and its entities. Errors are
// worded as Telegram's, behind "can't parse entities: ".
func ParseHTML(s string) (string, []Entity, error) {
	p := htmlParser{in: s}
	for p.i < len(p.in) {
		var err error
		switch {
		case p.in[p.i] == '&':
			p.reference()
		case p.in[p.i] != '<':
			p.character()
		case strings.HasPrefix(p.in[p.i:], "</"):
			err = p.end()
		default:
			err = p.start()
		}
		if err != nil {
			return "", nil, err
		}
	}
	if n := len(p.open); n > 0 {
		return "", nil, fmt.Errorf("can't find end tag corresponding to start tag %q", p.open[n-1].name)
	}
	slices.SortStableFunc(p.entities, func(a, b Entity) int { return a.Offset - b.Offset })
	return p.out.String(), p.entities, nil
}

func (p *htmlParser) write(r rune) {
	p.out.WriteRune(r)
	p.units++
	if r > 0xffff {
		p.units++
	}
}

func (p *htmlParser) character() {
	r, size := utf8.DecodeRuneInString(p.in[p.i:])
	p.i += size
	p.write(r)
}

// reference reads a character reference; what is none stands for itself.
func (p *htmlParser) reference() {
	r, size := decodeReference(p.in[p.i:])
	if size == 0 {
		p.character()
		return
	}
	p.i += size
	p.write(r)
}

func decodeReference(s string) (rune, int) {
	end := 1
	if strings.HasPrefix(s, "&#") {
		end = 2
	}
	from := end
	for end < len(s) && (s[end] >= '0' && s[end] <= '9' || s[end]|0x20 >= 'a' && s[end]|0x20 <= 'z') {
		end++
	}
	body := s[from:end]
	if end < len(s) && s[end] == ';' {
		end++
	}
	if from == 2 {
		base, digits := 10, body
		if strings.HasPrefix(digits, "x") {
			base, digits = 16, digits[1:]
		}
		n, err := strconv.ParseUint(digits, base, 32)
		if err != nil || n == 0 || n > utf8.MaxRune || !utf8.ValidRune(rune(n)) {
			return 0, 0
		}
		return rune(n), end
	}
	switch body {
	case "lt":
		return '<', end
	case "gt":
		return '>', end
	case "amp":
		return '&', end
	case "quot":
		return '"', end
	}
	return 0, 0
}

func space(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

func (p *htmlParser) start() error {
	begin := p.i
	p.i++
	for p.i < len(p.in) && !space(p.in[p.i]) && p.in[p.i] != '>' {
		p.i++
	}
	if p.i == len(p.in) {
		return fmt.Errorf("unclosed start tag at byte offset %d", begin)
	}
	t := tag{name: lower(p.in[begin+1 : p.i]), offset: p.units, at: p.out.Len()}
	if kinds[t.name] == "" {
		return fmt.Errorf("unsupported start tag %q at byte offset %d", t.name, begin)
	}
	for p.in[p.i] != '>' {
		name, value, err := p.attribute(t.name, begin)
		if err != nil {
			return err
		}
		switch {
		case t.name == "a" && name == "href":
			t.argument = value
		case t.name == "code" && name == "class" && strings.HasPrefix(value, "language-"):
			t.argument = strings.TrimPrefix(value, "language-")
		case t.name == "blockquote" && name == "expandable":
			t.argument = name
		case t.name == "span" && name == "class" && value == "tg-spoiler":
			t.argument = value
		}
	}
	if t.name == "span" && t.argument == "" {
		return fmt.Errorf("tag \"span\" must have class \"tg-spoiler\" at byte offset %d", begin)
	}
	p.i++
	p.open = append(p.open, t)
	return nil
}

// attribute reads one attribute, or nothing where the tag ends.
func (p *htmlParser) attribute(tag string, begin int) (name, value string, err error) {
	unclosed := fmt.Errorf("unclosed start tag %q at byte offset %d", tag, begin)
	p.skipSpace()
	if p.i == len(p.in) {
		return "", "", unclosed
	}
	if p.in[p.i] == '>' {
		return "", "", nil
	}
	from := p.i
	for p.i < len(p.in) && !space(p.in[p.i]) && !strings.ContainsRune(`=>/"'`, rune(p.in[p.i])) {
		p.i++
	}
	if name = lower(p.in[from:p.i]); name == "" {
		return "", "", fmt.Errorf("empty attribute name in the tag %q at byte offset %d", tag, begin)
	}
	p.skipSpace()
	if p.i == len(p.in) {
		return "", "", unclosed
	}
	if p.in[p.i] != '=' { // an attribute without a value
		return name, "", nil
	}
	p.i++
	p.skipSpace()
	if p.i == len(p.in) {
		return "", "", unclosed
	}
	quote := p.in[p.i]
	if quote != '"' && quote != '\'' {
		from = p.i
		for p.i < len(p.in) && !space(p.in[p.i]) && p.in[p.i] != '>' {
			p.i++
		}
		if p.i == len(p.in) {
			return "", "", unclosed
		}
		return name, lower(p.in[from:p.i]), nil
	}
	p.i++
	inner := htmlParser{}
	for p.i < len(p.in) && p.in[p.i] != quote {
		inner.in, inner.i = p.in[p.i:], 0
		inner.reference()
		p.i += inner.i
	}
	if p.i == len(p.in) {
		return "", "", unclosed
	}
	p.i++
	if p.i == len(p.in) {
		return "", "", unclosed
	}
	return name, inner.out.String(), nil
}

func (p *htmlParser) skipSpace() {
	for p.i < len(p.in) && space(p.in[p.i]) {
		p.i++
	}
}

func (p *htmlParser) end() error {
	begin := p.i
	if len(p.open) == 0 {
		return fmt.Errorf("unexpected end tag at byte offset %d", begin)
	}
	p.i += 2
	for p.i < len(p.in) && !space(p.in[p.i]) && p.in[p.i] != '>' {
		p.i++
	}
	name := lower(p.in[begin+2 : p.i])
	p.skipSpace()
	if p.i == len(p.in) || p.in[p.i] != '>' {
		return fmt.Errorf("unclosed end tag at byte offset %d", begin)
	}
	p.i++
	t := p.open[len(p.open)-1]
	if name != "" && name != t.name {
		return fmt.Errorf("unmatched end tag at byte offset %d, expected \"</%s>\", found \"</%s>\"", begin, t.name, name)
	}
	p.open = p.open[:len(p.open)-1]
	if t.name == "blockquote" && slices.ContainsFunc(p.open, func(o tag) bool { return o.name == "blockquote" }) {
		return fmt.Errorf("blockquote entities can't be nested at byte offset %d", begin)
	}
	if p.units > t.offset {
		p.mark(t)
	}
	return nil
}

// mark notes the entity that t was.
func (p *htmlParser) mark(t tag) {
	e := Entity{Type: kinds[t.name], Offset: t.offset, Length: p.units - t.offset}
	switch t.name {
	case "blockquote":
		if t.argument != "" {
			e.Type = "expandable_blockquote"
		}
	case "a":
		if e.URL = t.argument; e.URL == "" {
			e.URL = p.out.String()[t.at:]
		}
		if !strings.Contains(e.URL, ":") && !strings.Contains(e.URL, ".") { // no address: only text
			return
		}
	case "code":
		e.Language = t.argument
	case "pre": // <pre><code class="language-x"> is one entity
		if n := len(p.entities) - 1; n >= 0 && p.entities[n].Type == "code" && p.entities[n].Offset == e.Offset && p.entities[n].Length == e.Length {
			e.Language = p.entities[n].Language
			p.entities = p.entities[:n]
		}
	}
	p.entities = append(p.entities, e)
}

// maxEntities is how many entities a message shows; Telegram drops the others without a word
// (https://limits.tginfo.me/en, "Message formatting entities", as of 2026-11-28).
const maxEntities = 100

// trim takes white space off both ends of a text, as Telegram does.
func trim(text string, entities []Entity) (string, []Entity) {
	left := strings.TrimLeft(text, " \t\r\n")
	cut := utf16Len(text[:len(text)-len(left)])
	text = strings.TrimRight(left, " \t\r\n")
	size := utf16Len(text)
	var kept []Entity
	for _, e := range entities {
		end := min(e.Offset+e.Length-cut, size)
		e.Offset = max(e.Offset-cut, 0)
		if e.Length = end - e.Offset; e.Length > 0 {
			kept = append(kept, e)
		}
	}
	return text, kept[:min(len(kept), maxEntities)]
}

func lower(s string) string { return strings.ToLower(s) }

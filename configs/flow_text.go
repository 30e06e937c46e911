package configs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// at is the offset at which a node begins.
func (s *source) at(n *yaml.Node) int {
	at := s.starts[min(max(n.Line, 1), len(s.starts))-1]
	for i := 1; i < n.Column && at < len(s.text); i++ {
		_, size := utf8.DecodeRune(s.text[at:])
		at += size
	}
	return at
}

// lineEnd is the offset of the end of a line, from 1, before its break.
func (s *source) lineEnd(line int) int {
	if line < len(s.starts) {
		return s.starts[line] - 1
	}
	return len(s.text)
}

// lineOf is the line of an offset, from 1.
func (s *source) lineOf(at int) int {
	i, found := slices.BinarySearch(s.starts, at)
	if found {
		return i + 1
	}
	return i
}

// colon is the offset behind the colon of a key.
func (s *source) colon(key *yaml.Node) int {
	at := s.end(key, true, 0)
	if i := bytes.IndexByte(s.text[at:], ':'); i >= 0 {
		return at + i + 1
	}
	return at
}

// blank reports whether a value is not written.
func blank(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Value == "" && n.Style == 0 }

// end is the offset behind a node that is written on one line or within braces; of one that is not
// written, colon.
func (s *source) end(n *yaml.Node, braces bool, colon int) int {
	at := s.at(n)
	switch {
	case blank(n):
		return colon
	case n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode:
		at++
		for i, c := range n.Content {
			before := at
			if n.Kind == yaml.MappingNode && i%2 == 1 {
				before = s.colon(n.Content[i-1])
			}
			at = s.end(c, true, before)
		}
		return s.closing(at)
	case n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		return s.quoteEnd(at)
	default:
		return s.plainEnd(at, braces)
	}
}

// closing is the offset behind the next closing brace or bracket, past comments.
func (s *source) closing(at int) int {
	for ; at < len(s.text); at++ {
		switch s.text[at] {
		case '}', ']':
			return at + 1
		case '#':
			for at < len(s.text) && s.text[at] != '\n' {
				at++
			}
		}
	}
	return at
}

// quoteEnd is the offset behind a text in quotes that begins at an offset.
func (s *source) quoteEnd(at int) int {
	if at >= len(s.text) {
		return at
	}
	quote := s.text[at]
	for at++; at < len(s.text); at++ {
		switch {
		case s.text[at] == '\\' && quote == '"':
			at++
		case s.text[at] == quote && quote == '\'' && at+1 < len(s.text) && s.text[at+1] == quote:
			at++
		case s.text[at] == quote:
			return at + 1
		}
	}
	return at
}

// plainEnd is the offset behind a text without quotes. Outside of braces it ends with its line.
func (s *source) plainEnd(at int, braces bool) int {
	from := at
scan:
	for ; at < len(s.text); at++ {
		next := byte('\n')
		if at+1 < len(s.text) {
			next = s.text[at+1]
		}
		switch c := s.text[at]; {
		case c == '\n' && !braces,
			c == '#' && at > from && strings.IndexByte(" \t\n", s.text[at-1]) >= 0,
			braces && strings.IndexByte(",[]{}", c) >= 0,
			braces && c == ':' && strings.IndexByte(" \t\n,[]{}", next) >= 0:
			break scan
		}
	}
	return from + len(bytes.TrimRight(s.text[from:at], " \t\n"))
}

// inLine reports whether the value of an entry outside of braces ends on a line with nothing of it
// below: it is a scalar on one line, in quotes, or within braces.
func (s *source) inLine(e entry) bool {
	v := e.value
	switch {
	case v.Kind == yaml.MappingNode || v.Kind == yaml.SequenceNode:
		return v.Style&yaml.FlowStyle != 0
	case v.Kind != yaml.ScalarNode || v.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return v.Kind == yaml.AliasNode
	case v.Style != 0 || blank(v):
		return true
	}
	line := s.lineOf(s.at(v))
	if end := s.plainEnd(s.at(v), false); end < s.lineEnd(line) && bytes.IndexByte(s.text[end:s.lineEnd(line)], '#') >= 0 || line >= len(s.starts) {
		return true
	}
	next := string(s.text[s.starts[line]:s.lineEnd(line+1)])
	text := strings.TrimLeft(next, " ")
	return text == "" || text[0] == '#' || len(next)-len(text) < e.key.Column
}

// entryEnd is the offset of the end of the last line of an entry outside of braces.
func (s *source) entryEnd(e entry) int {
	if s.inLine(e) {
		return s.lineEnd(s.lineOf(s.end(e.value, false, s.colon(e.key))))
	}
	f := file{lines: strings.Split(string(s.text), "\n")}
	return s.lineEnd(f.end(e))
}

// trailing is what stands behind the value of an entry up to an offset: a comment with the blanks
// before it, or nothing.
func (s *source) trailing(e entry, end int) string {
	if !s.inLine(e) {
		return ""
	}
	rest := string(s.text[s.end(e.value, false, s.colon(e.key)):end])
	if strings.HasPrefix(strings.TrimSpace(rest), "#") {
		return rest
	}
	return ""
}

// wideLine is the longest line, in bytes, that a group of keys or a list is written on.
const wideLine = 100

// entryLines are the lines of a key with its value, with as many blanks before them as indent says.
// Without a key, the first one is what stands behind the colon. short: the value is on one line.
func entryLines(indent int, key string, v *yaml.Node, short bool) []string {
	pad := strings.Repeat(" ", indent)
	head := ""
	if key != "" {
		head = pad + key + ":"
	}
	one := inline(v, v.Kind != yaml.ScalarNode)
	if short || v.Kind != yaml.ScalarNode && len(v.Content) == 0 || v.Kind != yaml.ScalarNode && !several(v) && len(pad)+len(head)+len(one) <= wideLine {
		return []string{head + " " + one}
	}
	below := strings.Repeat(" ", indent+2)
	switch v.Kind {
	case yaml.MappingNode:
		lines := []string{head}
		for i := 0; i+1 < len(v.Content); i += 2 {
			lines = append(lines, entryLines(indent+2, inline(v.Content[i], true), v.Content[i+1], false)...)
		}
		return lines
	case yaml.SequenceNode:
		lines := []string{head}
		for _, c := range v.Content {
			lines = append(lines, below+"- "+inline(c, true))
		}
		return lines
	}
	if !literal(v) {
		return []string{head + " " + one}
	}
	mark := " |-"
	text, ended := strings.CutSuffix(v.Value, "\n")
	if ended {
		mark = " |"
	}
	lines := []string{head + mark}
	for line := range strings.SplitSeq(text, "\n") {
		if line != "" {
			line = below + line
		}
		lines = append(lines, line)
	}
	return lines
}

// several reports whether a value has a text of several lines.
func several(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && strings.Contains(n.Value, "\n") || slices.ContainsFunc(n.Content, several)
}

// literal reports whether a text of several lines can be written line by line.
func literal(n *yaml.Node) bool {
	text := strings.TrimSuffix(n.Value, "\n")
	return n.ShortTag() == "!!str" && strings.Contains(n.Value, "\n") && text != "" && !strings.HasSuffix(text, "\n") &&
		strings.TrimLeft(text, " \t\n") == text && badText([]byte(text)) == 0 && !strings.Contains(text, "\r") && utf8.ValidString(text)
}

// inline is a value on one line; braces: it stands within braces.
func inline(n *yaml.Node, braces bool) string {
	var parts []string
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			parts = append(parts, inline(n.Content[i], true)+": "+inline(n.Content[i+1], true))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case yaml.SequenceNode:
		for _, c := range n.Content {
			parts = append(parts, inline(c, true))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	text := n.Value
	switch {
	case n.ShortTag() != "!!str":
		return text
	case n.Style&yaml.SingleQuotedStyle != 0 && !strings.ContainsAny(text, "'\n") && badText([]byte(text)) == 0:
		return "'" + text + "'"
	case n.Style == 0 && text == Quoted(text) && !(braces && strings.ContainsAny(text, ",[]{}")):
		return text
	case strings.ContainsAny(text, `"\`) && !strings.Contains(text, "'") && !strings.Contains(text, "\n") && badText([]byte(text)) == 0:
		return "'" + text + "'"
	}
	return doubleQuoted(text)
}

// jsonNode is a JSON value as a tree of bare nodes. Its keys keep their order.
func jsonNode(raw []byte) (*yaml.Node, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	n, err := jsonValue(d, 0)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("something follows it")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the value is not valid JSON: %w", err)
	}
	return n, nil
}

func jsonValue(d *json.Decoder, depth int) (*yaml.Node, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	scalar := func(tag, text string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: text} }
	switch v := token.(type) {
	case nil:
		return scalar("!!null", "null"), nil
	case bool:
		return scalar("!!bool", fmt.Sprint(v)), nil
	case json.Number:
		return scalar(plainKey(v.String()).Tag, v.String()), nil
	case string:
		return scalar("!!str", v), nil
	}
	if depth > maxFlowDepth {
		return nil, errors.New("it is nested too deeply")
	}
	n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	if token == json.Delim('{') {
		n.Kind, n.Tag = yaml.MappingNode, "!!map"
	}
	for d.More() {
		if n.Kind == yaml.MappingNode {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			name, _ := key.(string) // JSON has no other keys
			if entryOf(n, name) >= 0 {
				return nil, fmt.Errorf("the key %s is there twice", quote(name))
			}
			n.Content = append(n.Content, plainKey(name))
		}
		c, err := jsonValue(d, depth+1)
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, c)
	}
	_, err = d.Token() // the end
	return n, err
}

package configs

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/claybot/claybot/flows"
)

// EditFlow returns the text of the file of a flow after edits, one after the other. What an edit does
// not name keeps its place, its order and its form, comments included; a value that stays the same
// changes nothing. It fails with ErrByHand where the text cannot be changed alone.
func EditFlow(text []byte, edits []flows.Edit) ([]byte, error) {
	if len(edits) == 0 {
		return text, nil
	}
	crlf := []byte("\r\n")
	windows := bytes.Contains(text, crlf)
	if windows && bytes.Count(text, crlf) != bytes.Count(text, []byte("\n")) {
		return nil, fmt.Errorf("its lines end in two ways: %w", ErrByHand)
	}
	if documents(text) > 1 {
		return nil, fmt.Errorf("it has more than one document: %w", ErrByHand)
	}
	text = bytes.ReplaceAll(text, crlf, []byte("\n"))
	for _, e := range edits {
		next, err := editFlow(text, e)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", strings.Join(e.Path, "."), err)
		}
		text = next
	}
	if windows {
		text = bytes.ReplaceAll(text, []byte("\n"), crlf)
	}
	return text, nil
}

// documents counts the documents of a text; what cannot be read ends the count.
func documents(text []byte) (n int) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	for d.Decode(new(yaml.Node)) == nil {
		n++
	}
	return n
}

// editFlow makes one edit, and compares what the file says then with what it should say.
func editFlow(text []byte, e flows.Edit) ([]byte, error) {
	if len(e.Path) == 0 || slices.Contains(e.Path, "") {
		return nil, errors.New("the edit names no key")
	}
	s, err := newSource(text)
	if err != nil {
		return nil, err
	}
	want := bareNode(s.root)
	switch {
	case e.Rename != "":
		if err = renameNode(want, e.Path, e.Rename); err == nil {
			s.rename(e.Path, e.Rename)
		}
	case len(e.Value) == 0 && e.YAML == "":
		removeNode(want, e.Path)
		err = s.remove(e.Path)
	default:
		var v *yaml.Node
		if e.YAML != "" {
			v, err = yamlNode(e.YAML)
		} else {
			v, err = jsonNode(e.Value)
		}
		if err == nil {
			setNode(want, e.Path, v)
			err = s.set(e.Path, v)
		}
	}
	if err != nil {
		return nil, err
	}
	got, err := newSource(s.text)
	if err != nil || !reflect.DeepEqual(bareNode(got.root), want) {
		return nil, fmt.Errorf("the file cannot be changed there alone: %w", ErrByHand)
	}
	return s.text, nil
}

// entryOf returns where a key of a mapping is in its content; -1 for none.
func entryOf(n *yaml.Node, name string) int {
	if n == nil || n.Kind != yaml.MappingNode {
		return -1
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return i
		}
	}
	return -1
}

// setNode sets a value in a tree of bare nodes; a mapping is set key by key, so that what stays
// keeps its order.
func setNode(n *yaml.Node, path []string, v *yaml.Node) {
	i := entryOf(n, path[0])
	switch {
	case n.Kind != yaml.MappingNode:
		*n = yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		setNode(n, path, v)
	case len(path) > 1 && i >= 0:
		setNode(n.Content[i+1], path[1:], v)
	case i < 0:
		n.Content = append(n.Content, bareNode(plainKey(path[0])), bareNode(belowKeys(path[1:], v)))
	case n.Content[i+1].Kind == yaml.MappingNode && v.Kind == yaml.MappingNode && len(v.Content) > 0:
		mergeNode(n.Content[i+1], v)
	default:
		n.Content[i+1] = bareNode(v)
	}
}

// mergeNode makes a mapping what another one says.
func mergeNode(n, v *yaml.Node) {
	for _, name := range goneFrom(n, v) {
		i := entryOf(n, name)
		n.Content = slices.Delete(n.Content, i, i+2)
	}
	for i := 0; i+1 < len(v.Content); i += 2 {
		setNode(n, []string{v.Content[i].Value}, v.Content[i+1])
	}
}

// goneFrom are the keys of a mapping that another one does not have.
func goneFrom(n, v *yaml.Node) (names []string) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if name := n.Content[i].Value; entryOf(v, name) < 0 {
			names = append(names, name)
		}
	}
	return names
}

// removeNode removes a key from a tree of bare nodes, and the groups that it leaves empty.
func removeNode(n *yaml.Node, path []string) {
	i := entryOf(n, path[0])
	if i < 0 {
		return
	}
	if len(path) > 1 {
		below := n.Content[i+1]
		before := len(below.Content)
		removeNode(below, path[1:])
		if len(below.Content) > 0 || before == 0 {
			return
		}
	}
	n.Content = slices.Delete(n.Content, i, i+2)
}

// renameNode gives a key of a tree of bare nodes another name.
func renameNode(n *yaml.Node, path []string, name string) error {
	for _, part := range path[:len(path)-1] {
		i := entryOf(n, part)
		if i < 0 {
			return errors.New("there is no such key")
		}
		n = n.Content[i+1]
	}
	i := entryOf(n, path[len(path)-1])
	switch {
	case i < 0:
		return errors.New("there is no such key")
	case entryOf(n, name) >= 0:
		return fmt.Errorf("there is a key %s already", quote(name))
	}
	n.Content[i] = bareNode(plainKey(name))
	return nil
}

// belowKeys is a value below keys.
func belowKeys(path []string, v *yaml.Node) *yaml.Node {
	for i := len(path) - 1; i >= 0; i-- {
		v = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{plainKey(path[i]), v}}
	}
	return v
}

// plainKey is the node of a key as a file has it: one such as 7 is a number.
func plainKey(name string) *yaml.Node {
	var doc yaml.Node
	if yaml.Unmarshal([]byte(name), &doc) == nil && len(doc.Content) == 1 && doc.Content[0].Kind == yaml.ScalarNode && doc.Content[0].Value == name && doc.Content[0].ShortTag() != "!!null" {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: doc.Content[0].ShortTag(), Value: name}
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name}
}

// A source is the text of a file in which values are replaced. Its tree is that of the text as it was
// before the last replacement.
type source struct {
	text   []byte
	root   *yaml.Node
	starts []int // of the lines
}

func newSource(text []byte) (*source, error) {
	root, err := parse("flow", text)
	if err != nil {
		return nil, err
	}
	if root == nil {
		root = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	}
	s := &source{text: text, root: root, starts: []int{0}}
	for i, c := range text {
		if c == '\n' {
			s.starts = append(s.starts, i+1)
		}
	}
	return s, nil
}

// replace puts a text in the place of what is from one offset to another, and reads the result.
func (s *source) replace(from, to int, text string) error {
	next, err := newSource(slices.Concat(s.text[:from], []byte(text), s.text[to:]))
	if err != nil {
		return fmt.Errorf("the file cannot be changed there alone: %w", ErrByHand)
	}
	*s = *next
	return nil
}

// find returns the mapping that has the last key of a path, with the entry of that mapping itself,
// and how many keys of the path are there.
func (s *source) find(path []string) (n *yaml.Node, own entry, there int) {
	n = s.root
	for _, name := range path {
		i := entryOf(n, name)
		if i < 0 {
			return n, own, there
		}
		if there++; there == len(path) {
			return n, own, there
		}
		own = entry{n.Content[i], n.Content[i+1]}
		n = n.Content[i+1]
	}
	return n, own, there
}

// set gives a key a value. A mapping is set key by key where one is already.
func (s *source) set(path []string, v *yaml.Node) error {
	n, own, there := s.find(path)
	if there < len(path) {
		return s.insert(n, own, path[there], belowKeys(path[there+1:], v))
	}
	i := entryOf(n, path[len(path)-1])
	e := entry{n.Content[i], n.Content[i+1]}
	old := e.value
	switch {
	case reflect.DeepEqual(bareNode(old), bareNode(v)):
		return nil
	case old.Kind != yaml.MappingNode || v.Kind != yaml.MappingNode || len(v.Content) == 0:
		return s.revalue(n, e, v)
	}
	below := func(name string) []string { return append(slices.Clone(path), name) }
	gone := goneFrom(old, v)
	if len(gone)*2 == len(old.Content) { // nothing stays
		return s.revalue(n, e, v)
	}
	for _, name := range gone {
		if err := s.remove(below(name)); err != nil {
			return err
		}
	}
	for i := 0; i+1 < len(v.Content); i += 2 {
		if err := s.set(below(v.Content[i].Value), v.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// revalue replaces the value of an entry of a mapping.
func (s *source) revalue(in *yaml.Node, e entry, v *yaml.Node) error {
	colon := s.colon(e.key)
	if e.value.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 && strings.Contains(string(s.text[colon:s.lineEnd(e.key.Line)]), "#") {
		return fmt.Errorf("there is a comment before its text: %w", ErrByHand)
	}
	if quoted := e.value.Style & (yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle); quoted != 0 && v.Kind == yaml.ScalarNode {
		like := *v
		like.Style, v = quoted, &like
	}
	if in.Style&yaml.FlowStyle != 0 {
		from := colon
		if !blank(e.value) {
			from = s.at(e.value)
		}
		text := inline(v, true)
		if from == colon {
			text = " " + text
		}
		return s.replace(from, s.end(e.value, true, colon), text)
	}
	end := s.entryEnd(e)
	comment := s.trailing(e, end)
	lines := entryLines(e.key.Column-1, "", v, comment != "")
	text := " " + strings.TrimPrefix(strings.Join(lines, "\n"), " ")
	if lines[0] == "" {
		text = strings.Join(lines, "\n")
	}
	return s.replace(colon, end-len(comment), text)
}

// insert writes a key at the end of a mapping, which is the value of own, or the root.
func (s *source) insert(n *yaml.Node, own entry, name string, v *yaml.Node) error {
	key := inline(plainKey(name), true)
	switch {
	case n.Kind != yaml.MappingNode && !(n.Kind == yaml.ScalarNode && empty(n)):
		return fmt.Errorf("%s is no group of keys", quote(own.key.Value))
	case n.Kind == yaml.MappingNode && n.Style&yaml.FlowStyle != 0:
		at, text := s.at(n)+1, key+": "+inline(v, true)
		if len(n.Content) > 0 {
			last := entry{n.Content[len(n.Content)-2], n.Content[len(n.Content)-1]}
			at, text = s.end(last.value, true, s.colon(last.key)), ", "+text
		}
		return s.replace(at, at, text)
	case len(n.Content) == 0: // nothing, or a key without a value
		indent, at := 0, len(s.text)
		if own.key != nil {
			indent, at = own.key.Column+1, s.lineEnd(own.key.Line)
		}
		return s.lines(at, entryLines(indent, key, v, false))
	}
	last := entry{n.Content[len(n.Content)-2], n.Content[len(n.Content)-1]}
	return s.lines(s.entryEnd(last), entryLines(n.Content[0].Column-1, key, v, false))
}

// lines writes lines behind an offset that is at the end of a line.
func (s *source) lines(at int, lines []string) error {
	text := strings.Join(lines, "\n")
	switch {
	case at > 0 && s.text[at-1] != '\n':
		text = "\n" + text
	default:
		text += "\n"
	}
	return s.replace(at, at, text)
}

// remove removes a key, and the groups that it leaves empty.
func (s *source) remove(path []string) error {
	n, _, there := s.find(path)
	if there < len(path) {
		return nil
	}
	if len(n.Content) == 2 && len(path) > 1 {
		return s.remove(path[:len(path)-1])
	}
	i := entryOf(n, path[len(path)-1])
	e := entry{n.Content[i], n.Content[i+1]}
	if n.Style&yaml.FlowStyle == 0 {
		end := s.entryEnd(e)
		if end < len(s.text) && s.text[end] == '\n' {
			end++
		}
		return s.replace(s.starts[e.key.Line-1], end, "")
	}
	from, to := s.at(e.key), s.end(e.value, true, s.colon(e.key))
	switch {
	case i > 0:
		from = s.end(n.Content[i-1], true, s.colon(n.Content[i-2]))
	case len(n.Content) > 2:
		to = s.at(n.Content[i+2])
	}
	if commented(n) {
		return fmt.Errorf("there are comments between its values: %w", ErrByHand)
	}
	return s.replace(from, to, "")
}

// commented reports whether a node, or what is in it, has a comment in its text.
func commented(n *yaml.Node) bool {
	return slices.ContainsFunc(n.Content, func(x *yaml.Node) bool {
		return x.HeadComment != "" || x.LineComment != "" || x.FootComment != "" || commented(x)
	})
}

// rename gives a key another name.
func (s *source) rename(path []string, name string) {
	n, _, there := s.find(path)
	if there < len(path) {
		return
	}
	k := n.Content[entryOf(n, path[len(path)-1])]
	_ = s.replace(s.at(k), s.end(k, true, 0), inline(plainKey(name), true)) // what cannot be read is seen by the comparison
}

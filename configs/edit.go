package configs

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ErrByHand is of a change of the file that only its author can make.
var ErrByHand = errors.New("change the file by hand")

// Set returns the text of a file in which key has a value, which is YAML on one line or else
// a plain text. All other lines stay as they are, comments included; a group within braces that has the key, or is to
// have it, gets lines of its own. A key such as relay.crm is the entry of that name in a list, see ListOf: its value has
// that name. It fails with ErrByHand where another key stands in a list.
func Set(text []byte, key, value string) ([]byte, error) {
	value = oneLine(value)
	return byLines(text, func(text []byte) ([]byte, error) { return changedKey(text, key, &value) })
}

// byLines returns what an edit makes of the text of a file whose lines end with \n. Lines of Windows stay such.
func byLines(text []byte, edit func(text []byte) ([]byte, error)) ([]byte, error) {
	lines := bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	next, err := edit(lines)
	switch {
	case err != nil:
		return nil, err
	case bytes.Equal(next, lines):
		return text, nil
	case len(lines) < len(text):
		next = bytes.ReplaceAll(next, []byte("\n"), []byte("\r\n"))
	}
	return next, nil
}

// changedKey returns the text in which key, or the entry of a list that it names, has a value, or none.
func changedKey(text []byte, key string, value *string) ([]byte, error) {
	if list, name, ok := ListOf(key); ok {
		return editedItem(text, list, name, value)
	}
	return edited(text, key, value)
}

// Add returns the text of a file with a new entry, which is YAML on one line: a further entry in the list of key, or that of a
// key that the file does not have. All other lines stay as they are, unless the list stands within brackets. It fails
// with ErrByHand as Set does.
func Add(text []byte, key, entry string) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(entry), &doc); err != nil || len(doc.Content) != 1 {
		return nil, fmt.Errorf("%s is no entry: %w", quote(entry), ErrByHand)
	}
	group, name, _ := strings.Cut(key, ".")
	n := doc.Content[0]
	switch k, _ := keyAt(key); {
	case k.typ != nil && k.typ.Kind() == reflect.Slice:
		return byLines(text, func(text []byte) ([]byte, error) { return addToList(text, key, entry, n) })
	case n.Kind != yaml.MappingNode || len(n.Content) == 0 || !grouped(pathOf(group, name, n)):
		return Set(text, key, entry)
	}
	for i := 0; i+1 < len(n.Content); i += 2 { // so that each can be set later
		b, err := yaml.Marshal(n.Content[i+1])
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", key, err)
		}
		if text, err = Set(text, joinPath(key, n.Content[i].Value), strings.TrimSpace(string(b))); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// Unset returns the text of a file in which key is not set; groups that it leaves empty go
// with it. A key such as relay.crm is the entry of that name in a list, see ListOf. A file that does not set it stays
// as it is.
func Unset(text []byte, key string) ([]byte, error) {
	return byLines(text, func(text []byte) ([]byte, error) { return changedKey(text, key, nil) })
}

// Written returns the value that the text of a file gives key, as YAML on one line without
// secrets, and whether it does.
func Written(text []byte, key string) (value string, ok bool) {
	f, err := newFile(text)
	if err != nil {
		return "", false
	}
	if list, name, ok := ListOf(key); ok {
		for _, n := range f.items(list) {
			if itemName(n) == name {
				return flow(n, false), true
			}
		}
		return "", false
	}
	_, entries := f.find(f.names(key))
	if last := entries[len(entries)-1]; last.value != nil {
		return flow(last.value, hides(key)), true
	}
	return "", false
}

// oneLine returns a value as the file can have it behind a key.
func oneLine(value string) string {
	value = strings.TrimSpace(value)
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte("k: "+value), &doc); err == nil && !strings.Contains(value, "\n") && value != "" {
		n := doc.Content[0].Content[1]
		plain := n.Kind == yaml.ScalarNode && (n.Value == value || n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0)
		if len(doc.Content[0].Content) == 2 && n.LineComment == "" && (plain || n.Style&yaml.FlowStyle != 0) {
			return value
		}
	}
	return doubleQuoted(value)
}

// Quoted returns a text as the value of a key that Set makes exactly that text: what YAML would read
// as something else, such as yes or 123, or as quotes, is in quotes.
func Quoted(text string) string {
	b, err := yaml.Marshal(text)
	if value := strings.TrimRight(string(b), "\n"); err == nil && !strings.Contains(value, "\n") {
		return value
	}
	return doubleQuoted(text)
}

func doubleQuoted(value string) string {
	b, err := yaml.Marshal(&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value, Style: yaml.DoubleQuotedStyle})
	if err != nil {
		return fmt.Sprintf("%q", value)
	}
	return strings.TrimRight(string(b), "\n")
}

// edited returns the text in which key has a value, or none. It changes lines, and then
// compares what the file says with what it should say.
func edited(text []byte, key string, value *string) ([]byte, error) {
	f, err := newFile(text)
	if err != nil {
		return nil, err
	}
	names := f.names(key)
	if slices.Contains(names, "") {
		return nil, fmt.Errorf("%s is not a key", quote(key))
	}
	if err := f.whole(names, value); err != nil {
		return nil, err
	}
	var old any
	if err := yaml.Unmarshal(text, &old); err != nil {
		return nil, syntaxError(FileName, text, err)
	}
	before, _ := old.(map[string]any)
	if there, _ := f.find(names); value == nil && there < len(names) {
		return text, nil
	}
	if f, err = newFile(opened(text, names)); err != nil {
		return nil, err
	}
	if value == nil {
		f.unset(names)
	} else {
		f.set(names, *value)
	}
	next := []byte(strings.Join(append(f.lines, ""), "\n"))
	var got any
	err = yaml.Unmarshal(next, &got)
	after, _ := got.(map[string]any)
	if err != nil || !reflect.DeepEqual(after, expected(before, names, value)) {
		return nil, fmt.Errorf("%s cannot be changed alone in line %d: %w", key, f.near(names), ErrByHand)
	}
	return next, nil
}

// expected is what a file says after a change; nil for nothing.
func expected(before map[string]any, names []string, value *string) map[string]any {
	next := make(map[string]any)
	for k, v := range before {
		next[k] = v
	}
	name := names[0]
	switch {
	case len(names) > 1:
		below, ok := before[name].(map[string]any)
		if word, single := before[name].(string); single && !ok && short[name] != "" {
			below = map[string]any{short[name]: word}
		}
		next[name] = expected(below, names[1:], value)
		if len(next[name].(map[string]any)) == 0 {
			delete(next, name)
		}
	case value == nil:
		delete(next, name)
	default:
		var v any
		_ = yaml.Unmarshal([]byte(*value), &v) // what is no YAML compares unequal
		next[name] = v
	}
	if len(next) == 0 {
		return nil
	}
	return next
}

// A file is its lines, and the mapping that they are.
type file struct {
	lines []string
	root  *yaml.Node
}

func newFile(text []byte) (*file, error) {
	root, err := parse(FileName, text)
	if err != nil {
		return nil, err
	}
	return &file{strings.Split(strings.TrimRight(string(text), "\n"), "\n"), root}, nil
}

// An entry is a key of a mapping with its value. Those of the root have none.
type entry struct{ key, value *yaml.Node }

// find returns the entries that lead to a key, those that are missing without nodes, and how
// many are there.
func (f *file) find(names []string) (there int, all []entry) {
	n := f.root
	all = make([]entry, len(names))
	for i, name := range names {
		if n == nil || n.Kind != yaml.MappingNode {
			break
		}
		at := -1
		for j := 0; j+1 < len(n.Content); j += 2 {
			if n.Content[j].Value == name {
				at = j
			}
		}
		if at < 0 {
			break
		}
		all[i] = entry{n.Content[at], n.Content[at+1]}
		there, n = i+1, n.Content[at+1]
	}
	return there, all
}

// names returns the names that lead to a key. A group that is written as a single value is the
// key that it means.
func (f *file) names(key string) []string {
	names := strings.Split(key, ".")
	word := short[names[0]]
	there, all := f.find(names[:1])
	if word == "" || there == 0 {
		return names
	}
	if n := all[0].value; len(names) == 2 && names[1] == word && n.Kind == yaml.ScalarNode && !empty(n) {
		return names[:1]
	}
	return names
}

// Meant returns the key that a value for key is for: where the text of a file has a group, such
// as model, a single value means one of its keys, such as model.name.
func Meant(text []byte, key string) string {
	f, err := newFile(text)
	if word := short[key]; err == nil && word != "" {
		if there, all := f.find([]string{key}); there == 1 && all[0].value.Kind == yaml.MappingNode {
			return joinPath(key, word)
		}
	}
	return key
}

// whole refuses a value in the place of a group of keys, which would go with it unseen.
func (f *file) whole(names []string, value *string) error {
	there, all := f.find(names)
	if value == nil || there < len(names) {
		return nil
	}
	n := all[there-1].value
	if n.Kind == yaml.MappingNode && len(n.Content) > 0 && n.Style&yaml.FlowStyle == 0 {
		return fmt.Errorf("%s is a group of %d keys: set them one by one, or unset the group first", strings.Join(names, "."), len(n.Content)/2)
	}
	return nil
}

// near is the line where a change belongs, from 1.
func (f *file) near(names []string) int {
	there, all := f.find(names)
	if there == 0 {
		return max(1, len(f.lines))
	}
	return all[there-1].key.Line
}

// end returns the line behind an entry, from 0. Comments behind it belong to what follows.
func (f *file) end(e entry) int {
	last, indent := e.key.Line, e.key.Column-1
	for i := last; i < len(f.lines); i++ {
		line := strings.TrimLeft(f.lines[i], " ")
		deep := len(f.lines[i]) - len(line)
		item := strings.HasPrefix(line, "- ") || line == "-"
		switch {
		case line == "" || strings.HasPrefix(line, "#") && deep <= indent:
		case deep > indent || deep == indent && item && e.value.Kind == yaml.SequenceNode:
			last = i + 1
		default:
			return last
		}
	}
	return last
}

// replace puts lines in the place of others.
func (f *file) replace(from, to int, lines ...string) {
	f.lines = slices.Replace(f.lines, from, to, lines...)
}

// set writes a value behind a key, and the groups that are missing before it.
func (f *file) set(names []string, value string) {
	there, all := f.find(names)
	indent := func(i int) string { return strings.Repeat("  ", i) }
	var below []string // the keys that are missing
	pad := ""
	if there > 0 {
		pad = strings.Repeat(" ", all[there-1].key.Column-1)
	}
	for i, name := range names[there:] {
		below = append(below, pad+indent(i+min(there, 1))+name+":")
	}
	if len(below) > 0 {
		below[len(below)-1] += " " + value
	}
	switch {
	case there == 0:
		if len(f.lines) == 1 && f.lines[0] == "" {
			f.lines = nil
		}
		f.lines = append(f.lines, below...)
	case there == len(names):
		e := all[there-1]
		from := e.key.Line - 1
		line := f.lines[from][:e.key.Column-1] + e.key.Value + ": " + value
		if c := e.value.LineComment; c != "" && e.value.Kind == yaml.ScalarNode {
			if at := strings.LastIndex(f.lines[from], c); at > 0 {
				line += f.lines[from][len(strings.TrimRight(f.lines[from][:at], " ")):]
			}
		}
		f.replace(from, f.end(e), line)
	default:
		f.insert(names[:there], all[there-1], below)
	}
}

// insert writes keys at the end of a group.
func (f *file) insert(group []string, e entry, below []string) {
	word := short[group[0]]
	switch {
	case e.value.Kind == yaml.ScalarNode && !empty(e.value) && len(group) == 1 && word != "":
		head := f.lines[e.key.Line-1]
		f.replace(e.key.Line-1, e.key.Line, head[:e.key.Column-1]+e.key.Value+":", "  "+word+":"+strings.TrimPrefix(head[e.key.Column-1:], e.key.Value+":"))
		f.replace(e.key.Line+1, e.key.Line+1, below...)
		return
	case e.value.Kind == yaml.MappingNode && len(e.value.Content) > 0:
		first := e.value.Content[0]
		for i := range below { // as deep as the other keys of the group
			below[i] = strings.Repeat(" ", max(0, first.Column-1-(e.key.Column+1))) + below[i]
		}
	}
	at := f.end(e)
	f.replace(at, at, below...)
}

// unset removes a key, and the groups that are empty without it.
func (f *file) unset(names []string) {
	_, all := f.find(names)
	i := len(all) - 1
	for i > 0 && len(all[i-1].value.Content) == 2 {
		i--
	}
	f.replace(all[i].key.Line-1, f.end(all[i]))
}

// Sets reports whether the text of a file sets any key.
func Sets(text []byte) bool {
	root, err := parse(FileName, text)
	return err == nil && root != nil && len(root.Content) > 0
}

package configs

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ListOf returns the list in which a key names an entry, and the name: relay and crm for relay.crm. It reports false
// for other keys.
func ListOf(key string) (list, name string, ok bool) {
	for _, l := range listKinds {
		if name, in := strings.CutPrefix(key, l.group+"."); in && l.named && name != "" {
			return l.group, name, true
		}
	}
	return "", "", false
}

// WholeEntry reports whether a key is that of an entry as a whole, such as mcp.files or relay.crm.
func WholeEntry(key string) bool {
	if _, _, ok := ListOf(key); ok {
		return true
	}
	group, name, named := strings.Cut(key, ".")
	of := func(k EntryKind) bool { return k.Group == group && !k.List }
	return named && name != "" && !strings.Contains(name, ".") && slices.ContainsFunc(EntryKinds(), of)
}

// takeFromList returns the text of a file in which a list has no entry of a name. All other lines stay as they are,
// unless the list stands within brackets.
func takeFromList(text []byte, key, name string) ([]byte, error) {
	if crlf := []byte("\r\n"); bytes.Contains(text, crlf) {
		next, err := takeFromList(bytes.ReplaceAll(text, crlf, []byte("\n")), key, name)
		return bytes.ReplaceAll(next, []byte("\n"), crlf), err
	}
	f, err := newFile(text)
	if err != nil {
		return nil, err
	}
	names := f.names(key)
	there, all := f.find(names)
	if there < len(names) || all[there-1].value.Kind != yaml.SequenceNode {
		return text, nil
	}
	list := all[there-1].value
	i := slices.IndexFunc(list.Content, func(n *yaml.Node) bool { return isNamed(n, name) })
	switch {
	case i < 0:
		return text, nil
	case len(list.Content) == 1:
		return edited(text, key, nil)
	}
	shorter := yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle, Content: slices.Delete(slices.Clone(list.Content), i, i+1)}
	b, err := yaml.Marshal(&shorter)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", key, err)
	}
	value := strings.TrimSpace(string(b))
	if list.Style&yaml.FlowStyle != 0 {
		return Set(text, key, value)
	}
	end := f.end(all[there-1])
	if i+1 < len(list.Content) {
		end = f.beginning(list.Content[i], list.Content[i+1])
	}
	f.replace(list.Content[i].Line-1, end)
	var before, after map[string]any
	next := []byte(strings.Join(append(f.lines, ""), "\n"))
	if yaml.Unmarshal(text, &before) == nil && yaml.Unmarshal(next, &after) == nil && reflect.DeepEqual(after, expected(before, names, &value)) {
		return next, nil
	}
	return nil, fmt.Errorf("%s cannot be taken out of %s in line %d: %w", name, key, list.Content[i].Line, ErrByHand)
}

// beginning returns the line, from 0, with which the entry of a list begins that follows another: that of its first
// comment. Blank lines before that belong to the entry before it, and so do comments that are deeper and stand above a
// blank line.
func (f *file) beginning(before, n *yaml.Node) int {
	begin, blank := n.Line-1, false
	for i := n.Line - 2; i >= before.Line; i-- {
		line := strings.TrimLeft(f.lines[i], " \t")
		switch {
		case line != "" && line[0] != '#', !f.says(before.Line-1, i, before): // it belongs to the value before it
			return begin
		case line == "":
			blank = true
		case blank && len(f.lines[i])-len(line) >= n.Column-1:
			return begin
		default:
			begin = i
		}
	}
	return begin
}

// says reports whether lines, from 0, are a list with nothing but an entry.
func (f *file) says(from, to int, n *yaml.Node) bool {
	var want any
	var got []any
	err := yaml.Unmarshal([]byte(strings.Join(f.lines[from:to], "\n")+"\n"), &got)
	return err == nil && n.Decode(&want) == nil && reflect.DeepEqual(got, []any{want})
}

// isNamed reports whether an entry of a list has a name.
func isNamed(n *yaml.Node, name string) bool {
	for j := 0; n.Kind == yaml.MappingNode && j+1 < len(n.Content); j += 2 {
		if n.Content[j].Value == "name" && n.Content[j+1].Value == name {
			return true
		}
	}
	return false
}

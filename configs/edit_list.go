package configs

import (
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
		if name, in := strings.CutPrefix(key, l.group+"."); in && l.named && name != "" && !strings.Contains(name, ".") {
			return l.group, name, true
		}
	}
	return "", "", false
}

// ItemAround returns the key of the entry that the text of a file has in a list, such as relay.crm, for a key of it, such as
// relay.crm.file, which nothing changes alone; empty for other keys.
func ItemAround(text []byte, key string) string {
	group, rest, _ := strings.Cut(key, ".")
	name, own, _ := strings.Cut(rest, ".")
	item := joinPath(group, name)
	if _, _, list := ListOf(item); !list || !slices.Contains(entryFields(group), own) {
		return ""
	}
	if _, has := Written(text, item); !has {
		return ""
	}
	return item
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

// editedItem returns the text of a file in which the entry of a name in a list has a value, or in which there is none;
// a new one is the last. All other lines stay as they are, unless the list stands within brackets. It fails with
// ErrByHand where the list has two of the name.
func editedItem(text []byte, key, name string, value *string) ([]byte, error) {
	f, err := newFile(text)
	if err != nil {
		return nil, err
	}
	item, err := itemOf(key, name, value)
	if err != nil {
		return nil, err
	}
	var at []int
	list := f.items(key)
	for i, n := range list {
		if itemName(n) == name {
			at = append(at, i)
		}
	}
	switch {
	case len(at) == 0 && value == nil:
		return text, nil
	case len(at) == 0:
		return addToList(text, key, *value, item[0])
	case len(at) > 1:
		return nil, fmt.Errorf("%s has two entries with the name %s, in lines %d and %d: %w", key, name, list[at[0]].Line, list[at[1]].Line, ErrByHand)
	case value == nil && len(list) == 1:
		return edited(text, key, nil)
	}
	return replacedItem(text, key, at[0], item, value)
}

// itemOf returns the entry of a list that a value is, which has the name; none without a value.
func itemOf(key, name string, value *string) ([]*yaml.Node, error) {
	if value == nil {
		return nil, nil
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(*value), &doc); err != nil || len(doc.Content) != 1 || itemName(doc.Content[0]) != name {
		return nil, fmt.Errorf("%s.%s is an entry of a list: its value is {name: %s, ...}, within braces and with that name", key, name, name)
	}
	return doc.Content, nil
}

// items are the entries of a list of the file; none of what is no list.
func (f *file) items(key string) []*yaml.Node {
	names := f.names(key)
	if there, all := f.find(names); there == len(names) && all[there-1].value.Kind == yaml.SequenceNode {
		return all[there-1].value.Content
	}
	return nil
}

// replacedItem returns the text of a file in which a list has others in place of its entry i: none, or one with a value.
func replacedItem(text []byte, key string, i int, others []*yaml.Node, value *string) ([]byte, error) {
	f, err := newFile(text)
	if err != nil {
		return nil, err
	}
	names := f.names(key)
	_, all := f.find(names)
	e := all[len(all)-1]
	list := e.value
	next := yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle, Content: slices.Replace(slices.Clone(list.Content), i, i+1, others...)}
	b, err := yaml.Marshal(uncommented(&next))
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", key, err)
	}
	whole := strings.TrimSpace(string(b))
	if list.Style&yaml.FlowStyle != 0 {
		return edited(text, key, &whole)
	}
	from, end := list.Content[i].Line-1, f.tail(e)
	if i+1 < len(list.Content) {
		end = f.beginning(list.Content[i], list.Content[i+1])
	}
	if value == nil {
		f.replace(from, end)
	} else {
		for end > from+1 && strings.TrimSpace(f.lines[end-1]) == "" {
			end--
		}
		f.replace(from, end, strings.Repeat(" ", list.Column-1)+"- "+*value)
	}
	if next, ok := f.changed(text, names, whole); ok {
		return next, nil
	}
	return nil, fmt.Errorf("entry %d of %s cannot be changed alone in line %d: %w", i+1, key, list.Content[i].Line, ErrByHand)
}

// changed returns the text of the file, and whether nothing but a key differs in it from what it was, and has a value.
func (f *file) changed(was []byte, names []string, value string) (next []byte, ok bool) {
	var before, after map[string]any
	next = []byte(strings.Join(append(f.lines, ""), "\n"))
	ok = yaml.Unmarshal(was, &before) == nil && yaml.Unmarshal(next, &after) == nil
	return next, ok && reflect.DeepEqual(after, expected(before, names, &value))
}

// addToList is Add for a list.
func addToList(text []byte, key, value string, n *yaml.Node) ([]byte, error) {
	f, err := newFile(text)
	if err != nil {
		return nil, err
	}
	names := f.names(key)
	there, all := f.find(names)
	if there < len(names) || empty(all[there-1].value) {
		return Set(text, key, "["+value+"]")
	}
	list := all[there-1].value
	longer := yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle, Content: append(slices.Clone(list.Content), n)}
	b, err := yaml.Marshal(uncommented(&longer))
	if whole := strings.TrimSpace(string(b)); err == nil && list.Kind == yaml.SequenceNode {
		if list.Style&yaml.FlowStyle != 0 {
			return edited(text, key, &whole)
		}
		at := f.end(all[there-1])
		f.replace(at, at, strings.Repeat(" ", list.Column-1)+"- "+value)
		if next, ok := f.changed(text, names, whole); ok {
			return next, nil
		}
	}
	return nil, fmt.Errorf("nothing can be added to %s in line %d: %w", key, list.Line, ErrByHand)
}

// uncommented returns a copy of a value without comments, which can stand on one line within brackets.
func uncommented(n *yaml.Node) *yaml.Node {
	c := &yaml.Node{Kind: n.Kind, Style: n.Style, Tag: n.Tag, Value: n.Value, Anchor: n.Anchor, Alias: n.Alias}
	if strings.Contains(n.Value, "\n") {
		c.Style = yaml.DoubleQuotedStyle
	}
	for _, x := range n.Content {
		c.Content = append(c.Content, uncommented(x))
	}
	return c
}

// tail returns the line, from 0, behind the last entry of a list, the value of e. Comments behind it that are no deeper
// than the dashes are of the list.
func (f *file) tail(e entry) int {
	end := f.end(e)
	for i := end - 1; i >= e.key.Line; i-- {
		switch line := strings.TrimLeft(f.lines[i], " \t"); {
		case line != "" && (line[0] != '#' || len(f.lines[i])-len(line) >= e.value.Column):
			return end
		case line != "":
			end = i
		}
	}
	return end
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

// itemName is the name of an entry of a list; empty if it has none.
func itemName(n *yaml.Node) string {
	for j := 0; n.Kind == yaml.MappingNode && j+1 < len(n.Content); j += 2 {
		if n.Content[j].Value == "name" {
			return n.Content[j+1].Value
		}
	}
	return ""
}

// Items returns the entries of the lists in the text of a file in which each entry has a name, by their keys, such as
// relay.crm; as Written does.
func Items(text []byte) map[string]string {
	all := make(map[string]string)
	f, err := newFile(text)
	if err != nil {
		return all
	}
	for _, l := range listKinds {
		for _, n := range f.items(l.group) {
			key := joinPath(l.group, itemName(n))
			if _, twice := all[key]; l.named && !twice {
				all[key] = flow(n, false)
			}
		}
	}
	return all
}

// Parted returns keys in which two texts of a file differ with, in place of a list, the entries of it that differ: where
// each entry of the list has a name of its own.
func Parted(before, after []byte, keys []string) (all []string) {
	for _, key := range keys {
		was, old, parted := itemsByName(before, key)
		now, next, still := itemsByName(after, key)
		var own []string
		for _, name := range append(next, old...) {
			if was[name] != now[name] && !slices.Contains(own, joinPath(key, name)) {
				own = append(own, joinPath(key, name))
			}
		}
		if !parted || !still || len(own) == 0 { // such as another order
			own = []string{key}
		}
		all = append(all, own...)
	}
	return all
}

// itemsByName returns the entries of a list in the text of a file by their names, and these in their order. It reports false
// where not each entry has a name of its own.
func itemsByName(text []byte, list string) (values map[string]string, names []string, ok bool) {
	f, err := newFile(text)
	if err != nil {
		return nil, nil, false
	}
	values = make(map[string]string)
	for _, n := range f.items(list) {
		name := itemName(n)
		b, err := yaml.Marshal(bareNode(n))
		if _, _, is := ListOf(joinPath(list, name)); !is || err != nil || values[name] != "" {
			return nil, nil, false
		}
		values[name], names = string(b), append(names, name)
	}
	return values, names, true
}

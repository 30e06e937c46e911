package configs

import (
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// opened returns the text of a file in which the groups around a key that stand within braces stand on
// lines of their own, as far as a change of the key needs that. Comments stay. A group that cannot be written so stays as
// it is.
func opened(text []byte, names []string) []byte {
	for range names {
		f, err := newFile(text)
		if err != nil {
			return text
		}
		there, all := f.find(names)
		next, changed := text, false
		for _, e := range all[:min(there, len(names)-1)] {
			if e.value.Kind == yaml.MappingNode && e.value.Style&yaml.FlowStyle != 0 {
				next, changed = f.open(e)
				break
			}
		}
		if !changed {
			return text
		}
		text = next
	}
	return text
}

// open returns the text of the file in which the group of an entry stands on lines instead of within
// braces. It reports false where that would change what the file says, or lose a comment.
func (f *file) open(e entry) (next []byte, ok bool) {
	from, to := e.key.Line-1, f.end(e)
	whole := strings.Join(f.lines[from:to], "\n")
	at := func(n *yaml.Node) int { // where a node begins in whole
		line := n.Line - e.key.Line
		head := strings.Join(f.lines[from:from+line], "\n")
		if line > 0 {
			head += "\n"
		}
		return len(head) + len(string([]rune(f.lines[n.Line-1])[:n.Column-1]))
	}
	begin := at(e.value)
	end := closingBrace(whole, begin, e.value)
	if e.value.Anchor != "" || end < 0 || strings.Contains(whole[begin:end], "\n") && strings.Contains(whole[begin:end], "#") {
		return nil, false
	}
	pad := strings.Repeat(" ", e.key.Column+1)
	lines := []string{strings.TrimRight(whole[:begin], " \n") + whole[end+1:]}
	for i := 0; i < len(e.value.Content); i += 2 {
		stop := end
		if i+2 < len(e.value.Content) {
			stop = at(e.value.Content[i+2])
		}
		pair := strings.TrimSpace(whole[at(e.value.Content[i]):stop])
		lines = append(lines, pad+strings.TrimSpace(strings.TrimSuffix(pair, ",")))
	}
	was := strings.Join(append(f.lines[:len(f.lines):len(f.lines)], ""), "\n")
	f.replace(from, to, lines...)
	now := strings.Join(append(f.lines, ""), "\n")
	var before, after any
	same := yaml.Unmarshal([]byte(was), &before) == nil && yaml.Unmarshal([]byte(now), &after) == nil
	return []byte(now), same && (len(e.value.Content) == 0 || reflect.DeepEqual(before, after))
}

// closingBrace returns where the brace is that ends the group n, which begins at an index of a text; -1 if it
// is not found.
func closingBrace(text string, begin int, n *yaml.Node) int {
	var want any
	if n.Decode(&want) != nil {
		return -1
	}
	for i := begin; i < len(text); i++ {
		var got any
		if text[i] == '}' && yaml.Unmarshal([]byte(text[begin:i+1]), &got) == nil && reflect.DeepEqual(got, want) {
			return i
		}
	}
	return -1
}

package configs

import (
	"slices"

	"go.yaml.in/yaml/v3"
)

// Changed returns the keys that two texts of a file give different values, in the order of the
// second one, then those that it no longer has. A list is one key.
func Changed(before, after []byte) ([]string, error) {
	was, _, err := writtenKeys(before)
	if err != nil {
		return nil, err
	}
	now, order, err := writtenKeys(after)
	if err != nil {
		return nil, err
	}
	changed := slices.DeleteFunc(order, func(key string) bool { old, there := was[key]; return there && old == now[key] })
	_, order, _ = writtenKeys(before) // it could be read above
	for _, key := range order {
		if _, still := now[key]; !still {
			changed = append(changed, key)
		}
	}
	return changed, nil
}

// writtenKeys returns the keys that the text of a file sets, with their values, and their order.
func writtenKeys(text []byte) (values map[string]string, order []string, err error) {
	root, err := parse(FileName, text)
	if err != nil {
		return nil, nil, err
	}
	values = make(map[string]string)
	Config{}.walk("", "", root, func(key, _ string, n *yaml.Node) {
		b, err := yaml.Marshal(bareNode(n))
		if _, twice := values[key]; err == nil && !twice && key != "" {
			values[key], order = string(b), append(order, key)
		}
	})
	return values, order, nil
}

// bareNode returns a copy of a value without comments and styles.
func bareNode(n *yaml.Node) *yaml.Node {
	c := &yaml.Node{Kind: n.Kind, Tag: n.ShortTag(), Value: n.Value}
	for _, x := range n.Content {
		c.Content = append(c.Content, bareNode(x))
	}
	return c
}

// A DiffLine is a line of a difference: Mark is '+', '-' or ' '.
type DiffLine struct {
	Mark byte
	Text string
}

// Diff returns the lines in which two texts differ, each with up to context equal lines around
// it. Between groups of lines stands an empty Mark.
func Diff(before, after []string, context int) []DiffLine {
	all := edits(before, after)
	var shown []DiffLine
	last := -1
	for i := range all {
		near := slices.ContainsFunc(all[max(0, i-context):min(len(all), i+context+1)], func(l DiffLine) bool { return l.Mark != ' ' })
		if !near {
			continue
		}
		if last >= 0 && last != i-1 {
			shown = append(shown, DiffLine{})
		}
		shown, last = append(shown, all[i]), i
	}
	return shown
}

// edits returns all lines of two texts. What is equal at the beginning and the end is; the rest is
// compared by its longest common subsequence, as far as that is small.
func edits(before, after []string) []DiffLine {
	var head, tail []DiffLine
	for len(before) > 0 && len(after) > 0 && before[0] == after[0] {
		head = append(head, DiffLine{' ', before[0]})
		before, after = before[1:], after[1:]
	}
	for len(before) > 0 && len(after) > 0 && before[len(before)-1] == after[len(after)-1] {
		tail = append(tail, DiffLine{' ', before[len(before)-1]})
		before, after = before[:len(before)-1], after[:len(after)-1]
	}
	slices.Reverse(tail)
	const most = 4 << 20 // pairs of lines
	if len(before)*len(after) > most {
		for _, l := range before {
			head = append(head, DiffLine{'-', l})
		}
		before = nil
		for _, l := range after {
			head = append(head, DiffLine{'+', l})
		}
		after = nil
	}
	return slices.Concat(head, common(before, after), tail)
}

// common compares two texts by their longest common subsequence of lines.
func common(before, after []string) (all []DiffLine) {
	long := make([][]int, len(before)+1) // the length of that of the rests from i and j on
	for i := range long {
		long[i] = make([]int, len(after)+1)
	}
	for i := len(before) - 1; i >= 0; i-- {
		for j := len(after) - 1; j >= 0; j-- {
			long[i][j] = max(long[i+1][j], long[i][j+1])
			if before[i] == after[j] {
				long[i][j] = long[i+1][j+1] + 1
			}
		}
	}
	i, j := 0, 0
	for i < len(before) || j < len(after) {
		switch {
		case i < len(before) && j < len(after) && before[i] == after[j]:
			all = append(all, DiffLine{' ', before[i]})
			i, j = i+1, j+1
		case i < len(before) && (j == len(after) || long[i+1][j] >= long[i][j+1]):
			all = append(all, DiffLine{'-', before[i]})
			i++
		default:
			all = append(all, DiffLine{'+', after[j]})
			j++
		}
	}
	return all
}

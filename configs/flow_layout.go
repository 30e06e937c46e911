package configs

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/claybot/claybot/flows"
)

// ReadLayout reads the text of the file that has the layout of a flow with these nodes. What cannot be
// used is a hint with its line, and no fault: the rest is used nevertheless. Positions of nodes that
// the flow does not have are hints, and are returned.
func ReadLayout(path string, text []byte, nodes []string) (all flows.Layout, hints []flows.Fault) {
	all = make(flows.Layout)
	hint := func(line int, key, form string, args ...any) {
		hints = append(hints, flows.Fault{Line: max(line, 1), Key: key, Text: fmt.Sprintf(form, args...)})
	}
	if len(text) > flows.MaxFile {
		hint(1, "", "the file has %d bytes; the limit is %d", len(text), flows.MaxFile)
		return all, hints
	}
	root, err := parse(path, text)
	if err != nil {
		return all, []flows.Fault{textFault(err)}
	}
	if root == nil {
		return all, nil
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, v := root.Content[i], root.Content[i+1]
		if key.Value != "nodes" || v.Kind != yaml.MappingNode && !empty(v) {
			hint(key.Line, key.Value, "want nodes, with a position such as {x: 0, y: 60} for each")
			continue
		}
		for j := 0; j+1 < len(v.Content); j += 2 {
			name, n := v.Content[j], v.Content[j+1]
			at, ok := positionOf(n)
			switch {
			case !ok:
				hint(name.Line, "nodes."+name.Value, "want a position such as {x: 0, y: 60}, in whole pixels from -%d to %[1]d", flows.MaxPosition)
				continue
			case name.Value != flows.End && !slices.Contains(nodes, name.Value):
				hint(name.Line, "nodes."+name.Value, "the workflow has no node %.64q", name.Value)
				hints[len(hints)-1].Near = Nearest(name.Value, nodes)
			}
			all[name.Value] = at
		}
	}
	return all, hints
}

// positionOf reads a position.
func positionOf(n *yaml.Node) (at flows.Position, ok bool) {
	if n.Kind != yaml.MappingNode || len(n.Content) != 4 {
		return at, false
	}
	for name, to := range map[string]*int{"x": &at.X, "y": &at.Y} {
		i := entryOf(n, name)
		if i < 0 || n.Content[i+1].Kind != yaml.ScalarNode {
			return at, false
		}
		v, err := strconv.Atoi(n.Content[i+1].Value)
		if err != nil || v < -flows.MaxPosition || v > flows.MaxPosition {
			return at, false
		}
		*to = v
	}
	return at, true
}

// LayoutText is the text of a file that has the layout of a flow; none for a layout without positions.
func LayoutText(flow string, l flows.Layout) []byte {
	if len(l) == 0 {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Where the nodes of %s.yaml are on the canvas. claybot writes this file; without it, they are placed by their edges.\nnodes:\n", flow)
	for _, name := range slices.Sorted(maps.Keys(l)) {
		fmt.Fprintf(&b, "  %s: {x: %d, y: %d}\n", inline(plainKey(name), true), l[name].X, l[name].Y)
	}
	return []byte(b.String())
}

package flows

import "maps"

// A Position is where the middle of a node is on the canvas, in pixels: X from the middle of the
// drawing, Y from its first row down.
type Position struct {
	X int `json:"x"`
	Y int `json:"y"`
}

// MaxPosition bounds the coordinates of a Position on both sides of zero.
const MaxPosition = 20_000

// Within reports whether both coordinates are in their bounds.
func (p Position) Within() bool {
	return min(p.X, p.Y) >= -MaxPosition && max(p.X, p.Y) <= MaxPosition
}

// A Layout has the positions of nodes, and of END, by their names. A node without one is placed by
// its edges.
type Layout map[string]Position

// LayoutFile is the name of the file that has the layout of a flow, beside the file of the flow.
func LayoutFile(flow string) string { return flow + LayoutEnding }

// LayoutEnding ends the name of a file with a layout.
const LayoutEnding = ".layout.yaml"

// Carried returns the layout after edits of the file of the flow: a node that is renamed keeps its
// position, that of a node which is removed goes.
func (l Layout) Carried(edits []Edit) Layout {
	next := maps.Clone(l)
	for _, e := range edits {
		if len(e.Path) != 2 || e.Path[0] != "nodes" {
			continue
		}
		at, ok := next[e.Path[1]]
		switch {
		case !ok || e.Rename == "" && (len(e.Value) > 0 || e.YAML != ""):
			continue
		case e.Rename != "":
			next[e.Rename] = at
		}
		delete(next, e.Path[1])
	}
	return next
}

// Known returns the positions of nodes that are there, and of END.
func (l Layout) Known(nodes []string) Layout {
	known := make(Layout)
	for _, name := range append([]string{End}, nodes...) {
		if at, ok := l[name]; ok {
			known[name] = at
		}
	}
	return known
}

package dashboard

import (
	"cmp"
	"slices"

	"github.com/claybot/claybot/runs"
)

// The measures of a drawn graph, in pixels.
const (
	nodeHeight = 30
	nodeLeast  = 84  // width
	nodeLetter = 7.6 // width of one, about
	nodePad    = 24
	nodeApart  = 26
	layerApart = 62 // from the middle of one to the middle of the next
	laneApart  = 14
	graphEdge  = 16 // around all of it
	// nodeRunes is the longest name that is written out.
	nodeRunes = 22
)

// A node of a drawing; x and y are its middle.
type node struct {
	name        string
	x, y, width float64
	layer       int
	placed      bool // by hand
}

func (n node) left() float64  { return n.x - n.width/2 }
func (n node) right() float64 { return n.x + n.width/2 }

// An arc leads from one node to another: straight down to the next layer, or by
// way of a lane beside all nodes where it goes back up or past a layer. One of a node that was placed by
// hand takes the shortest way.
type arc struct {
	from, to *node
	side     float64 // 0: straight; -1: by a lane on the left; 1: on the right
	lane     float64 // x
	across   float64 // -1: straight to the left; 1: to the right; 0: down
}

// A drawing is where everything of a graph is.
type drawing struct {
	nodes         []*node // in the order of the graph
	arcs          []arc
	width, height float64
	zeroX, zeroY  float64 // where the position 0, 0 of a layout is
}

// layout places the nodes of a graph in layers, each below those that lead to
// it. The same shape always looks the same.
func layout(s runs.Shape) drawing { return layoutAt(s, handPlaced{}) }

// layoutAt is layout with nodes that were placed by hand.
func layoutAt(s runs.Shape, at handPlaced) drawing {
	l := layering{shape: s, hand: at, nodes: make(map[string]*node), state: make(map[string]int)}
	order := s.Order()
	for _, name := range order {
		width := max(nodeLeast, nodePad+nodeLetter*float64(len([]rune(excerpt(nodeRunes, name)))))
		l.nodes[name] = &node{name: name, width: width}
	}
	for _, name := range order {
		l.visit(name)
	}
	l.sink()
	return l.draw(order)
}

// A layering is the work on a layout.
type layering struct {
	shape runs.Shape
	hand  handPlaced
	nodes map[string]*node
	state map[string]int // of the walk through the graph: entered, left
	down  []arc
	up    []arc
}

const (
	entered = 1
	left    = 2
)

// visit walks the graph: an edge to a node that is on the way goes back up.
func (l *layering) visit(name string) {
	if l.state[name] != 0 {
		return
	}
	l.state[name] = entered
	seen := make(map[string]bool)
	for _, to := range l.shape.Edges[name] {
		if to == name || seen[to] {
			continue
		}
		seen[to] = true
		a := arc{from: l.nodes[name], to: l.nodes[to]}
		if l.state[to] == entered {
			l.up = append(l.up, a)
			continue
		}
		l.down = append(l.down, a)
		l.visit(to)
	}
	l.state[name] = left
}

// sink puts each node below all that lead down to it.
func (l *layering) sink() {
	for range l.nodes { // no way down is longer
		moved := false
		for _, a := range l.down {
			if a.to.layer <= a.from.layer {
				a.to.layer, moved = a.from.layer+1, true
			}
		}
		if !moved {
			return
		}
	}
}

// draw gives all their places.
func (l *layering) draw(order []string) drawing {
	var d drawing
	var layers [][]*node
	for _, name := range order {
		n := l.nodes[name]
		d.nodes = append(d.nodes, n)
		for len(layers) <= n.layer {
			layers = append(layers, nil)
		}
		layers[n.layer] = append(layers[n.layer], n)
	}
	for i, layer := range layers {
		l.spread(layer)
		for _, n := range layer {
			n.y = graphEdge + nodeHeight/2 + float64(i)*layerApart
		}
	}
	d.zeroY = graphEdge + nodeHeight/2 + float64(l.hand.above)*layerApart
	l.place(&d)
	l.besides(&d)
	return d
}

// spread puts the nodes of a layer side by side around zero, each about below
// those that lead to it, as far as they have their places already. Where that
// does not tell, those to which many ways lead from afar stand on the right.
func (l *layering) spread(layer []*node) {
	want, afar := make(map[*node]float64), make(map[*node]int)
	width := -float64(nodeApart)
	for _, n := range layer {
		count := 0.0
		for _, a := range l.down {
			switch {
			case a.to != n:
			case a.to.layer == a.from.layer+1:
				want[n], count = want[n]+a.from.x, count+1
			default:
				afar[n]++
			}
		}
		want[n] /= max(count, 1)
		width += n.width + nodeApart
	}
	slices.SortStableFunc(layer, func(a, b *node) int {
		return cmp.Or(cmp.Compare(want[a], want[b]), cmp.Compare(afar[a], afar[b]))
	})
	x := -width / 2
	for _, n := range layer {
		n.x = x + n.width/2
		x += n.width + nodeApart
	}
}

// besides finds lanes for the edges that pass a layer, on the side where their
// end stands, and for those that go back up, on the left. Edges to the same node
// share one.
func (l *layering) besides(d *drawing) {
	least, most := 0.0, 0.0
	for _, n := range d.nodes {
		least, most = min(least, n.left()), max(most, n.right())
	}
	sides := map[float64][]arc{}
	for _, a := range l.down {
		switch {
		case a.placed():
			d.arcs = append(d.arcs, a.free())
			continue
		case a.to.layer == a.from.layer+1:
			d.arcs = append(d.arcs, a)
			continue
		case a.to.x < 0:
			a.side = -1
		default:
			a.side = 1
		}
		sides[a.side] = append(sides[a.side], a)
	}
	for _, a := range l.up {
		if a.placed() {
			d.arcs = append(d.arcs, a.free())
			continue
		}
		a.side = -1
		sides[-1] = append(sides[-1], a)
	}
	edges := map[float64]float64{-1: least, 1: most}
	for _, side := range []float64{1, -1} {
		numbers := lanes(sides[side])
		for _, a := range sides[side] {
			a.lane = edges[side] + side*laneApart*float64(numbers[a.to]+1)
			d.arcs = append(d.arcs, a)
			least, most = min(least, a.lane), max(most, a.lane)
		}
	}
	for _, a := range d.arcs {
		least, most = min(least, a.lane), max(most, a.lane)
	}
	shift := graphEdge - least
	d.zeroX = shift
	for _, n := range d.nodes {
		n.x += shift
	}
	for i := range d.arcs {
		d.arcs[i].lane += shift
	}
	d.width = most - least + 2*graphEdge
}

// lanes numbers the lanes of edges by the nodes that they lead to, the shortest
// innermost. Those that would meet get different ones.
func lanes(arcs []arc) map[*node]int {
	type trunk struct {
		to       *node
		from, up int // layers
	}
	var trunks []*trunk
	for _, a := range arcs {
		first, last := min(a.from.layer, a.to.layer), max(a.from.layer, a.to.layer)
		i := slices.IndexFunc(trunks, func(t *trunk) bool { return t.to == a.to })
		if i < 0 {
			trunks = append(trunks, &trunk{a.to, first, last})
			continue
		}
		trunks[i].from, trunks[i].up = min(trunks[i].from, first), max(trunks[i].up, last)
	}
	slices.SortStableFunc(trunks, func(a, b *trunk) int { return cmp.Compare(a.up-a.from, b.up-b.from) })
	numbers := make(map[*node]int)
	for i, t := range trunks {
		n := 0
		for slices.ContainsFunc(trunks[:i], func(o *trunk) bool {
			return numbers[o.to] == n && o.from <= t.up && t.from <= o.up
		}) {
			n++
		}
		numbers[t.to] = n
	}
	return numbers
}

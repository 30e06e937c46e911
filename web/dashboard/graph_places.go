package dashboard

import "github.com/claybot/claybot/flows"

// handPlaced is where nodes were put by hand.
type handPlaced struct {
	at    flows.Layout
	above int               // rows before the first one that the layout knows: those of triggers
	with  map[string]string // nodes that move with another one, such as parts, by their names
}

// place puts nodes where they were placed by hand, and makes room for them.
func (l *layering) place(d *drawing) {
	move := make(map[string][2]float64)
	for _, n := range d.nodes {
		if at, ok := l.hand.at[n.name]; ok {
			x, y := float64(at.X), d.zeroY+float64(at.Y)
			move[n.name] = [2]float64{x - n.x, y - n.y}
		}
	}
	for _, n := range d.nodes {
		by, ok := move[n.name]
		if !ok {
			by, ok = move[l.hand.with[n.name]]
		}
		if ok {
			n.x, n.y, n.placed = n.x+by[0], n.y+by[1], true
		}
	}
	top, bottom := d.zeroY, 0.0
	for i, n := range d.nodes {
		if i == 0 {
			top, bottom = n.y, n.y
		}
		top, bottom = min(top, n.y), max(bottom, n.y)
	}
	down := graphEdge + nodeHeight/2 - top
	for _, n := range d.nodes {
		n.y += down
	}
	d.zeroY += down
	d.height = 2*graphEdge + nodeHeight + max(bottom-top, 0)
}

// placed reports whether an end of an arc was placed by hand.
func (a arc) placed() bool { return a.from.placed || a.to.placed }

// free finds the way of an arc between nodes that stand anywhere: down, across, or by a lane of its own on
// the right of both.
func (a arc) free() arc {
	const room = 14 // for the tip and a bend
	switch {
	case a.to.y-a.from.y >= nodeHeight+room:
	case a.to.left()-a.from.right() >= room:
		a.across = 1
	case a.from.left()-a.to.right() >= room:
		a.across = -1
	default:
		a.side, a.lane = 1, max(a.from.right(), a.to.right())+laneApart
	}
	return a
}

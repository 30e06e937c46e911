package dashboard

import (
	"fmt"
	"html"
	"html/template"
	"strings"

	"github.com/claybot/claybot/runs"
)

// A graphView is the graph of a run's engine with the way that the run took.
type graphView struct {
	Name string
	SVG  template.HTML
	// Where says in words where the run is.
	Where string
	Nodes []runs.NodeSeen // that were visited
}

// viewGraph draws a graph; nil for one without nodes.
func viewGraph(s runs.Shape, seen runs.GraphView) *graphView {
	if len(s.Edges) == 0 {
		return nil
	}
	v := &graphView{Name: s.Name, Nodes: seen.Nodes, Where: whereWords(seen)}
	v.SVG = template.HTML(pen{seen: seen, label: v.Where}.draw(layout(s))) //nolint:gosec // names are escaped one by one
	return v
}

// whereWords says where a run is in its graph.
func whereWords(seen runs.GraphView) string {
	switch {
	case seen.Current != "" && stateOf(seen, seen.Current).State == runs.NodeWaiting:
		return "It waits at " + seen.Current + "."
	case seen.Current != "" && stateOf(seen, seen.Current).State == runs.NodeRetrying:
		return "It waits for its next try at " + seen.Current + "."
	case seen.Current != "":
		return "It is at " + seen.Current + "."
	case len(seen.Nodes) == 0:
		return "It has not begun."
	}
	last := seen.Nodes[len(seen.Nodes)-1].Node
	for _, e := range seen.Edges {
		if e.To == runs.End {
			return "It has come to its end, from " + e.From + "."
		}
	}
	return "It ended at " + last + "."
}

func stateOf(seen runs.GraphView, node string) runs.NodeSeen {
	for _, n := range seen.Nodes {
		if n.Node == node {
			return n
		}
	}
	return runs.NodeSeen{}
}

// A pen writes a drawing as SVG. Colours are those of the page, by classes.
type pen struct {
	seen  runs.GraphView
	label string
	// steps are nodes that are links, by their names; nil: none are.
	steps map[string]flowStep
	// grips are what the ends of edges stand for that can be dragged, by from and to; nil: none can be.
	grips map[string]map[string]string
	// parts are the nodes that stand for a part of another one, see unfold.
	parts map[string]bool
	// moves: nodes can be moved, and say where they are in the layout.
	moves bool
}

func (p pen) draw(d drawing) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="flow" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="%s" aria-label="%s">`,
		d.width, d.height, d.width, d.height, p.role(), html.EscapeString("The graph. "+p.label))
	for _, over := range []bool{false, true} { // the ways taken lie above the others
		for _, a := range d.arcs {
			if times := p.times(a); times > 0 == over {
				p.arc(&b, a, times)
			}
		}
	}
	for _, n := range d.nodes {
		p.node(&b, n, d)
	}
	for _, a := range d.arcs {
		p.grip(&b, a)
	}
	b.WriteString("</svg>")
	return b.String()
}

// role is that of the drawing: an image hides its links.
func (p pen) role() string {
	if p.steps != nil {
		return "group"
	}
	return "img"
}

// times is how often an edge was taken.
func (p pen) times(a arc) int {
	for _, e := range p.seen.Edges {
		if e.From == a.from.name && e.To == a.to.name {
			return e.Times
		}
	}
	return 0
}

func (p pen) arc(b *strings.Builder, a arc, times int) {
	class := "edge"
	if times > 0 {
		class = "edge taken"
	}
	line, tip := straightArc(a)
	switch {
	case a.side != 0:
		line, tip = sideArc(a)
	case a.across != 0:
		line, tip = acrossArc(a)
	}
	fmt.Fprintf(b, `<g class="%s"><path class="line" d="%s"/><path class="tip" d="%s"/></g>`, class, line, tip)
}

// grip draws what an edge is dragged by.
func (p pen) grip(b *strings.Builder, a arc) {
	stands := p.grips[a.from.name][a.to.name]
	if stands == "" {
		return
	}
	const near, far = 0.84375, 0.15625 // of the curve of straightArc at three quarters
	y1, y2 := a.from.y+nodeHeight/2, a.to.y-nodeHeight/2
	x, y := a.from.x*far+a.to.x*near, y1*0.0156+(y1+y2)/2*0.5625+y2*0.4219
	switch { // ends in a lane lie upon each other, beginnings do not
	case a.across != 0:
		x1, x2 := a.from.x+a.across*a.from.width/2, a.to.x-a.across*a.to.width/2
		x, y = x1*0.0156+(x1+x2)/2*0.5625+x2*0.4219, a.from.y*far+a.to.y*near
	case a.side > 0:
		x, y = (a.from.right()+a.lane)/2, a.from.y+6
	case a.side < 0:
		x, y = (a.from.left()+a.lane)/2, a.from.y+6
	}
	fmt.Fprintf(b, `<circle class="grip" cx="%.1f" cy="%.1f" r="7" data-x="%.1f" data-y="%.1f" data-edge="%s"><title>%s</title></circle>`,
		x, y, a.from.x, a.from.y, html.EscapeString(stands), html.EscapeString(a.from.name+" → "+a.to.name))
}

// straightArc leads down to the next layer.
func straightArc(a arc) (line, tip string) {
	x1, y1, x2, y2 := a.from.x, a.from.y+nodeHeight/2, a.to.x, a.to.y-nodeHeight/2
	mid := (y1 + y2) / 2
	return fmt.Sprintf("M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f", x1, y1, x1, mid, x2, mid, x2, y2-6),
		fmt.Sprintf("M%.1f %.1fl-4 -7h8z", x2, y2)
}

// acrossArc leads to a node beside.
func acrossArc(a arc) (line, tip string) {
	x1, y1, x2, y2 := a.from.x+a.across*a.from.width/2, a.from.y, a.to.x-a.across*a.to.width/2, a.to.y
	mid := (x1 + x2) / 2
	return fmt.Sprintf("M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f", x1, y1, mid, y1, mid, y2, x2-a.across*6, y2),
		fmt.Sprintf("M%.1f %.1fl%.0f -4v8z", x2, y2, -a.across*7)
}

// sideArc leads along a lane. It leaves a node below its middle and comes in
// above it.
func sideArc(a arc) (line, tip string) {
	const turn = 7
	side, from, to := a.side, a.from.right(), a.to.right()
	if side < 0 {
		from, to = a.from.left(), a.to.left()
	}
	y1, y2, up := a.from.y+6, a.to.y-6, 1.0
	if y2 < y1 {
		up = -1
	}
	in := a.lane - side*turn
	return fmt.Sprintf("M%.1f %.1fH%.1fQ%.1f %.1f %.1f %.1fV%.1fQ%.1f %.1f %.1f %.1fH%.1f",
			from, y1, in, a.lane, y1, a.lane, y1+up*turn, y2-up*turn, a.lane, y2, in, y2, to+side*6),
		fmt.Sprintf("M%.1f %.1fl%.0f -4v8z", to, y2, side*7)
}

func (p pen) node(b *strings.Builder, n *node, d drawing) {
	seen, class := stateOf(p.seen, n.name), "node"
	if n.name == runs.End {
		class = "node end"
		for _, e := range p.seen.Edges {
			if e.To == runs.End {
				seen.State = runs.NodeDone
			}
		}
	}
	if seen.State != "" {
		class += " seen " + html.EscapeString(seen.State)
	}
	if n.name == p.seen.Current {
		class += " now"
	}
	if p.parts[n.name] {
		class += " part"
	}
	tag, id, about := "g", "node-"+n.name, n.name
	step, link := p.steps[n.name]
	switch {
	case link:
		tag, id, about, class = "a", step.drawnID(), step.about(), class+step.class()
	case seen.Visits > 0:
		about += ": " + words(seen.State)
	}
	if seen.Visits > 0 {
		about += ", visited " + plural(seen.Visits, "time", "times")
	}
	b.WriteString("<" + tag)
	if p.moves && !p.parts[n.name] {
		fmt.Fprintf(b, ` data-x="%.0f" data-y="%.0f"`, n.x-d.zeroX, n.y-d.zeroY)
		if !link {
			fmt.Fprintf(b, ` tabindex="0" role="img" aria-label="%s"`, html.EscapeString(about))
		}
	}
	if link {
		fmt.Fprintf(b, ` href="%s" aria-label="%s"`, html.EscapeString(step.URL), html.EscapeString(about))
	}
	fmt.Fprintf(b, ` class="%s" id="%s"><title>%s</title><rect x="%.1f" y="%.1f" width="%.1f" height="%d" rx="%d"/><text x="%.1f" y="%.1f">%s</text>`,
		class, html.EscapeString(id), html.EscapeString(about), n.left(), n.y-nodeHeight/2, n.width, nodeHeight, rounding(n.name),
		n.x, n.y+4, html.EscapeString(excerpt(nodeRunes, n.name)))
	if seen.Visits > 0 {
		times := fmt.Sprint(seen.Visits)
		half := 5 + 3.5*float64(len(times))
		x, y := n.right()-4, n.y-nodeHeight/2
		fmt.Fprintf(b, `<rect class="times" x="%.1f" y="%.1f" width="%.1f" height="15" rx="7.500"/><text class="times" x="%.1f" y="%.1f">%s</text>`,
			x-half, y-7.5, 2*half, x, y+3.5, times)
	}
	b.WriteString("</" + tag + ">")
}

// rounding of the corners of a node: the end is a pill.
func rounding(name string) int {
	if name == runs.End {
		return nodeHeight / 2
	}
	return 8
}

package dashboard

import (
	"fmt"
	"html"
	"html/template"
	"net/url"
	"slices"
	"strings"

	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/web"
)

// The measures of the map, in its own units: what takes messages in stands on the left, then the
// workflows that it starts and stopped agents, profiles, and what they use on the right.
const (
	mapWidth, mapHeight = 210, 40 // of a node
	mapTall             = 66      // of a profile, which has ports
	mapGap, mapSpace    = 72, 12  // between columns, and from node to node in one
	mapText             = 24      // characters of a name
	mapPort             = 5       // from the middle of a port to its corners
)

// mapColumn is the column of a kind.
func mapColumn(kind string) int {
	switch kind {
	case nodes.Connector, nodes.Schedule:
		return 0
	case nodes.Flow, nodes.Agent:
		return 1
	case nodes.Profile:
		return 2
	}
	return 3
}

// mapColumns numbers the columns that have nodes.
func mapColumns(all []nodes.View) (number [4]int, n int) {
	var used [4]bool
	for _, x := range all {
		used[mapColumn(x.Kind)] = true
	}
	used[0], used[2], used[3] = true, true, true // a map without workflows looks as it always does
	for i, u := range used {
		if number[i] = n; u {
			n++
		}
	}
	return number, n
}

// A mapPlace is where a node stands.
type mapPlace struct{ x, y, height int }

// in is where lines come to the node, and out where they leave it to another node.
func (p mapPlace) in() (x, y int) { return p.x, p.y + p.height/2 }

func (p mapPlace) out(from, to nodes.Key) (x, y int) {
	if from.Kind == nodes.Profile {
		return p.port(slices.Index(nodes.Ports, nodes.PortOf(to.Kind)))
	}
	return p.x + mapWidth, p.y + p.height/2
}

// port is where a port of a profile is.
func (p mapPlace) port(i int) (x, y int) { return p.x + mapWidth, p.y + 13 + 20*i }

// A mapPen draws the map.
type mapPen struct {
	strings.Builder

	at      map[nodes.Key]mapPlace
	traffic []web.NodeLink
}

// drawNodes draws the map as SVG, with the links on which messages flow. Each node is a link to its page.
func drawNodes(all []nodes.View, traffic []web.NodeLink) template.HTML {
	b := &mapPen{at: make(map[nodes.Key]mapPlace), traffic: traffic}
	ends := [4]int{}
	number, columns := mapColumns(all)
	for _, n := range all {
		column, height := number[mapColumn(n.Kind)], mapHeight
		if n.Kind == nodes.Profile {
			height = mapTall
		}
		b.at[n.Key] = mapPlace{column * (mapWidth + mapGap), ends[column], height}
		ends[column] += height + mapSpace
	}
	width, height := columns*mapWidth+(columns-1)*mapGap+mapPort+4, slices.Max(ends[:])
	fmt.Fprintf(b, `<svg class="map" viewBox="-2 -2 %d %d" width="%d" height="%d" role="group" aria-label="The map">`, width, height, width, height)
	for _, n := range all {
		for _, k := range n.Uses {
			b.line(n.Key, k)
		}
		for _, l := range traffic { // also where the settings name no use
			if l.From == n.Key && !slices.Contains(n.Uses, l.To) {
				b.line(l.From, l.To)
			}
		}
	}
	for _, n := range all {
		b.node(n)
	}
	b.WriteString("</svg>")
	return template.HTML(b.String()) //nolint:gosec // names are escaped one by one
}

// line draws the line from a node to a node that it uses.
func (b *mapPen) line(from, to nodes.Key) {
	start, end := b.at[from], b.at[to]
	if end.height == 0 || from == to {
		return
	}
	class, title := "use", ""
	if from.Kind == nodes.Profile {
		class += " " + nodes.PortOf(to.Kind)
	}
	if slices.Contains(b.traffic, web.NodeLink{From: from, To: to}) {
		class += " flowing"
		title = "<title>" + html.EscapeString(fmt.Sprintf(nodeFlowing, from, to)) + "</title>"
	}
	x1, y1 := start.out(from, to)
	x2, y2 := end.in()
	fmt.Fprintf(b, `<path class="%s" d="M%d %dC%d %d %d %d %d %d">%s</path>`, class, x1, y1, x1+mapGap/2, y1, x2-mapGap/2, y2, x2, y2, title)
}

// node draws a node with its state and, of a profile, its ports: a port that nothing hangs on is hollow.
func (b *mapPen) node(n nodes.View) {
	p, m, name, state := b.at[n.Key], nodeMarks[n.State], mapText, n.Kind+" · "
	if n.Kind == nodes.Profile {
		name -= 5
	}
	label := n.Key.String() + ": " + m.Words
	if busy(b.traffic, n.Key) {
		label += ", " + nodeBusy
	}
	fmt.Fprintf(b, `<a id="map-%s" href="%s" class="%s" aria-label="%s"><rect x="%d" y="%d" width="%d" height="%d" rx="9"/><circle cx="%d" cy="%d" r="5"/><text x="%d" y="%d">%s</text><text class="kind" x="%d" y="%d">%s<tspan class="state">%s</tspan></text>`,
		domID(n.Key.String()), html.EscapeString(nodeURL(n.Key)), m.Tone, html.EscapeString(label), p.x, p.y, mapWidth, p.height,
		p.x+16, p.y+p.height/2, p.x+30, p.y+p.height/2-3, html.EscapeString(cutTo(n.Name, name)), p.x+30, p.y+p.height/2+12, html.EscapeString(state), html.EscapeString(n.State))
	if n.Kind == nodes.Profile {
		for i, port := range nodes.Ports {
			x, y := p.port(i)
			class := "port " + port
			if !slices.ContainsFunc(n.Uses, func(k nodes.Key) bool { return nodes.PortOf(k.Kind) == port }) {
				class += " hollow"
			}
			fmt.Fprintf(b, `<path class="%s" d="M%d %dl%d %dl%d %dl-%d %dz"/><text class="port-name" x="%d" y="%d">%s</text>`,
				class, x-mapPort, y, mapPort, -mapPort, mapPort, mapPort, mapPort, mapPort, x-10, y+4, port)
		}
	}
	b.WriteString("</a>")
}

// busy reports whether messages flow to or from a node.
func busy(traffic []web.NodeLink, k nodes.Key) bool {
	return slices.ContainsFunc(traffic, func(l web.NodeLink) bool { return l.From == k || l.To == k })
}

// nodeURL is the address of the page of a node.
func nodeURL(k nodes.Key) string {
	return "/ui/nodes/" + url.PathEscape(k.Kind) + "/" + url.PathEscape(k.Name)
}

// cutTo shortens a name to n characters.
func cutTo(name string, n int) string {
	if r := []rune(name); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return name
}

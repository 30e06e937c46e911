package dashboard

import (
	"fmt"
	"html"
	"html/template"
	"slices"
	"strings"

	"github.com/claybot/claybot/nodes"
)

// The measures of the map, in its own units: what takes messages in stands on the left, then the
// workflows that it starts and stopped agents, profiles, and what they use on the right.
const (
	mapWidth, mapHeight = 210, 40 // of a node
	mapGap, mapLine     = 90, 54  // between columns, and from node to node in one
	mapText             = 24      // characters of a name
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

// drawNodes draws the map as SVG. Each node is a link to its row.
func drawNodes(all []nodes.View) template.HTML {
	var b strings.Builder
	at := make(map[nodes.Key][2]int)
	rows := [4]int{}
	number, columns := mapColumns(all)
	for _, n := range all {
		column := number[mapColumn(n.Kind)]
		at[n.Key] = [2]int{column * (mapWidth + mapGap), rows[column] * mapLine}
		rows[column]++
	}
	width, height := columns*mapWidth+(columns-1)*mapGap+4, slices.Max(rows[:])*mapLine
	fmt.Fprintf(&b, `<svg class="map" viewBox="-2 -2 %d %d" width="%d" height="%d" role="group" aria-label="The map">`, width, height, width, height)
	for _, n := range all {
		for _, k := range n.Uses {
			to, there := at[k]
			if !there {
				continue
			}
			from := at[n.Key]
			x1, y1, x2, y2 := from[0]+mapWidth, from[1]+mapHeight/2, to[0], to[1]+mapHeight/2
			fmt.Fprintf(&b, `<path class="use" d="M%d %dC%d %d %d %d %d %d"/>`, x1, y1, x1+mapGap/2, y1, x2-mapGap/2, y2, x2, y2)
		}
	}
	for _, n := range all {
		x, y := at[n.Key][0], at[n.Key][1]
		m := nodeMarks[n.State]
		fmt.Fprintf(&b, `<a href="#node-%s" class="%s" aria-label="%s"><rect x="%d" y="%d" width="%d" height="%d" rx="9"/><circle cx="%d" cy="%d" r="5"/><text x="%d" y="%d">%s</text><text class="kind" x="%d" y="%d">%s</text></a>`,
			domID(n.Key.String()), m.Tone, html.EscapeString(n.Key.String()+": "+m.Words), x, y, mapWidth, mapHeight,
			x+16, y+mapHeight/2, x+30, y+17, html.EscapeString(cutTo(n.Name, mapText)), x+30, y+32, html.EscapeString(n.Kind))
	}
	b.WriteString("</svg>")
	return template.HTML(b.String()) //nolint:gosec // names are escaped one by one
}

// cutTo shortens a name to n characters.
func cutTo(name string, n int) string {
	if r := []rune(name); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return name
}

package explore

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/claybot/claybot/devices"
)

// The measures of the picture, in pixels.
const (
	boxWidth  = 176
	boxHeight = 48
	gapX      = 28
	gapY      = 52
	margin    = 20
	perRow    = 8
)

// A place is where the box of a screen is.
type place struct{ x, y int }

// Picture draws the map of a walk as an SVG: a layer for each number of actions
// from the first screen, a box for each screen, an arrow for each way between two
// of them. It needs no script, no font of its own and nothing from elsewhere, and
// holds texts of the application as texts only. Of more than 200 screens, the
// first are drawn.
func Picture(o Output) []byte {
	screens := o.Screens[:min(len(o.Screens), maxScreens)]
	places, width, height := layout(screens)
	failed := make(map[string]bool)
	for _, f := range o.Errors {
		failed[f.Screen] = true
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" font-family="sans-serif" font-size="12">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, "<title>%s</title>\n", text("Map of "+o.URL))
	b.WriteString(`<style>svg{color:#222;background:#fff}@media(prefers-color-scheme:dark){svg{color:#ddd;background:#181818}}` +
		`.box{fill:none;stroke:currentColor}.dead{stroke:#c0392b;stroke-width:2;stroke-dasharray:5 3}.failed{fill:#e67e22;fill-opacity:.25}` +
		`.way{fill:none;stroke:currentColor;stroke-opacity:.45;marker-end:url(#tip)}text{fill:currentColor}.small{font-size:10px;fill-opacity:.7}.end{fill:#c0392b;font-size:10px}</style>` + "\n")
	b.WriteString(`<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="currentColor" fill-opacity=".6"/></marker></defs>` + "\n")
	for _, v := range ways(o.Transitions, places) {
		fmt.Fprintf(&b, `<path class="way" d="%s"><title>%s</title></path>`+"\n", curve(places[v.From], places[v.To]), text(v.Label))
	}
	for _, s := range screens {
		box(&b, s, places[s.ID], failed[s.ID])
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// layout gives each screen a place, layer by layer.
func layout(screens []FoundScreen) (places map[string]place, width, height int) {
	layers := make(map[int][]string)
	for _, s := range screens {
		layers[max(s.Depth, 0)] = append(layers[max(s.Depth, 0)], s.ID)
	}
	widest := 1
	for _, ids := range layers {
		widest = max(widest, min(len(ids), perRow))
	}
	width = 2*margin + widest*boxWidth + (widest-1)*gapX
	places = make(map[string]place)
	y := margin
	for _, depth := range slices.Sorted(maps.Keys(layers)) {
		for row := range slices.Chunk(layers[depth], perRow) {
			x := (width - len(row)*boxWidth - (len(row)-1)*gapX) / 2
			for _, id := range row {
				places[id] = place{x, y}
				x += boxWidth + gapX
			}
			y += boxHeight + gapY
		}
	}
	return places, width, max(y-gapY, margin+boxHeight) + margin
}

// ways are the moves between two screens that have places, one for each pair.
func ways(all []Transition, places map[string]place) []Transition {
	var kept []Transition
	seen := make(map[[2]string]bool)
	for _, v := range all {
		_, from := places[v.From]
		_, to := places[v.To]
		pair := [2]string{v.From, v.To}
		if from && to && v.From != v.To && v.Kind != devices.Back && !seen[pair] {
			seen[pair] = true
			kept = append(kept, v)
		}
	}
	return kept
}

// curve is the path of an arrow: down from the bottom of a box to the top of a
// lower one, else from side to side.
func curve(from, to place) string {
	mid := boxWidth / 2
	switch cmp.Compare(to.y, from.y) {
	case 1:
		x1, y1, x2, y2 := from.x+mid, from.y+boxHeight, to.x+mid, to.y
		return fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, x1, y1+gapY/2, x2, y2-gapY/2, x2, y2)
	case -1:
		x1, y1, x2, y2 := from.x+mid+30, from.y, to.x+mid+30, to.y+boxHeight
		return fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, x1+50, y1-gapY/2, x2+50, y2+gapY/2, x2, y2)
	}
	x1, x2, y, lift := from.x+mid, to.x+mid, from.y, gapY/2
	return fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y, x1, y-lift, x2, y-lift, x2, y)
}

func box(b *bytes.Buffer, s FoundScreen, at place, failed bool) {
	class := "box"
	if s.Dead {
		class += " dead"
	}
	if failed {
		class += " failed"
	}
	fmt.Fprintf(b, `<g><title>%s</title><rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="6"/>`,
		text(s.Title+" "+devices.Plain(s.URL)), class, at.x, at.y, boxWidth, boxHeight)
	title, under := s.Title, strconv.Itoa(s.Actions)+" actions"
	if title == "" {
		title = "(no title)"
	}
	if u, err := url.Parse(s.URL); err == nil && s.URL != "" {
		under = u.EscapedPath()
	}
	fmt.Fprintf(b, `<text x="%d" y="%d">%s</text><text class="small" x="%d" y="%d">%s</text>`,
		at.x+8, at.y+19, text(short(title, 25)), at.x+8, at.y+36, text(short(under, 30)))
	if s.Dead {
		fmt.Fprintf(b, `<text class="end" x="%d" y="%d">dead end</text>`, at.x+8, at.y+boxHeight+12)
	}
	b.WriteString("</g>\n")
}

// text is a text within XML. What no XML may hold is left out.
func text(s string) string {
	var b bytes.Buffer
	if err := xml.EscapeText(&b, []byte(devices.Line(s, 400))); err != nil { // a buffer takes everything
		return ""
	}
	return b.String()
}

// short cuts a text to at most n letters.
func short(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

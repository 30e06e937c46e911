package runs

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// Drafts are the texts of a run that are being written, here or on another member.
type drafts struct{ texts []*growing }

// A growing is the text of a step that is being written.
type growing struct {
	node          string
	step, attempt int
	text          string
	at            time.Time // when it last grew

	// from is the node that writes the text, as which of its attempts; empty for
	// this one. Of a text of this node, told is how much the others were told of
	// attempt toldAttempt.
	from              string
	fromAttempt       int
	told, toldAttempt int
}

// A mark is how much of a text a reader has.
type mark struct {
	of              *growing
	attempt, offset int
}

// stale reports whether no text has grown after a time.
func (d *drafts) stale(since time.Time) bool {
	return !slices.ContainsFunc(d.texts, func(g *growing) bool { return g.at.After(since) })
}

// grow is told all of the text of a step and reports whether that is news.
func (d *drafts) grow(node string, step int, text string) bool {
	i := slices.IndexFunc(d.texts, func(g *growing) bool { return g.node == node && g.step == step })
	if i < 0 {
		if text == "" {
			return false
		}
		d.texts = append(d.texts, &growing{node: node, step: step, attempt: 1, text: text, at: time.Now()})
		return true
	}
	g := d.texts[i]
	if g.from != "" { // the run has come here
		g.from, g.told, g.toldAttempt = "", 0, 0
		if g.text != "" {
			g.attempt++
		}
		g.text, g.at = text, time.Now()
		return true
	}
	if len(g.text) == len(text) && g.text == text {
		return false
	}
	if !strings.HasPrefix(text, g.text) {
		g.attempt++
	}
	g.text, g.at = text, time.Now()
	return true
}

// end drops the texts that an event brings to their end, and returns their steps.
func (d *drafts) end(e claybot.Event) (over []int) {
	switch {
	case e.Type.Ends() || e.Type == claybot.EventAwaitingInput:
		for _, g := range d.texts {
			over = append(over, g.step)
		}
		d.texts = nil
	case e.Type == claybot.EventAssistantMessage:
		var said struct {
			Step int `json:"step"`
		}
		if json.Unmarshal(e.Data, &said) == nil {
			d.texts = slices.DeleteFunc(d.texts, func(g *growing) bool { return g.step == said.Step })
			over = []int{said.Step}
		}
	}
	return over
}

// dropRemote drops the texts that other members write.
func (d *drafts) dropRemote() {
	d.texts = slices.DeleteFunc(d.texts, func(g *growing) bool { return g.from != "" })
}

// untell has the texts of this member told to the others from the beginning, and
// reports whether there are any.
func (d *drafts) untell() (any bool) {
	for _, g := range d.texts {
		if g.from == "" && g.text != "" {
			g.told, any = 0, true
		}
	}
	return any
}

// behind reports whether other members lack something of the texts.
func (d *drafts) behind() bool {
	return slices.ContainsFunc(d.texts, func(g *growing) bool { return g.from == "" && g.behind() })
}

// news returns what a reader with these marks does not have of the texts, and
// its marks from now on.
func (d *drafts) news(run claybot.RunID, marks []mark) ([]*Delta, []mark) {
	if len(d.texts) == 0 {
		return nil, nil
	}
	var out []*Delta
	now := make([]mark, 0, len(d.texts))
	for _, g := range d.texts {
		m := mark{of: g, attempt: g.attempt}
		had := 0
		if i := slices.IndexFunc(marks, func(m mark) bool { return m.of == g }); i >= 0 {
			had = marks[i].offset
			if marks[i].attempt == g.attempt {
				m = marks[i]
			}
		}
		if m.offset < len(g.text) || m.offset == 0 && had > 0 {
			out = append(out, &Delta{
				Run: run, Node: g.node, Step: g.step, Attempt: g.attempt,
				Offset: m.offset, Text: g.text[m.offset:],
			})
			m.offset = len(g.text)
		}
		now = append(now, m)
	}
	return out, now
}

// fit puts a piece where it belongs: behind the one before of the same attempt, or
// at the beginning. It returns false when there is no such place.
func (d *drafts) fit(from string, p storage.Growth) bool {
	i := slices.IndexFunc(d.texts, func(g *growing) bool { return g.node == p.Node && g.step == p.Step })
	if i < 0 {
		if p.Offset > 0 {
			return false
		}
		if p.Text == "" {
			return true
		}
		d.texts = append(d.texts, &growing{node: p.Node, step: p.Step})
		i = len(d.texts) - 1
	}
	g := d.texts[i]
	if g.from != from || g.fromAttempt != p.Attempt {
		if p.Offset > 0 {
			return false
		}
		g.from, g.fromAttempt, g.text, g.attempt = from, p.Attempt, "", g.attempt+1
	}
	if p.Offset > len(g.text) {
		return false
	}
	if end := p.Offset + len(p.Text); end > len(g.text) {
		g.text = g.text[:p.Offset] + p.Text
	}
	g.at = time.Now()
	return true
}

// behind reports whether other nodes lack something of the text.
func (g *growing) behind() bool { return g.told < g.whole() || g.toldAttempt != g.attempt }

// whole is how much of the text can be told: up to the last whole character. What
// is no UTF-8 cannot: its offsets would not survive the way.
func (g *growing) whole() int {
	n := len(g.text)
	for k := n - 1; k >= max(0, n-utf8.UTFMax); k-- {
		if utf8.RuneStart(g.text[k]) {
			if !utf8.FullRuneInString(g.text[k:]) {
				n = k
			}
			break
		}
	}
	if n <= g.told || !utf8.ValidString(g.text[g.told:n]) {
		return g.told
	}
	return n
}

// pieces are what other nodes lack, a limited number of them, and count as told.
func (d *drafts) pieces(run claybot.RunID) []storage.Growth {
	var out []storage.Growth
	for _, g := range d.texts {
		if g.from != "" {
			continue
		}
		piece := storage.Growth{Run: run, Node: g.node, Step: g.step, Attempt: g.attempt}
		if g.toldAttempt != g.attempt {
			if g.text == "" && g.toldAttempt > 0 {
				out = append(out, piece) // the one before is not to be read any more
			}
			g.toldAttempt, g.told = g.attempt, 0
		}
		for whole := g.whole(); g.told < whole && len(out) < tellPieces; {
			end := g.told + cut(g.text[g.told:whole])
			piece.Offset, piece.Text = g.told, g.text[g.told:end]
			out, g.told = append(out, piece), end
		}
	}
	return out
}

// cut is how much of the beginning of a text makes one piece: whole characters,
// and no more than fit when they are written as JSON.
func cut(text string) int {
	size := 0
	for i, r := range text {
		switch {
		case r == '"' || r == '\\':
			size += 2
		case r < ' ' || r == '<' || r == '>' || r == '&' || r == '\u2028' || r == '\u2029' || r == utf8.RuneError:
			size += 6
		default:
			size += utf8.RuneLen(r)
		}
		if size > pieceBytes {
			return i
		}
	}
	return len(text)
}

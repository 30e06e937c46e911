package runs

import (
	"cmp"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// How growing text goes from the node that writes it to the nodes where it is
// read.
const (
	watchedEvery = 5 * time.Second  // a node says so of what is read there
	watchedFor   = 15 * time.Second // the others believe it
	askAgain     = 4 * time.Second  // a node that says so again sooner has lost something
	askEvery     = time.Second      // it does so at most this often
	asksToBegin  = 2                // as the first may come long after the one before
	hereFor      = 5 * time.Second  // after the last growth here, a text is written here
	tellEvery    = 100 * time.Millisecond
	pieceBytes   = 4 << 10 // of a piece, as JSON
	tellPieces   = 16      // at a time
	firstCrowd   = 1024
)

// An audience is where else a run is read: when each node last said so.
type audience map[string]time.Time

// NewSharedHub returns a Hub for a store that several nodes share, and that tells
// the other nodes of growing texts: tell passes a hint to all of them, without
// blocking; see storage.Notifications. The store tells by itself of what is stored.
func NewSharedHub(tell func(storage.Notification)) *Hub {
	h := NewHub()
	h.tellOthers, h.crowds, h.crowdSweep = tell, make(map[claybot.RunID]audience), firstCrowd
	return h
}

// Heard receives the hints of other members. Nothing of it is believed: readers of
// the runs look into the store, and a piece of text is shown where it fits. The
// same hint again, or none, is harmless; one without content says that some may
// have been lost. It neither blocks nor uses the store.
func (h *Hub) Heard(hint storage.Notification) {
	h.mu.Lock()
	defer h.mu.Unlock()
	release(&h.changed)
	lost := len(hint.Runs)+len(hint.Watched)+len(hint.Grown)+len(hint.Dests)+len(hint.Sent)+len(hint.Freed)+len(hint.Cancel) == 0 && !hint.Due
	if lost || len(hint.Runs) > 0 {
		release(&h.events)
	}
	if lost {
		for _, f := range h.feeds {
			f.rumor()
		}
	}
	for _, run := range hint.Runs {
		if f := h.feeds[run]; f != nil {
			f.rumor()
		}
	}
	if h.tellOthers == nil {
		return
	}
	for _, run := range hint.Watched {
		h.watchedBy(run, hint.Member)
	}
	for rest := hint.Grown; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].Run == rest[0].Run {
			n++
		}
		if f := h.feeds[rest[0].Run]; f != nil {
			f.heard(cmp.Or(hint.Member, "another"), rest[:n])
		}
		rest = rest[n:]
	}
}

// Stir wakes the waiters of Changed: other nodes may have changed something
// of which no hint has told.
func (h *Hub) Stir() {
	h.mu.Lock()
	defer h.mu.Unlock()
	release(&h.changed)
}

// watchedBy is told that a run is read on another node. One that begins to read,
// or has lost a piece, is told the text from its beginning.
func (h *Hub) watchedBy(run claybot.RunID, node string) {
	now := time.Now()
	crowd := h.crowds[run]
	if crowd == nil {
		if len(h.crowds) >= h.crowdSweep {
			h.sweepCrowds(now)
		}
		crowd = make(audience)
		h.crowds[run] = crowd
	}
	last, known := crowd[node]
	crowd[node] = now
	f := h.feeds[run]
	if f == nil || known && now.Sub(last) >= askAgain && now.Sub(last) < watchedFor {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	again := false
	for _, g := range f.texts {
		if g.from == "" && g.text != "" {
			g.told, again = 0, true
		}
	}
	if again {
		h.tellSoon(run, f)
	}
}

// sweepCrowds forgets who read long ago.
func (h *Hub) sweepCrowds(now time.Time) {
	for run, crowd := range h.crowds {
		if !crowd.there(now) {
			delete(h.crowds, run)
		}
	}
	h.crowdSweep = max(firstCrowd, 2*len(h.crowds))
}

// there reports whether the run is read elsewhere.
func (a audience) there(now time.Time) bool {
	for node, at := range a {
		if now.Sub(at) < watchedFor {
			return true
		}
		delete(a, node)
	}
	return false
}

// tellSoon has the growing texts of a run told to other nodes: soon, and not more
// often than every 100 ms. Both locks are held.
func (h *Hub) tellSoon(run claybot.RunID, f *feed) {
	if f.telling || !h.crowds[run].there(time.Now()) {
		return
	}
	f.telling = true
	time.AfterFunc(max(0, time.Until(f.toldAt.Add(tellEvery))), func() { h.tellGrown(run, f) })
}

// tellGrown tells what other nodes do not have of the growing texts of a run, one
// piece at a time, as hints are small.
func (h *Hub) tellGrown(run claybot.RunID, f *feed) {
	f.mu.Lock()
	pieces := f.pieces(run)
	f.mu.Unlock()
	for _, g := range pieces { // one after another: only this function tells of the feed
		h.tellOthers(storage.Notification{Grown: []storage.Growth{g}})
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.telling, f.toldAt = false, time.Now()
	if slices.ContainsFunc(f.texts, func(g *growing) bool { return g.from == "" && g.behind() }) {
		h.tellSoon(run, f)
	}
}

// attend tells other nodes, now and then, that a run is read here, unless its text
// is written here.
func (h *Hub) attend(run claybot.RunID, f *feed, now time.Time) {
	if h.tellOthers == nil || !f.unattended(now) {
		return
	}
	h.tellOthers(storage.Notification{Watched: []claybot.RunID{run}})
}

// unattended reports whether it is time to say that the run is read here, and
// takes it as said.
func (f *feed) unattended(now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.Sub(f.here) < hereFor || f.ended {
		return false
	}
	every := watchedEvery
	if f.lost > 0 {
		every = askEvery
	}
	if now.Sub(f.said) < every {
		return false
	}
	f.said, f.lost = now, max(0, f.lost-1)
	return true
}

// rumor is told that another node has written to the run: somebody has to look.
func (f *feed) rumor() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.here = time.Time{}
	if f.readers > 0 {
		f.look = true
	}
	release(&f.wake)
}

// lookAgain lets another reader look, as the one that was to could not.
func (f *feed) lookAgain() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.look = true
	release(&f.wake)
}

// heard is told pieces of the text that another node writes. One that does not
// follow on what is known is left out: the event of the step has all of it, and
// the writer is asked to begin anew.
func (f *feed) heard(from string, pieces []storage.Growth) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.readers == 0 || f.ended || time.Since(f.here) < hereFor {
		return
	}
	for _, p := range pieces {
		if !slices.Contains(f.over, p.Step) && !f.fit(from, p) {
			f.lost = asksToBegin
		}
	}
	release(&f.grew)
}

// fit puts a piece where it belongs: behind the one before of the same attempt, or
// at the beginning. It returns false when there is no such place.
func (f *feed) fit(from string, p storage.Growth) bool {
	i := slices.IndexFunc(f.texts, func(g *growing) bool { return g.node == p.Node && g.step == p.Step })
	if i < 0 {
		if p.Offset > 0 {
			return false
		}
		if p.Text == "" {
			return true
		}
		f.texts = append(f.texts, &growing{node: p.Node, step: p.Step})
		i = len(f.texts) - 1
	}
	g := f.texts[i]
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
func (f *feed) pieces(run claybot.RunID) []storage.Growth {
	var out []storage.Growth
	for _, g := range f.texts {
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

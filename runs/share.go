package runs

import (
	"cmp"
	"slices"
	"time"

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
	endedSteps   = 32 // whose text is complete are remembered
)

// An audience is where else a run is read: when each node last said so.
type audience map[string]time.Time

// A sharing is what a feed knows of the other members of the store.
type sharing struct {
	here    time.Time // when a text of the run last grew on this member
	over    []int     // steps whose text is complete, the newest last
	said    time.Time // when the others were last told that the run is read here
	lost    int       // a piece of text is missing: so often are they told sooner
	telling bool      // the growth of texts is being told to the others, or will be
	toldAt  time.Time // when it was last
}

// stepOver notes that the text of a step is complete.
func (s *sharing) stepOver(step int) {
	if slices.Contains(s.over, step) {
		return
	}
	if len(s.over) == endedSteps {
		s.over = s.over[1:]
	}
	s.over = append(s.over, step)
}

// sayAgain reports whether it is time to say that the run is read here, and takes it
// as said.
func (s *sharing) sayAgain(now time.Time) bool {
	if now.Sub(s.here) < hereFor {
		return false
	}
	every := watchedEvery
	if s.lost > 0 {
		every = askEvery
	}
	if now.Sub(s.said) < every {
		return false
	}
	s.said, s.lost = now, max(0, s.lost-1)
	return true
}

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
	if f.drafts.untell() {
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
	if f.shared.telling || !h.crowds[run].there(time.Now()) {
		return
	}
	f.shared.telling = true
	time.AfterFunc(max(0, time.Until(f.shared.toldAt.Add(tellEvery))), func() { h.tellGrown(run, f) })
}

// tellGrown tells what other nodes do not have of the growing texts of a run, one
// piece at a time, as hints are small.
func (h *Hub) tellGrown(run claybot.RunID, f *feed) {
	f.mu.Lock()
	pieces := f.drafts.pieces(run)
	f.mu.Unlock()
	for _, g := range pieces { // one after another: only this function tells of the feed
		h.tellOthers(storage.Notification{Grown: []storage.Growth{g}})
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shared.telling, f.shared.toldAt = false, time.Now()
	if f.drafts.behind() {
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
	return !f.ring.ended && f.shared.sayAgain(now)
}

// rumor is told that another node has written to the run: a reader has to look.
func (f *feed) rumor() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shared.here = time.Time{}
	f.look = f.look || f.readers > 0
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
	if f.readers == 0 || f.ring.ended || time.Since(f.shared.here) < hereFor {
		return
	}
	for _, p := range pieces {
		if !slices.Contains(f.shared.over, p.Step) && !f.drafts.fit(from, p) {
			f.shared.lost = asksToBegin
		}
	}
	release(&f.grew)
}

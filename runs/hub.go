package runs

import (
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// A Hub tells those who watch runs that there is something new. A store tells
// the Hub of its commits, engines of the text they write; Watch and Relay
// listen. A Hub has no goroutine that stays and keeps nothing of a run that
// has no watchers and writes no text.
//
// Where several nodes share the store, each has a Hub. The store tells a Hub of
// what the others have committed (Heard), and its readers look there; the ring of
// newest events is good for what was seen to follow without a gap, whichever node wrote
// it. A text is told to the other nodes only while it is read there: a node says
// so when a reader begins and every 5 s from then on, and is told the text so far
// and then its growth, in pieces with their offsets. What is lost on the way comes
// with the event that ends the step.
//
// What a Hub says are hints: a reader that misses one looks into the store
// within a second. All methods may be called by many goroutines.
type Hub struct {
	mu      sync.Mutex // before that of a feed
	feeds   map[claybot.RunID]*feed
	sweep   int           // the number of feeds at which abandoned texts are looked for
	changed chan struct{} // closed with the next commit; nil without waiters
	events  chan struct{} // the same for commits with events

	// Of a Hub that is one of several; see NewSharedHub.
	tellOthers func(storage.Notification)
	crowds     map[claybot.RunID]audience
	crowdSweep int // the number of crowds at which old ones are looked for
}

const (
	firstSweep = 256
	abandoned  = 10 * time.Minute // without growth, no process writes that text any more
)

// NewHub returns a Hub that has heard of nothing yet.
func NewHub() *Hub { return &Hub{feeds: make(map[claybot.RunID]*feed), sweep: firstSweep} }

// Committed receives every commit of a store, in order, after they are
// durable: give it to the store as its hook. It neither blocks nor uses the
// store, and keeps the events, which must not be changed any more.
func (h *Hub) Committed(c storage.Commit) {
	h.mu.Lock()
	defer h.mu.Unlock()
	release(&h.changed)
	if len(c.Events) > 0 {
		release(&h.events)
	}
	for rest := c.Events; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].Run == rest[0].Run {
			n++
		}
		h.tell(rest[0].Run, rest[:n])
		rest = rest[n:]
	}
	for _, id := range c.Joined {
		h.tell(id, nil)
	}
}

// tell hands the events of one run to its feed, if there is one.
func (h *Hub) tell(run claybot.RunID, events []claybot.Event) {
	f := h.feeds[run]
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range events {
		f.endText(e)
		if f.readers > 0 {
			f.ring.add(&sealed{event: e})
		}
	}
	release(&f.wake)
	if f.idle() {
		delete(h.feeds, run)
	}
}

// Changed returns a channel that is closed with the next commit of anything.
// Many commits may pass before the caller asks for the next channel.
func (h *Hub) Changed() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return waiting(&h.changed)
}

// happened is Changed for commits that have events.
func (h *Hub) happened() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return waiting(&h.events)
}

// Grow tells the text of a step as far as it is written: all of it, each time
// it has grown. Readers get what they do not have yet. A text that does not
// continue the one before is a new attempt at the step. The text is dropped
// when the event of the answer, a pause or the end of the run commits. Grow
// does not block.
func (h *Hub) Grow(run claybot.RunID, node string, step int, text string) {
	h.mu.Lock()
	f := h.feeds[run]
	if f == nil {
		if text == "" {
			h.mu.Unlock()
			return
		}
		f = h.open(run)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if h.tellOthers == nil {
		h.mu.Unlock()
	} else {
		defer h.mu.Unlock() // who reads elsewhere is looked up
	}
	if f.grow(node, step, text) {
		release(&f.grew)
		if h.tellOthers != nil {
			h.tellSoon(run, f)
		}
	}
}

// open makes the feed of a run.
func (h *Hub) open(run claybot.RunID) *feed {
	if len(h.feeds) >= h.sweep {
		h.forget(time.Now().Add(-abandoned))
		h.sweep = max(firstSweep, 2*len(h.feeds))
	}
	f := new(feed)
	h.feeds[run] = f
	return f
}

// forget drops feeds without readers whose text has not grown since a
// time: their runs went on elsewhere.
func (h *Hub) forget(since time.Time) {
	for run, f := range h.feeds {
		f.mu.Lock()
		if f.readers == 0 && f.drafts.stale(since) {
			delete(h.feeds, run)
		}
		f.mu.Unlock()
	}
}

// join makes the caller a reader of a run, until leave.
func (h *Hub) join(run claybot.RunID) *feed {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.feeds[run]
	if f == nil {
		f = h.open(run)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.readers++
	return f
}

// leave ends what join began.
func (h *Hub) leave(run claybot.RunID, f *feed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.readers--
	if f.readers == 0 {
		// No node tells the feed of events from now on: what it knows grows old.
		f.ring, f.look = ring{}, false
		f.drafts.dropRemote() // without a reader, no member is asked for their pieces
		f.shared.over, f.shared.lost = nil, 0
	}
	if f.idle() && h.feeds[run] == f {
		delete(h.feeds, run)
	}
}

// waiting returns the channel that release will close. Both are called with
// the lock of its owner.
func waiting(c *chan struct{}) <-chan struct{} {
	if *c == nil {
		*c = make(chan struct{})
	}
	return *c
}

func release(c *chan struct{}) {
	if *c != nil {
		close(*c)
		*c = nil
	}
}

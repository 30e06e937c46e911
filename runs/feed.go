package runs

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
)

// The newest events that a feed keeps for its readers; who is further behind
// reads the store.
const (
	ringEvents = 256
	ringBytes  = 1 << 20
	endedSteps = 32 // whose text is complete are remembered
)

// A feed is what a Hub knows of one run that is watched, or writes a text.
type feed struct {
	mu      sync.Mutex
	readers int
	wake    chan struct{} // closed with the next event; nil while nobody waits
	grew    chan struct{} // closed when a text grows; nil while nobody waits

	// ring holds the newest events without gaps; the seq of its last one is
	// last, 0 when none is known.
	ring  []*sealed
	bytes int
	last  int64
	ended bool // last is that of the last event of the run

	texts  []*growing
	looked time.Time // when a reader last looked into the store for all

	// What follows is of stores that several nodes share.
	shared  bool
	look    bool      // another node has, or may have, written to the run
	here    time.Time // when a text of the run last grew on this node
	over    []int     // steps whose text is complete, the newest last
	said    time.Time // when the others were last told that the run is read here
	lost    int       // a piece of text is missing: so often are they told sooner
	telling bool      // the growth of texts is being told to the others, or will be
	toldAt  time.Time // when it was last
}

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

// idle reports whether the feed is unused.
func (f *feed) idle() bool { return f.readers == 0 && len(f.texts) == 0 }

// stale reports whether no text has grown after a time.
func (f *feed) stale(since time.Time) bool {
	return !slices.ContainsFunc(f.texts, func(g *growing) bool { return g.at.After(since) })
}

// add puts an event behind the others. Known ones are left out; after a gap
// the ring begins anew.
func (f *feed) add(s *sealed) {
	if s.event.Seq <= f.last {
		return
	}
	if s.event.Seq != f.last+1 {
		f.ring, f.bytes = nil, 0
	}
	f.ring = append(f.ring, s)
	f.bytes += s.size()
	f.last = s.event.Seq
	f.ended = f.ended || s.event.Type.Ends()
	for len(f.ring) > ringEvents || f.bytes > ringBytes {
		f.bytes -= f.ring[0].size()
		f.ring[0] = nil
		f.ring = f.ring[1:]
	}
}

// learn is told what a reader found in the store and returns the event as all
// readers share it.
func (f *feed) learn(e claybot.Event) *sealed {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.endText(e)
	if e.Seq <= f.last {
		if i := len(f.ring) - 1 - int(f.last-e.Seq); i >= 0 {
			return f.ring[i]
		}
		return &sealed{event: e}
	}
	s := &sealed{event: e}
	f.add(s)
	release(&f.wake)
	return s
}

// reach is told up to which seq events are stored, and whether the run has
// ended with that.
func (f *feed) reach(last int64, ended bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if last <= f.last && (f.ended || !ended) {
		return
	}
	if last > f.last {
		f.ring, f.bytes, f.last = nil, 0, last
	}
	if ended {
		f.ended, f.texts = true, nil
	}
	release(&f.wake)
}

// missing returns the seq after which the feed lacks events to be at last, as
// far back as the ring goes.
func (f *feed) missing(last int64) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return max(f.last, last-ringEvents)
}

// covers reports whether a reader that has the events up to after gets all
// others from the feed, of a run that has them up to last in the store. Another
// process may have written what the feed does not know.
func (f *feed) covers(after, last int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last > 0 && f.last >= last && after <= f.last && after >= f.last-int64(len(f.ring))
}

// claim reports whether the caller is the one who looks into the store for all
// readers, because nobody has done so since a time.
func (f *feed) claim(now time.Time, every time.Duration) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.Sub(f.looked) < every {
		return false
	}
	f.looked = now
	return true
}

// woken returns a channel that is closed with the next event of the run, or
// when the message that reserved its id joins another one.
func (f *feed) woken() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return waiting(&f.wake)
}

// rouse wakes all who wait for woken.
func (f *feed) rouse() {
	f.mu.Lock()
	defer f.mu.Unlock()
	release(&f.wake)
}

// grow is told all of the text of a step and reports whether that is news.
func (f *feed) grow(node string, step int, text string) bool {
	if f.ended {
		return false
	}
	if f.shared {
		f.here = time.Now()
	}
	i := slices.IndexFunc(f.texts, func(g *growing) bool { return g.node == node && g.step == step })
	if i < 0 {
		if text == "" {
			return false
		}
		f.texts = append(f.texts, &growing{node: node, step: step, attempt: 1, text: text, at: time.Now()})
		return true
	}
	g := f.texts[i]
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

// endText drops the texts that an event brings to their end. Pieces of them that
// come from other nodes later are known to be late.
func (f *feed) endText(e claybot.Event) {
	if len(f.texts) == 0 && !f.shared {
		return
	}
	switch {
	case e.Type.Ends() || e.Type == claybot.EventAwaitingInput:
		for _, g := range f.texts {
			f.stepOver(g.step)
		}
		f.texts = nil
	case e.Type == claybot.EventAssistantMessage:
		var said struct {
			Step int `json:"step"`
		}
		if json.Unmarshal(e.Data, &said) == nil {
			f.texts = slices.DeleteFunc(f.texts, func(g *growing) bool { return g.step == said.Step })
			f.stepOver(said.Step)
		}
	}
}

func (f *feed) stepOver(step int) {
	if !f.shared || f.readers == 0 || slices.Contains(f.over, step) {
		return
	}
	if len(f.over) == endedSteps {
		f.over = f.over[1:]
	}
	f.over = append(f.over, step)
}

// dropRemote drops the texts that other nodes write: without a reader, nobody is
// asked for their pieces.
func (f *feed) dropRemote() {
	f.texts = slices.DeleteFunc(f.texts, func(g *growing) bool { return g.from != "" })
	f.over, f.look, f.lost = nil, false, 0
}

// news returns what a reader with these marks does not have of the texts, and
// its marks from now on.
func (f *feed) news(run claybot.RunID, marks []mark) ([]*Delta, []mark) {
	if len(f.texts) == 0 {
		return nil, nil
	}
	var out []*Delta
	now := make([]mark, 0, len(f.texts))
	for _, g := range f.texts {
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

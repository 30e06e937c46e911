package runs

import (
	"sync"
	"time"

	"github.com/claybot/claybot"
)

// A feed is what a Hub knows of one run that is watched, or writes a text.
type feed struct {
	mu      sync.Mutex
	readers int
	wake    chan struct{} // closed with the next event; nil while no reader waits
	grew    chan struct{} // closed when a text grows; nil while no reader waits

	ring   ring
	drafts drafts
	looked time.Time // when a reader last looked into the store for all
	look   bool      // another member has, or may have, written to the run
	shared sharing   // with the other members
}

// idle reports whether the feed is unused.
func (f *feed) idle() bool { return f.readers == 0 && len(f.drafts.texts) == 0 }

// learn is told what a reader found in the store and returns the event as all
// readers share it.
func (f *feed) learn(e claybot.Event) *sealed {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.endText(e)
	if e.Seq <= f.ring.last {
		if i := e.Seq - f.ring.before() - 1; i >= 0 {
			return f.ring.events[i]
		}
		return &sealed{event: e}
	}
	s := &sealed{event: e}
	f.ring.add(s)
	release(&f.wake)
	return s
}

// reach is told up to which seq events are stored, and whether the run has
// ended with that.
func (f *feed) reach(last int64, ended bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.ring.reach(last, ended) {
		return
	}
	if ended {
		f.drafts.texts = nil
	}
	release(&f.wake)
}

// missing returns the seq after which the feed lacks events to be at last, as
// far back as the ring goes.
func (f *feed) missing(last int64) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return max(f.ring.last, last-ringEvents)
}

// covers reports whether a reader that has the events up to after gets all
// others from the feed, of a run that has them up to last in the store. Another
// process may have written what the feed does not know.
func (f *feed) covers(after, last int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := &f.ring
	return r.last > 0 && r.last >= last && after <= r.last && after >= r.before()
}

// claim reports whether the caller looks into the store for all
// readers, because no caller has done so since a time.
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
	if f.ring.ended {
		return false
	}
	f.shared.here = time.Now()
	return f.drafts.grow(node, step, text)
}

// endText drops the texts that an event brings to their end. Pieces of them that
// come from other members later are known to be late.
func (f *feed) endText(e claybot.Event) {
	for _, step := range f.drafts.end(e) {
		if f.readers > 0 {
			f.shared.stepOver(step)
		}
	}
}

package runs

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// An Update is one item that a watcher of a run receives: an event, or a piece
// of text that is still being written. What they point to is shared with other
// watchers and must not be changed.
type Update struct {
	Event *claybot.Event
	Delta *Delta

	sealed *sealed
}

// Wire returns the JSON of an update in one line: the wire form of an event,
// see Encode, or the Delta. The bytes are shared and must not be changed.
func (u Update) Wire() []byte {
	switch {
	case u.sealed != nil:
		return u.sealed.encode()
	case u.Event != nil:
		return Encode(*u.Event)
	}
	b, _ := json.Marshal(u.Delta) // strings and numbers always marshal
	return b
}

// A Delta is a piece of the text of a step that is still being written. It is
// never stored and has no seq; Offset (bytes) says where it belongs. A higher
// Attempt begins the text of the step anew.
type Delta struct {
	Run     claybot.RunID `json:"runId"`
	Node    string        `json:"node"`
	Step    int           `json:"step"`
	Attempt int           `json:"attempt"`
	Offset  int           `json:"offset"`
	Text    string        `json:"text"`
}

const (
	lookEvery  = time.Second           // into the store, without a hint
	deltaEvery = 50 * time.Millisecond // per reader
	chunk      = 16                    // events a reader takes at a time
)

// Store is what watching needs of the store; see storage.RunReader.
type Store interface {
	Run(ctx context.Context, id claybot.RunID) (claybot.Run, error)
	Events(ctx context.Context, id claybot.RunID, after int64) iter.Seq2[claybot.Event, error]
}

// Watch yields the events of a run with a seq above after, those that are
// stored and then those that are committed from now on, in order, each once. It
// ends after the last event of the run; for a run that has ended already, after
// what is stored of it, which may be nothing. For a run that has not ended it
// waits.
//
// Between events it yields the texts that are being written. A reader that has
// all events gets what it does not have of them, at most every 50 ms; at first
// the text so far in one piece. After the AssistantMessage of a step there is
// nothing more of its text.
//
// The id may be one that a message reserved: while the message waits, Watch
// waits, and then yields the events of the run that took it.
//
// An unknown id yields storage.ErrNotFound and nothing else. Any error is the
// last thing yielded, also the cause of ctx when that is done; a reader goes on
// with the last seq it has. One that reads slowly, or not at all, costs nothing
// and blocks no other watcher.
func Watch(ctx context.Context, s Store, h *Hub, id claybot.RunID, after int64) iter.Seq2[Update, error] {
	return func(yield func(Update, error) bool) {
		r := reader{store: s, hub: h, after: after}
		r.yield = func(u Update) bool { return yield(u, nil) }
		if err := r.read(ctx, id); err != nil && !r.stopped {
			yield(Update{}, err)
		}
	}
}

// A reader is one pass of Watch. It uses the goroutine of its caller
// alone.
type reader struct {
	store Store
	hub   *Hub
	feed  *feed
	run   claybot.RunID
	after int64 // the seq of the last event yielded
	yield func(Update) bool

	stopped bool // the caller wants no more
	over    bool // the last event was yielded
	buf     [chunk]*sealed
	marks   []mark
	due     time.Time // of the next delta
	timer   *time.Timer
}

func (r *reader) done() bool { return r.stopped || r.over }

// read yields all there is to yield. It listens before it looks, so nothing
// falls between the two.
func (r *reader) read(ctx context.Context, id claybot.RunID) error {
	r.timer = time.NewTimer(lookEvery)
	defer r.timer.Stop()
	r.run, r.feed = id, r.hub.join(id)
	defer func() { r.hub.leave(r.run, r.feed) }()
	run, err := r.resolve(ctx, id)
	if err != nil {
		return err
	}
	if run.ID != id {
		r.hub.leave(r.run, r.feed)
		r.run, r.feed = run.ID, r.hub.join(run.ID)
		if run, err = r.store.Run(ctx, run.ID); err != nil { // it may have ended before the join
			return err
		}
	}
	if run.State.Ended() || !r.feed.covers(r.after, run.LastSeq) {
		if err := r.stored(ctx, run); err != nil || r.done() {
			return err
		}
	}
	return r.follow(ctx)
}

// resolve returns the run of an id as soon as there is one. Without a hint one
// of all who wait for the id looks into the store, and wakes the others.
func (r *reader) resolve(ctx context.Context, id claybot.RunID) (claybot.Run, error) {
	for mine := false; ; {
		woken := r.feed.woken()
		run, err := r.store.Run(ctx, id)
		if err != nil || run.State != claybot.RunPending {
			if mine && (err == nil || errors.Is(err, storage.ErrNotFound)) {
				r.feed.rouse()
			}
			return run, err
		}
		for mine = false; !mine; {
			hint, err := r.wait(ctx, lookEvery, woken, nil)
			if err != nil {
				return claybot.Run{}, err
			}
			if hint {
				break
			}
			mine = r.feed.claim(time.Now(), lookEvery)
		}
	}
}

// look loads the run and yields what is stored of it.
func (r *reader) look(ctx context.Context) error {
	run, err := r.store.Run(ctx, r.run)
	if errors.Is(err, storage.ErrNotFound) {
		r.over = true // removed since we began
		return nil
	}
	if err != nil {
		return err
	}
	return r.stored(ctx, run)
}

// stored yields the stored events of a run that was loaded before.
func (r *reader) stored(ctx context.Context, run claybot.Run) error {
	for e, err := range r.store.Events(ctx, r.run, r.after) {
		if err != nil {
			return err
		}
		s := &sealed{event: e}
		if !run.State.Ended() {
			s = r.feed.learn(e)
		}
		if r.tell(s); r.done() {
			return nil
		}
	}
	if run.State.Ended() {
		// Nothing follows, even when the last event is not there any more.
		r.feed.reach(run.LastSeq, true)
		r.over = true
	}
	return nil
}

// tell yields an event.
func (r *reader) tell(s *sealed) {
	r.after = s.event.Seq
	r.stopped = !r.yield(Update{Event: &s.event, sealed: s})
	r.over = s.event.Type.Ends()
}

// follow yields what the feed has, and what the store has where the feed does
// not reach.
func (r *reader) follow(ctx context.Context) error {
	var looked int64 // what the feed's last seq was when we last looked because of it
	for !r.done() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		now := time.Now()
		r.hub.attend(r.run, r.feed, now)
		n := r.next(now)
		for i, s := range r.buf[:n.events] {
			r.buf[i] = nil
			if r.tell(s); r.done() {
				return nil
			}
		}
		for _, d := range n.deltas {
			if r.stopped = !r.yield(Update{Delta: d}); r.stopped {
				return nil
			}
		}
		switch {
		case n.events > 0:
		case n.behind && n.last != looked:
			looked = n.last
			if err := r.look(ctx); err != nil {
				return err
			}
		case n.over || n.behind && n.ended:
			return nil
		case n.look:
			if err := r.refresh(ctx); err != nil {
				r.feed.lookAgain()
				return err
			}
		case len(n.deltas) == 0:
			if err := r.pause(ctx, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// pause waits for something new, and looks into the store when no hint came.
func (r *reader) pause(ctx context.Context, n next) error {
	hint, err := r.wait(ctx, n.pause, n.wake, n.grew)
	if err == nil && !hint && r.feed.claim(time.Now(), lookEvery) {
		err = r.refresh(ctx)
	}
	return err
}

// refresh tells the feed what is stored and not yet reported, for all its
// readers. It yields nothing: a caller that stands still delays no reader.
func (r *reader) refresh(ctx context.Context) error {
	run, err := r.store.Run(ctx, r.run)
	if errors.Is(err, storage.ErrNotFound) {
		r.feed.reach(0, true) // removed since we began
		return nil
	}
	if err != nil {
		return err
	}
	if from := r.feed.missing(run.LastSeq); from < run.LastSeq {
		for e, err := range r.store.Events(ctx, r.run, from) {
			if err != nil {
				return err
			}
			if r.feed.learn(e); e.Seq >= run.LastSeq {
				break
			}
		}
	}
	r.feed.reach(run.LastSeq, run.State.Ended())
	return nil
}

// wait returns true when one of the channels is closed and false after d; an
// error when ctx is done.
func (r *reader) wait(ctx context.Context, d time.Duration, wake, grew <-chan struct{}) (hint bool, err error) {
	r.timer.Reset(d)
	select {
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case <-wake:
		return true, nil
	case <-grew:
		return true, nil
	case <-r.timer.C:
		return false, nil
	}
}

// A next is what a feed has for a reader: events in its buffer, or texts, or
// what to wait for.
type next struct {
	events int
	deltas []*Delta
	last   int64 // the highest seq that the feed knows
	behind bool  // the events that follow are in the store alone
	look   bool  // there may be more in the store, and the reader is to look for all
	ended  bool  // the run has ended
	over   bool  // and the reader has all of it

	wake, grew <-chan struct{}
	pause      time.Duration
}

func (r *reader) next(now time.Time) next {
	f := r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	n := next{last: f.ring.last, ended: f.ring.ended, pause: lookEvery}
	if r.after < f.ring.last {
		first := f.ring.before()
		if n.behind = r.after < first; !n.behind {
			n.events = copy(r.buf[:], f.ring.events[r.after-first:])
			return n
		}
	}
	n.over = f.ring.ended && !n.behind
	if !n.behind && f.look {
		f.look, n.look = false, true
		return n
	}
	if !n.behind {
		if now.Before(r.due) {
			n.pause = min(n.pause, r.due.Sub(now))
		} else if n.deltas, r.marks = f.drafts.news(r.run, r.marks); len(n.deltas) > 0 {
			r.due = now.Add(deltaEvery)
		} else {
			n.grew = waiting(&f.grew)
		}
	}
	n.wake = waiting(&f.wake)
	return n
}

package runs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/sqlite"
	"github.com/claybot/claybot/storage/storagetest"
)

// A tailing is a Watch of events in a goroutine of its own.
type tailing struct {
	seqs []int64
	err  error
	done chan struct{}
}

func (r *rig) tail(ctx context.Context, id claybot.RunID, after int64) *tailing {
	tl := &tailing{done: make(chan struct{})}
	go func() {
		defer close(tl.done)
		for e, err := range r.events(ctx, id, after) {
			if err != nil {
				tl.err = err
			} else {
				tl.seqs = append(tl.seqs, e.Seq)
			}
		}
	}()
	return tl
}

func (tl *tailing) check(t *testing.T, want []int64) {
	t.Helper()
	<-tl.done
	if tl.err != nil || !slices.Equal(tl.seqs, want) {
		t.Errorf("got %v, %v; want %v", tl.seqs, tl.err, want)
	}
}

func TestWatchEndedRun(t *testing.T) {
	for _, n := range []int{2, 15, 16, 17, 300, 450} { // below and above pages and rings
		r := newRig(t)
		l := r.ended(n)
		last := int64(n)
		for _, after := range []int64{-1, 0, 1, last / 2, last - 1, last, last + 1, last + 1000} {
			got, err := r.seqs(l.id, after)
			if want := span(max(after, 0)+1, last); err != nil || !slices.Equal(got, want) {
				t.Errorf("%d events after %d: got %v, %v", n, after, got, err)
			}
		}
	}
}

// inBubble runs a test with a store in a bubble of time.
func inBubble(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newRig(t)) })
}

func TestWatchLiveRun(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		l := r.start()
		l.add(299) // seq 300
		afters := []int64{0, 1, 20, 43, 44, 45, 299, 300, 301, 340, 351, 352, 5000}
		var all []*tailing
		for _, after := range afters {
			all = append(all, r.tail(t.Context(), l.id, after))
		}
		synctest.Wait()
		for range 5 {
			l.add(10) // up to 350
			synctest.Wait()
		}
		l.finish() // 351
		for i, tl := range all {
			tl.check(t, span(afters[i]+1, 351))
		}
		noTime(t)
	})
}

// TestABurst commits more than the ring holds while readers stand still.
func TestABurst(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		l := r.start()
		gate := make(chan struct{})
		var seqs []int64
		done := make(chan struct{})
		go func() {
			defer close(done)
			for e, err := range r.events(t.Context(), l.id, 0) {
				if err != nil {
					t.Error(err)
					return
				}
				seqs = append(seqs, e.Seq)
				<-gate
			}
		}()
		synctest.Wait()
		for range 10 {
			l.add(100)
		}
		other := r.tail(t.Context(), l.id, 990)
		synctest.Wait()
		l.finish() // 1002
		close(gate)
		other.check(t, span(991, 1002))
		<-done
		if !slices.Equal(seqs, span(1, 1002)) {
			t.Errorf("got %v", seqs)
		}
	})
}

// TestHugeEvents does not fit the ring at all.
func TestHugeEvents(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		l := r.start()
		tl := r.tail(t.Context(), l.id, 0)
		synctest.Wait()
		text := make([]byte, 700<<10)
		for i := range text {
			text[i] = 'x'
		}
		for range 3 {
			e := runs.NodeBegan(l.id, "model", 1)
			e.Data = fmt.Appendf(nil, `{"node":%q,"iteration":1}`, text)
			l.must(l.append(t.Context(), e))
			synctest.Wait()
		}
		l.finish()
		tl.check(t, span(1, 5))
	})
}

func TestUnknownRun(t *testing.T) {
	r := newRig(t)
	for range 2 {
		tl := r.tail(t.Context(), "nothing", 0)
		<-tl.done
		if !errors.Is(tl.err, storage.ErrNotFound) || len(tl.seqs) > 0 {
			t.Errorf("got %v, %v", tl.seqs, tl.err)
		}
		n := 0
		for u, err := range runs.Watch(t.Context(), r.db, r.hub, "nothing", 7) {
			if n++; !errors.Is(err, storage.ErrNotFound) || u.Event != nil || u.Delta != nil {
				t.Errorf("got %+v, %v", u, err)
			}
		}
		if n != 1 {
			t.Errorf("%d updates", n)
		}
	}
}

func TestPrunedRun(t *testing.T) {
	r := newRig(t)
	l := r.ended(10)
	r.must(r.db.Prune(t.Context(), time.Now().Add(30*24*time.Hour), storagetest.Retention))
	for _, after := range []int64{0, 5, 10, 11} {
		if got, err := r.seqs(l.id, after); err != nil || len(got) > 0 {
			t.Errorf("after %d: got %v, %v", after, got, err)
		}
	}
}

// TestPrunedBelowAReader takes the events away while a reader stands in the
// middle of them.
func TestPrunedBelowAReader(t *testing.T) {
	r := newRig(t)
	l := r.ended(1000)
	var last int64
	for e, err := range r.events(t.Context(), l.id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if last = e.Seq; last == 1 {
			r.must(r.db.Prune(t.Context(), time.Now().Add(30*24*time.Hour), storagetest.Retention))
		}
	}
	if last < 1 || last > 1000 {
		t.Errorf("ended after %d", last)
	}
}

func TestReservedID(t *testing.T) {
	t.Run("becomes the run", func(t *testing.T) {
		inBubble(t, func(t *testing.T, r *rig) {
			l := r.post("reserved")
			tl := r.tail(t.Context(), "reserved", 0)
			synctest.Wait()
			l.begin()
			if l.id != "reserved" {
				t.Fatalf("the run is %s", l.id)
			}
			l.add(3)
			l.finish()
			tl.check(t, span(1, 5))
			noTime(t)
		})
	})
	t.Run("joins a run", func(t *testing.T) {
		inBubble(t, func(t *testing.T, r *rig) {
			l := r.start()
			l.say("second", "reserved")
			early := r.tail(t.Context(), "reserved", 0)
			synctest.Wait()
			if _, err := l.db.Take(t.Context(), l.lease, l.id, 5, nil); err != nil {
				t.Fatal(err)
			}
			l.seq++ // MessagesInjected
			late := r.tail(t.Context(), "reserved", 1)
			synctest.Wait()
			l.add(3)
			l.finish()
			early.check(t, span(1, 6))
			late.check(t, span(2, 6))
			got, err := r.seqs("reserved", 0)
			if err != nil || !slices.Equal(got, span(1, 6)) {
				t.Errorf("afterwards: %v, %v", got, err)
			}
			noTime(t)
		})
	})
	t.Run("ends without a run", func(t *testing.T) {
		inBubble(t, func(t *testing.T, r *rig) {
			l := r.post("reserved")
			tl := r.tail(t.Context(), "reserved", 0)
			synctest.Wait()
			if _, err := r.db.Drop(t.Context(), l.agent, "canceled"); err != nil {
				t.Fatal(err)
			}
			tl.check(t, span(1, 1))
			noTime(t)
		})
	})
}

// A counting store counts how often a run is loaded.
type counting struct {
	*sqlite.DB
	loads atomic.Int64
}

func (c *counting) Run(ctx context.Context, id claybot.RunID) (claybot.Run, error) {
	c.loads.Add(1)
	return c.DB.Run(ctx, id)
}

// TestCrowdOfAQueuedID: 500 who wait for an id that a message reserved were 500
// queries a second. One of them looks for all, also when no hint ever comes.
func TestCrowdOfAQueuedID(t *testing.T) {
	for name, hints := range map[string]bool{"with hints": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				const readers, seconds = 500, 60
				l := r.post("reserved")
				store, hub := &counting{DB: r.db}, r.hub
				if !hints {
					hub = runs.NewHub()
				}
				var wg sync.WaitGroup
				var lasts [readers]int64
				for i := range readers {
					time.Sleep(time.Millisecond) // so that they do not look at the same time
					wg.Go(func() {
						for u, err := range runs.Watch(t.Context(), store, hub, "reserved", 0) {
							if err != nil {
								t.Error(err)
								return
							}
							lasts[i] = u.Event.Seq
						}
					})
				}
				time.Sleep(seconds * time.Second)
				if n := store.loads.Load(); n > readers+seconds+2 {
					t.Errorf("%d queries of %d readers in %d seconds", n, readers, seconds)
				}
				l.begin()
				start := time.Now()
				l.finish()
				wg.Wait()
				if d := time.Since(start); hints && d > 0 || d > 2*time.Second {
					t.Errorf("the end was seen after %v", d)
				}
				for i, last := range lasts {
					if last != l.seq {
						t.Fatalf("reader %d ended after %d of %d", i, last, l.seq)
					}
				}
			})
		})
	}
}

// noTime fails when the time of the bubble has moved: a reader was woken by a
// timer and not by the hub.
func noTime(t *testing.T) {
	t.Helper()
	if d := time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)); d != 0 {
		t.Errorf("it took %v", d)
	}
}

// TestOtherNodes reads what is committed without a word to the hub.
func TestOtherNodes(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		l := r.post("reserved")
		deaf := *r
		deaf.hub = runs.NewHub()
		var all []*tailing
		afters := []int64{0, 3, 500, 1000}
		for _, after := range afters {
			all = append(all, deaf.tail(t.Context(), "reserved", after))
		}
		stand := make(chan struct{})
		var still []*watching // readers that take nothing must not keep the others up
		for range 20 {
			still = append(still, deaf.watch(t.Context(), "reserved", 0, stand))
		}
		synctest.Wait()
		l.begin()
		time.Sleep(1100 * time.Millisecond)
		l.add(9)
		time.Sleep(1100 * time.Millisecond)
		for _, tl := range all[2:] {
			select {
			case <-tl.done:
				t.Error("ended before the run")
			default:
			}
		}
		l.add(589)
		l.finish() // 600
		start := time.Now()
		for i, tl := range all {
			tl.check(t, span(afters[i]+1, 600))
		}
		if d := time.Since(start); d > 2*time.Second {
			t.Errorf("the end was seen after %v", d)
		}
		close(stand)
		for _, w := range still {
			if <-w.done; len(w.told) != 600 {
				t.Errorf("a reader that stood still was told %d things", len(w.told))
			}
		}
	})
}

func TestContextEnds(t *testing.T) {
	cause := errors.New("the reader is gone")
	inBubble(t, func(t *testing.T, r *rig) {
		l := r.start()
		waiting := r.post("reserved")
		ctx, cancel := context.WithCancelCause(t.Context())
		a, b := r.tail(ctx, l.id, 0), r.tail(ctx, "reserved", 0)
		synctest.Wait()
		cancel(cause)
		<-a.done
		<-b.done
		if !errors.Is(a.err, cause) || !slices.Equal(a.seqs, span(1, 1)) {
			t.Errorf("got %v, %v", a.seqs, a.err)
		}
		if !errors.Is(b.err, cause) || len(b.seqs) > 0 {
			t.Errorf("got %v, %v", b.seqs, b.err)
		}
		c := r.tail(ctx, l.id, 0)
		<-c.done
		if !errors.Is(c.err, cause) {
			t.Errorf("afterwards: %v, %v", c.seqs, c.err)
		}
		waiting.begin()
		waiting.finish()
	})
}

func TestBreak(t *testing.T) {
	r := newRig(t)
	l := r.ended(40)
	for stop := int64(1); stop <= 40; stop++ {
		var last int64
		for e, err := range r.events(t.Context(), l.id, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if last = e.Seq; last == stop {
				break
			}
		}
		if last != stop {
			t.Errorf("stopped at %d, not at %d", last, stop)
		}
	}
}

func TestChanged(t *testing.T) {
	r := newRig(t)
	open := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return false
		default:
			return true
		}
	}
	c := r.hub.Changed()
	if c != r.hub.Changed() || !open(c) {
		t.Error("the channel is closed, or another one, before anything happened")
	}
	l := r.start()
	if open(c) {
		t.Error("open after a commit")
	}
	for _, change := range []func(){
		func() { l.add(1) },
		func() { l.say("second", "") },
		func() { l.finish() },
	} {
		c := r.hub.Changed()
		if change(); open(c) {
			t.Error("open after a change")
		}
		if !open(r.hub.Changed()) {
			t.Error("closed for good")
		}
	}
}

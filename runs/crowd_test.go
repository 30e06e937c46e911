package runs_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
)

// follow reads a run to its end with Watch, starting anew after each cut-th
// update if cut is above 0, and reports gaps and repeats.
func (r *rig) follow(id claybot.RunID, after int64, cut int) (last int64, err error) {
	last = after
	for {
		n := 0
		for u, err := range runs.Watch(r.t.Context(), r.db, r.hub, id, last) {
			if err != nil {
				return last, err
			}
			if u.Event != nil {
				if u.Event.Seq != last+1 {
					return last, fmt.Errorf("seq %d behind %d", u.Event.Seq, last)
				}
				if string(u.Wire()) != string(runs.Encode(*u.Event)) {
					return last, fmt.Errorf("seq %d has another wire form", u.Event.Seq)
				}
				last = u.Event.Seq
			}
			if n++; n == cut {
				break
			}
		}
		if n != cut || cut == 0 {
			return last, nil
		}
	}
}

// TestCrowd is the bar of the streams: 200 readers of one run, of which 50
// never read and 50 begin anew again and again, while it is written.
func TestCrowd(t *testing.T) {
	const readers, events = 200, 1500
	r := newRig(t)
	l := r.start()
	never := make(chan struct{}) // closed when all others are through
	var idle, busy sync.WaitGroup
	var lasts [readers]int64
	for i := range readers {
		switch {
		case i < 50:
			idle.Go(func() {
				for range runs.Watch(t.Context(), r.db, r.hub, l.id, 0) {
					<-never
					return
				}
			})
		default:
			cut := 0
			if i < 100 {
				cut = 1 + i%40
			}
			busy.Go(func() {
				var err error
				if lasts[i], err = r.follow(l.id, 0, cut); err != nil {
					t.Errorf("reader %d: %v", i, err)
				}
			})
		}
	}
	for step := 1; l.seq < events; step++ {
		r.hub.Grow(l.id, "model", step, "one")
		l.add(1 + step%7)
		r.hub.Grow(l.id, "model", step, "one two")
		l.said(step, "one two three")
	}
	l.finish()
	busy.Wait()
	for i, last := range lasts[50:] {
		if last != l.seq {
			t.Errorf("reader %d ended after %d of %d", i+50, last, l.seq)
		}
	}
	close(never)
	idle.Wait()
}

// TestInterleavings draws who writes how much and who reads from where. No
// reader needs to look by the clock.
func TestInterleavings(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		for seed := range uint64(60) {
			for _, fault := range r.interleave(rand.New(rand.NewPCG(seed, 4))) {
				t.Errorf("seed %d: %s", seed, fault)
			}
		}
	})
}

func (r *rig) interleave(draw *rand.Rand) (faults []string) {
	l := r.start()
	begun := time.Now()
	var wg sync.WaitGroup
	var mu sync.Mutex
	lasts := make(map[string]int64)
	reader := func() {
		after := draw.Int64N(l.seq + 1)
		cut := pick(draw, 0, 0, 5, 16, 17)
		wg.Go(func() {
			last, err := r.follow(l.id, after, cut)
			mu.Lock()
			defer mu.Unlock()
			lasts[fmt.Sprintf("after %d, cut at %d: %v", after, cut, err)] = last
		})
	}
	for range 1 + draw.IntN(8) {
		switch draw.IntN(3) {
		case 0:
			l.add(pick(draw, 1, 1, 2, 15, 16, 17, 40, 260))
		case 1:
			reader()
		case 2:
			r.hub.Grow(l.id, "model", 1, pick(draw, "", "o", "on", "one", "two"))
		}
	}
	reader()
	l.finish()
	reader()
	wg.Wait()
	for what, last := range lasts {
		if last != l.seq {
			faults = append(faults, fmt.Sprintf("%s: ended at %d of %d", what, last, l.seq))
		}
	}
	if d := time.Since(begun); d > 0 {
		faults = append(faults, fmt.Sprintf("a reader waited %v", d))
	}
	return faults
}

func pick[T any](draw *rand.Rand, from ...T) T { return from[draw.IntN(len(from))] }

// TestManyRuns reads runs that are written side by side, one commit after
// another, from all of them at random.
func TestManyRuns(t *testing.T) {
	r := newRig(t)
	var lives []*live
	var wg sync.WaitGroup
	want := make([]int64, 8)
	got := make([]int64, len(want))
	for i := range want {
		l := r.start()
		lives = append(lives, l)
		wg.Go(func() {
			last, err := r.follow(l.id, 0, 0)
			if err != nil {
				t.Error(err)
			}
			got[i] = last
		})
	}
	for range 400 {
		lives[rand.IntN(len(lives))].add(1 + rand.IntN(3))
	}
	for i, l := range lives {
		l.finish()
		want[i] = l.seq
	}
	wg.Wait()
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

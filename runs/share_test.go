package runs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
)

// A cluster is nodes with a hub each over one store. A node that writes tells its own
// hub of the commit, and the others get a hint, if it is not lost.
type cluster struct {
	*rig
	hubs []*runs.Hub

	mu     sync.Mutex
	writer int // the node that writes
	lose   func(h storage.Notification) bool
	told   []storage.Notification
}

func newCluster(t testing.TB, nodes int) *cluster {
	c := &cluster{rig: newRig(t), lose: func(storage.Notification) bool { return false }}
	c.must(c.db.Close())
	for node := range nodes {
		c.hubs = append(c.hubs, runs.NewSharedHub(func(h storage.Notification) { c.tell(node, h) }))
	}
	c.db = openDB(t, c.path, c.committed)
	return c
}

func (c *cluster) committed(done storage.Commit) {
	c.mu.Lock()
	writer := c.writer
	c.mu.Unlock()
	c.hubs[writer].Committed(done)
	h := storage.Notification{Runs: slices.Clone(done.Joined)}
	for _, e := range done.Events {
		if !slices.Contains(h.Runs, e.Run) {
			h.Runs = append(h.Runs, e.Run)
		}
	}
	c.tell(writer, h)
}

// tell passes a hint on as a store does: as JSON, that is small enough.
func (c *cluster) tell(from int, h storage.Notification) {
	h.Member = fmt.Sprint(from)
	wire, err := json.Marshal(h)
	if err != nil || len(wire) > 8000 {
		c.t.Errorf("a hint of %d bytes, %v", len(wire), err)
	}
	for to, hub := range c.hubs {
		c.mu.Lock()
		lost := c.lose(h)
		if to == from {
			c.told = append(c.told, h)
		}
		c.mu.Unlock()
		var got storage.Notification
		if err := json.Unmarshal(wire, &got); err != nil {
			c.t.Error(err)
		}
		if to != from && !lost {
			hub.Heard(got)
		}
	}
}

// writes makes a node the one that writes.
func (c *cluster) writes(node int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writer = node
}

// on is the rig as a node has it.
func (c *cluster) on(node int) *rig {
	r := *c.rig
	r.hub = c.hubs[node]
	return &r
}

// hints counts what was told so far.
func (c *cluster) hints(of func(storage.Notification) int) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range c.told {
		n += of(h)
	}
	return n
}

func watched(h storage.Notification) int { return len(h.Watched) }
func grown(h storage.Notification) int   { return len(h.Grown) }

func inCluster(t *testing.T, nodes int, test func(t *testing.T, c *cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newCluster(t, nodes)) })
}

// TestWatchElsewhere: readers on all nodes get every event once and in order,
// while the run moves from node to node and hints are lost, all or some.
func TestWatchElsewhere(t *testing.T) {
	for _, loss := range []float64{0, 0.5, 1} {
		t.Run(fmt.Sprint(loss), func(t *testing.T) {
			inCluster(t, 3, func(t *testing.T, c *cluster) {
				c.lose = func(storage.Notification) bool { return rand.Float64() < loss }
				l := c.start()
				var all []*tailing
				var afters []int64
				join := func(node int, after int64) {
					all, afters = append(all, c.on(node).tail(t.Context(), l.id, after)), append(afters, after)
				}
				for node := range 3 {
					join(node, 0)
				}
				for k := range 40 {
					c.writes(rand.IntN(3))
					l.add(1 + rand.IntN(4)*rand.IntN(100))
					if k%8 == 0 {
						join(rand.IntN(3), rand.Int64N(l.seq))
					}
					time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
				}
				c.writes(rand.IntN(3))
				l.finish()
				ended := time.Now()
				for i, tl := range all {
					tl.check(t, span(afters[i]+1, l.seq))
				}
				if d := time.Since(ended); d > time.Second+100*time.Millisecond || loss == 0 && d > 0 {
					t.Errorf("the readers end %v after the run", d)
				}
			})
		})
	}
}

// TestWatchAtOnceElsewhere: without loss, an event is there at once.
func TestWatchAtOnceElsewhere(t *testing.T) {
	inCluster(t, 2, func(t *testing.T, c *cluster) {
		l := c.start()
		w := c.on(1).watch(t.Context(), l.id, 0, nil)
		for range 3 {
			time.Sleep(200 * time.Millisecond)
			l.add(1)
			synctest.Wait()
		}
		l.finish()
		w.check(t, "0 RunStarted 1", "200 NodeStarted 2", "400 NodeStarted 3", "600 NodeStarted 4", "600 RunFinished 5")
	})
}

// TestHintsLost: a hint without content says so, and readers look at once.
func TestHintsLost(t *testing.T) {
	inCluster(t, 2, func(t *testing.T, c *cluster) {
		c.lose = func(storage.Notification) bool { return true }
		l := c.start()
		w := c.on(1).watch(t.Context(), l.id, 1, nil)
		time.Sleep(100 * time.Millisecond)
		l.add(2)
		time.Sleep(100 * time.Millisecond)
		c.hubs[1].Heard(storage.Notification{})
		synctest.Wait()
		changed := c.hubs[1].Changed()
		c.hubs[1].Stir()
		<-changed
		l.finish()
		time.Sleep(100 * time.Millisecond)
		c.hubs[1].Heard(storage.Notification{Member: "0"})
		w.check(t, "200 NodeStarted 2", "200 NodeStarted 3", "300 RunFinished 4")
	})
}

// TestReservedElsewhere follows an id that a message reserved while another node
// takes the message.
func TestReservedElsewhere(t *testing.T) {
	inCluster(t, 2, func(t *testing.T, c *cluster) {
		l := c.post("reserved")
		w := c.on(1).tail(t.Context(), "reserved", 0)
		time.Sleep(300 * time.Millisecond)
		l.begin().finish()
		w.check(t, span(1, 2))
	})
}

// TestGrowthElsewhere: a text is shown on a node that does not write it, from its
// beginning, whenever its reader comes, and nothing is told without a reader.
func TestGrowthElsewhere(t *testing.T) {
	inCluster(t, 3, func(t *testing.T, c *cluster) {
		l := c.start()
		grow := func(step int, text string) {
			c.hubs[0].Grow(l.id, "model", step, text)
			synctest.Wait()
		}
		grow(1, "H")
		time.Sleep(time.Second)
		if n := c.hints(grown); n != 0 {
			t.Errorf("%d pieces are sent without a reader", n)
		}
		first := c.on(1).watch(t.Context(), l.id, 1, nil)
		synctest.Wait()
		grow(1, "Hel")
		time.Sleep(200 * time.Millisecond)
		grow(1, "Hello")
		time.Sleep(300 * time.Millisecond) // 500
		late := c.on(2).watch(t.Context(), l.id, 1, nil)
		time.Sleep(500 * time.Millisecond) // 1000
		grow(1, "Hello you")
		time.Sleep(time.Second) // 2000
		grow(1, "He says")      // another try
		time.Sleep(time.Second) // 3000
		l.said(1, "He says yes")
		time.Sleep(time.Second) // 4000
		grow(2, "bye")
		time.Sleep(time.Second) // 5000
		l.finish()
		first.check(t,
			`0 model/1.1@0 "H"`,
			`100 model/1.1@1 "el"`,
			`200 model/1.1@3 "lo"`,
			`1000 model/1.1@5 " you"`,
			`2000 model/1.2@0 "He says"`,
			"3000 AssistantMessage 2",
			`4000 model/2.1@0 "bye"`,
			"5000 RunFinished 3",
		)
		late.check(t,
			`0 model/1.1@0 "Hello"`,
			`500 model/1.1@5 " you"`,
			`1500 model/1.2@0 "He says"`,
			"2500 AssistantMessage 2",
			`3500 model/2.1@0 "bye"`,
			"4500 RunFinished 3",
		)
	})
}

// TestGrowthEnds: who reads no more is told no more, after a while.
func TestGrowthEnds(t *testing.T) {
	inCluster(t, 2, func(t *testing.T, c *cluster) {
		l := c.start()
		ctx, leave := context.WithCancel(t.Context())
		w := c.on(1).watch(ctx, l.id, 1, nil)
		text := ""
		grow := func(n int) {
			for range n {
				text += "x"
				c.hubs[0].Grow(l.id, "model", 1, text)
				time.Sleep(20 * time.Millisecond)
			}
			synctest.Wait()
		}
		grow(500) // 10 s
		if n := c.hints(grown); n < 90 || n > 105 {
			t.Errorf("%d pieces in 10 s, want 10 in a second", n)
		}
		if n := c.hints(watched); n < 2 || n > 3 {
			t.Errorf("said %d times in 10 s that the run is watched", n)
		}
		leave()
		<-w.done
		grow(1000) // 20 s
		n := c.hints(grown)
		grow(100)
		if more := c.hints(grown) - n; more != 0 {
			t.Errorf("%d pieces are told long after the last reader went", more)
		}
	})
}

// TestGrowthMoves: when another node takes the run over, its text is a new attempt,
// on the node that wrote before, too.
func TestGrowthMoves(t *testing.T) {
	inCluster(t, 3, func(t *testing.T, c *cluster) {
		l := c.start()
		here := c.on(0).watch(t.Context(), l.id, 1, nil)
		there := c.on(2).watch(t.Context(), l.id, 1, nil)
		time.Sleep(100 * time.Millisecond)
		c.hubs[0].Grow(l.id, "model", 1, "One way")
		time.Sleep(900 * time.Millisecond) // 1000: node 0 is gone
		c.writes(1)
		l.add(1)
		time.Sleep(time.Second)
		c.hubs[1].Grow(l.id, "model", 1, "One")
		time.Sleep(time.Second) // 3000
		c.hubs[1].Grow(l.id, "model", 1, "One more")
		time.Sleep(time.Second) // 4000
		l.said(1, "One more")
		l.finish()
		want := []string{
			`100 model/1.1@0 "One way"`, "1000 NodeStarted 2", `2000 model/1.2@0 "One"`, `3000 model/1.2@3 " more"`,
			"4000 AssistantMessage 3", "4000 RunFinished 4",
		}
		here.check(t, want...)
		there.check(t, want...)
	})
}

// TestGrowthLost loses pieces: what is shown is always the beginning of what was
// written, and a gap is mended within seconds.
func TestGrowthLost(t *testing.T) {
	inCluster(t, 2, func(t *testing.T, c *cluster) {
		l := c.start()
		lossy := true
		c.lose = func(storage.Notification) bool { return lossy && rand.Float64() < 0.3 }
		var mu sync.Mutex // of what is below
		text, got, attempt := "", "", 0
		var attempts []string // what was written in each
		done := make(chan struct{})
		go func() {
			defer close(done)
			for u := range runs.Watch(t.Context(), c.db, c.hubs[1], l.id, 1) {
				d := u.Delta
				if d == nil {
					continue
				}
				mu.Lock()
				if d.Attempt != attempt {
					attempt, got = d.Attempt, ""
				}
				if d.Offset > len(got) {
					t.Errorf("a gap: %d after %d", d.Offset, len(got))
				}
				got = got[:min(len(got), d.Offset)] + d.Text
				if !strings.HasPrefix(text, got) && !slices.ContainsFunc(attempts, func(a string) bool { return strings.HasPrefix(a, got) }) {
					t.Errorf("shown: %q, which was never written", got)
				}
				mu.Unlock()
			}
		}()
		synctest.Wait()
		for k := range 400 {
			mu.Lock()
			if k%97 == 96 { // another try
				attempts, text = append(attempts, text), fmt.Sprint(k)
			}
			text += fmt.Sprintf(" ü%d", k) + strings.Repeat("y", rand.IntN(200))
			mu.Unlock()
			c.hubs[0].Grow(l.id, "model", 1, text)
			time.Sleep(60 * time.Millisecond)
			synctest.Wait()
		}
		c.mu.Lock()
		lossy = false
		c.mu.Unlock()
		for range 60 {
			mu.Lock()
			text += " end"
			mu.Unlock()
			c.hubs[0].Grow(l.id, "model", 1, text)
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if got != text {
			t.Errorf("%d of %d bytes are shown in the end", len(got), len(text))
		}
		l.finish()
		mu.Unlock()
		<-done
		mu.Lock()
	})
}

// TestGrowthOdd tells texts that do not fit into one piece, or are half a
// character.
func TestGrowthOdd(t *testing.T) {
	inCluster(t, 2, func(t *testing.T, c *cluster) {
		l := c.start()
		w := c.on(1).watch(t.Context(), l.id, 1, nil)
		synctest.Wait()
		odd := strings.Repeat("\x01\"<ä漢\u2028🦊\\", 3000)
		c.hubs[0].Grow(l.id, "model", 1, odd+"\xf0\x9f\xa6") // most of a fox
		time.Sleep(3 * time.Second)
		c.hubs[0].Grow(l.id, "model", 1, odd+"🦊")
		time.Sleep(time.Second)
		c.hubs[0].Grow(l.id, "model", 1, odd+"🦊\xff is no text any more")
		time.Sleep(time.Second)
		l.said(1, "done")
		l.finish()
		<-w.done
		var got strings.Builder
		for _, line := range w.told {
			_, quoted, ok := strings.Cut(line, "@")
			if !ok {
				continue
			}
			var offset int
			var text string
			if _, err := fmt.Sscanf(quoted, "%d %q", &offset, &text); err != nil || offset != got.Len() {
				t.Fatalf("%.80s: %v, at %d", line, err, got.Len())
			}
			got.WriteString(text)
		}
		if want := odd + "🦊"; got.String() != want {
			t.Errorf("%d bytes are shown, want %d", got.Len(), len(want))
		}
	})
}

// TestLatePiece comes after the event of its step, or after that of the run.
func TestLatePiece(t *testing.T) {
	inCluster(t, 2, func(t *testing.T, c *cluster) {
		l := c.start()
		w := c.on(1).watch(t.Context(), l.id, 1, nil)
		synctest.Wait()
		l.said(1, "Hello")
		synctest.Wait()
		late := storage.Notification{Member: "0", Grown: []storage.Growth{{Run: l.id, Node: "model", Step: 1, Text: "Hello"}}}
		c.hubs[1].Heard(late)
		time.Sleep(time.Second)
		l.finish()
		synctest.Wait()
		c.hubs[1].Heard(late)
		w.check(t, "0 AssistantMessage 2", "1000 RunFinished 3")
	})
}

// TestOneHub of a store that is not shared sends no hints, and hears all the same.
func TestOneHub(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		l := r.start()
		w := r.watch(t.Context(), l.id, 1, nil)
		synctest.Wait()
		changed := r.hub.Changed()
		r.hub.Heard(storage.Notification{
			Watched: []claybot.RunID{l.id}, Runs: []claybot.RunID{l.id, "none"},
			Grown: []storage.Growth{{Run: l.id, Step: 1, Text: "x"}},
		})
		select {
		case <-changed:
		default:
			t.Error("a hint changes nothing")
		}
		r.hub.Grow(l.id, "model", 1, "Hel")
		synctest.Wait()
		l.finish()
		w.check(t, `0 model/1.1@0 "Hel"`, "0 RunFinished 2")
	})
}

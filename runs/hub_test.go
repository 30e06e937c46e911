package runs

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

func told(h *Hub, events ...claybot.Event) { h.Committed(storage.Commit{Events: events}) }

// TestHubKeepsNothing looks at what is left when there are no readers and writers.
func TestHubKeepsNothing(t *testing.T) {
	h := NewHub()
	told(h, NodeBegan("r", "model", 1))
	if len(h.feeds) != 0 {
		t.Error("a run without readers has a feed")
	}
	h.Grow("r", "model", 1, "")
	if len(h.feeds) != 0 {
		t.Error("no text has a feed")
	}
	h.Grow("r", "model", 1, "Hel")
	a, b := h.join("r"), h.join("r")
	if a != b || len(a.drafts.texts) != 1 {
		t.Fatalf("feeds %p %p with %d texts", a, b, len(a.drafts.texts))
	}
	said, _ := EventOf(claybot.Record{Type: claybot.RecordAssistant, Run: "r", Step: 1, Text: "Hello"})
	said.Seq = 4
	told(h, said)
	if len(a.drafts.texts) != 0 || len(a.ring.events) != 1 || a.ring.last != 4 {
		t.Errorf("feed %+v", a)
	}
	h.leave("r", a)
	if h.feeds["r"] != a || len(a.ring.events) != 1 {
		t.Error("gone before the last reader")
	}
	h.leave("r", b)
	if len(h.feeds) != 0 || a.ring.events != nil || a.ring.last != 0 {
		t.Errorf("left behind: %d feeds, %+v", len(h.feeds), a)
	}
	h.Grow("r", "model", 2, "more")
	last := Stopped("r", "user", "")
	last.Seq = 5
	told(h, last)
	if len(h.feeds) != 0 {
		t.Error("the text outlives the run")
	}
}

// TestAbandonedTexts of runs that went on elsewhere do not pile up.
func TestAbandonedTexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHub()
		for i := range 100 * firstSweep {
			h.Grow(claybot.RunID(fmt.Sprint("r", i)), "model", 1, "text")
			time.Sleep(10 * time.Second)
		}
		if len(h.feeds) > 2*firstSweep {
			t.Errorf("%d feeds", len(h.feeds))
		}
		if h.feeds[claybot.RunID(fmt.Sprint("r", 100*firstSweep-1))] == nil {
			t.Error("the newest text is gone")
		}
	})
}

func TestRing(t *testing.T) {
	f := new(feed)
	event := func(seq int64, size int) *sealed {
		return &sealed{event: claybot.Event{Run: "r", Seq: seq, Type: claybot.EventNodeStarted, Data: make([]byte, size)}}
	}
	check := func(what string, n int, last int64) {
		t.Helper()
		bytes := 0
		for i, s := range f.ring.events {
			bytes += s.size()
			if want := last - int64(len(f.ring.events)-1-i); s.event.Seq != want {
				t.Errorf("%s: place %d has seq %d, want %d", what, i, s.event.Seq, want)
			}
		}
		if len(f.ring.events) != n || f.ring.last != last || f.ring.bytes != bytes || bytes > ringBytes {
			t.Errorf("%s: %d events up to %d, %d bytes counted as %d", what, len(f.ring.events), f.ring.last, bytes, f.ring.bytes)
		}
	}
	for seq := int64(1); seq <= 1000; seq++ {
		f.ring.add(event(seq, 10))
	}
	check("full", ringEvents, 1000)
	f.ring.add(event(1000, 10))
	f.ring.add(event(3, 10))
	check("known ones", ringEvents, 1000)
	f.ring.add(event(1002, 10))
	check("a gap", 1, 1002)
	for seq := int64(1003); seq <= 1010; seq++ {
		f.ring.add(event(seq, 200<<10))
	}
	check("large ones", 2, 1010)
	f.ring.add(event(1011, ringBytes))
	check("one too large", 0, 1011)
	for _, tt := range []struct {
		after int64
		want  bool
	}{{1010, false}, {1011, true}, {1012, false}} {
		if got := f.covers(tt.after, 0); got != tt.want {
			t.Errorf("covers %d: %v", tt.after, got)
		}
	}
}

// TestHubTogether uses all of a hub at the same time; the race detector looks.
func TestHubTogether(t *testing.T) {
	h := NewHub()
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := range 300 {
				run := claybot.RunID(fmt.Sprint("r", n%5))
				switch i {
				case 0:
					e := NodeBegan(run, "model", 1)
					e.Seq = int64(n + 1)
					told(h, e)
				case 1:
					h.Grow(run, "model", n, "text")
				case 2:
					f := h.join(run)
					f.learn(claybot.Event{Run: run, Seq: int64(n), Type: claybot.EventNodeStarted})
					f.woken()
					h.leave(run, f)
				case 3:
					h.Changed()
					h.happened()
				}
			}
		})
	}
	wg.Wait()
	for i := range 5 {
		e := Stopped(claybot.RunID(fmt.Sprint("r", i)), "user", "")
		e.Seq = 1000
		told(h, e)
	}
	if len(h.feeds) != 0 {
		t.Errorf("%d feeds left", len(h.feeds))
	}
}

// TestLearnEndsTexts is about an answer that a reader finds in the store before
// the hub is told of it.
func TestLearnEndsTexts(t *testing.T) {
	h := NewHub()
	f := h.join("r")
	h.Grow("r", "model", 1, "Hel")
	h.Grow("r", "model", 2, "other")
	said, _ := EventOf(claybot.Record{Type: claybot.RecordAssistant, Run: "r", Step: 1, Text: "Hello"})
	said.Seq = 2
	f.learn(said)
	if len(f.drafts.texts) != 1 || f.drafts.texts[0].step != 2 {
		t.Errorf("texts %+v", f.drafts.texts)
	}
	h.leave("r", f)
}

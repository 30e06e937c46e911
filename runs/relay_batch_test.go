package runs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/webhook"
)

// of are the batches of one run, without its name.
func (p *place) of(run claybot.RunID) (batches []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.batches {
		if rest, ok := strings.CutPrefix(b, string(run)+" "); ok {
			batches = append(batches, rest)
		}
	}
	return batches
}

// TestBatchIsMadeSmaller: "run1 2-101" came again for ever at a receiver that
// takes 50 events at most.
func TestBatchIsMadeSmaller(t *testing.T) {
	for most, n := range map[int]int{50: 1000, 199: 1000, 1: 100} {
		t.Run(fmt.Sprint("at most ", most), func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				refused := 0
				p := newPlace(func(_ context.Context, events []claybot.Event) error {
					if len(events) > most {
						refused++
						return &runs.SinkError{Text: "413", Refused: true, Batch: true}
					}
					return nil
				})
				_, stop := r.relay(map[string]runs.Sink{"place": p})
				stop()
				l := r.ended(n)
				re, stop := r.relay(map[string]runs.Sink{"place": p})
				defer stop()
				noTime(t)
				wantSeqs(t, "run", p.got(l.id), span(1, int64(n)))
				if tries := len(p.of(l.id)); refused > 8+tries/8 {
					t.Errorf("%d of %d batches were refused", refused, tries)
				}
				if h := re.Health()[0]; h.Error != "" || h.Backlog != 0 {
					t.Errorf("health %+v", h)
				}
			})
		})
	}
}

// TestBadEvent has one event that the receiver refuses: all before it arrive,
// it is tried alone, seldom, and all after it wait for it.
func TestBadEvent(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var bad claybot.RunID
		allowed := false
		p := newPlace(nil)
		p.answer = func(_ context.Context, events []claybot.Event) error {
			p.mu.Lock()
			defer p.mu.Unlock()
			if e := events[0]; e.Run == bad && !allowed && e.Seq <= 57 && events[len(events)-1].Seq >= 57 {
				return &runs.SinkError{Text: "422", Refused: true, Batch: true}
			}
			return nil
		}
		_, stop := r.relay(map[string]runs.Sink{"place": p})
		stop()
		l := r.ended(900)
		bad = l.id
		re, stop := r.relay(map[string]runs.Sink{"place": p})
		defer stop()
		other := r.ended(300)
		time.Sleep(5*time.Minute - time.Second)
		wantSeqs(t, "before the bad one", p.got(l.id), span(1, 56))
		wantSeqs(t, "another run", p.got(other.id), span(1, 300))
		alone := 0
		for _, b := range p.of(l.id) {
			if b == "57-57" {
				alone++
			}
		}
		if alone < 4 || alone > 6 || len(p.of(l.id)) > alone+25 {
			t.Errorf("batches in five minutes: %v", p.of(l.id))
		}
		if h := re.Health()[0]; !strings.Contains(h.Error, "422") || h.Backlog != 1 {
			t.Errorf("health %+v", h)
		}
		p.mu.Lock()
		allowed = true
		before := len(p.batches)
		p.mu.Unlock()
		time.Sleep(time.Minute + time.Second)
		wantSeqs(t, "once it is taken", p.got(l.id), span(1, 900))
		if tries := len(p.of(l.id)) + len(p.of(other.id)) - before; tries > 100 {
			t.Errorf("%d batches for the rest: they do not grow", tries)
		}
		if h := re.Health()[0]; h.Error != "" || h.Backlog != 0 {
			t.Errorf("health %+v", h)
		}
	})
}

// TestSmallerLater makes a batch smaller when the receiver asks for time, too,
// and offers the same extent again after a failure of another kind.
func TestSmallerLater(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		p := newPlace(nil)
		p.answer = func(_ context.Context, events []claybot.Event) error {
			switch n := len(p.tried()); {
			case len(events) > 50:
				return &runs.SinkError{Text: "413", Refused: true, Batch: true, After: 5 * time.Second}
			case n < 5:
				return &runs.SinkError{Text: "503"}
			}
			return nil
		}
		_, stop := r.relay(map[string]runs.Sink{"place": p})
		stop()
		l := r.ended(200)
		_, stop = r.relay(map[string]runs.Sink{"place": p})
		defer stop()
		time.Sleep(4 * time.Second)
		synctest.Wait()
		if got := p.of(l.id); !slices.Equal(got, []string{"1-200"}) {
			t.Errorf("before it may come again: %v", got)
		}
		time.Sleep(time.Minute)
		wantSeqs(t, "run", p.got(l.id), span(1, 200))
		want := []string{"1-200", "1-100", "1-50", "1-50", "1-50", "51-100", "101-150", "151-200"}
		if got := p.of(l.id); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// TestSmallReceiver is a webhook whose receiver refuses what is too large with
// 413: all arrives, and one delivery id has one body.
func TestSmallReceiver(t *testing.T) {
	r := newRig(t)
	var mu sync.Mutex
	bodies := make(map[string]string)
	var seqs []int64
	all := make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var got struct {
			Events []claybot.Event `json:"events"`
		}
		raw, err := io.ReadAll(req.Body)
		if err != nil {
			return // the sender has given up, and comes again
		}
		if json.Unmarshal(raw, &got) != nil || len(got.Events) == 0 {
			t.Errorf("body %.100q", raw)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		id := req.Header.Get(webhook.DeliveryHeader)
		old := bodies[id]
		if old != "" && old != string(raw) {
			t.Errorf("delivery %s has two bodies", id)
		}
		bodies[id] = string(raw)
		if len(got.Events) > 50 {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		if old != "" {
			return // it comes again when the answer to it came late
		}
		for _, e := range got.Events {
			if seqs = append(seqs, e.Seq); e.Seq == 501 {
				close(all)
			}
		}
	}))
	defer receiver.Close()
	re := working(&runs.Relay{Store: r.db, Hub: r.hub, Sinks: map[string]runs.Sink{
		"small": webhook.New(webhook.Config{Name: "small", URL: receiver.URL, Secret: "fake-secret"}),
	}})
	r.must(r.db.Sinks(t.Context(), true, "small"))
	l := r.start()
	l.add(500)
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { _ = re.Run(ctx) })
	<-all
	cancel()
	done.Wait()
	wantSeqs(t, "run", seqs, span(1, 501))
}

// A retry ends the pauses after failures: of the sink, and of the runs that it refused.
func TestRelayRetry(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		for _, fault := range []error{&runs.SinkError{Text: "invalid", Refused: true}, &runs.SinkError{Text: "busy", After: time.Hour}, errors.New("down")} {
			var well atomic.Bool
			p := newPlace(func(context.Context, []claybot.Event) error {
				if well.Load() {
					return nil
				}
				return fault
			})
			re, stop := r.relay(map[string]runs.Sink{"place": p})
			l := r.start()
			l.finish()
			time.Sleep(5 * time.Minute)
			begun := time.Now()
			re.Retry() // fails once more, and pauses again
			synctest.Wait()
			well.Store(true)
			re.Retry()
			for len(p.got(l.id)) < 2 {
				time.Sleep(100 * time.Millisecond)
			}
			if took := time.Since(begun); took > time.Second || re.Health()[0].Error != "" {
				t.Errorf("%v: took %v, %+v", fault, took, re.Health())
			}
			wantSeqs(t, "in order", p.got(l.id), span(1, l.seq))
			stop()
		}
	})
}

package runs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/sqlite"
	"github.com/claybot/claybot/storage/storagetest"
)

// A place is a sink that remembers what arrived and when a delivery was tried.
type place struct {
	mu      sync.Mutex
	seqs    map[claybot.RunID][]int64
	batches []string        // run first-last, of all tries
	tries   []time.Duration // since the beginning of the test
	// answer decides on a batch; nil takes all.
	answer func(ctx context.Context, events []claybot.Event) error
	begun  time.Time
}

func newPlace(answer func(context.Context, []claybot.Event) error) *place {
	return &place{seqs: make(map[claybot.RunID][]int64), answer: answer, begun: time.Now()}
}

func (p *place) Publish(ctx context.Context, events []claybot.Event) error {
	first, last := events[0], events[len(events)-1]
	p.mu.Lock()
	p.tries = append(p.tries, time.Since(p.begun))
	p.batches = append(p.batches, fmt.Sprintf("%s %d-%d", first.Run, first.Seq, last.Seq))
	p.mu.Unlock()
	if p.answer != nil {
		if err := p.answer(ctx, events); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range events {
		if e.Run != first.Run {
			return errors.New("events of two runs in one batch")
		}
		p.seqs[e.Run] = append(p.seqs[e.Run], e.Seq)
	}
	return nil
}

func (p *place) got(run claybot.RunID) []int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.seqs[run])
}

func (p *place) tried() []time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.tries)
}

// relay publishes to sinks until the function that it returns is called.
func (r *rig) relay(sinks map[string]runs.Sink) (*runs.Relay, func()) {
	r.t.Helper()
	return r.relaying(&runs.Relay{Sinks: sinks})
}

// working gives a Relay its nodes.
func working(re *runs.Relay) *runs.Relay {
	re.Nodes = nodes.NewSet(nodes.Kind[runs.Sink]{Work: re.Work, Alone: true})
	return re
}

// relaying is relay of a Relay without a store.
func (r *rig) relaying(re *runs.Relay) (*runs.Relay, func()) {
	r.t.Helper()
	re.Store, re.Hub = r.db, r.hub
	working(re)
	cause := errors.New("the end of the test")
	ctx, cancel := context.WithCancelCause(r.t.Context())
	done := make(chan error, 1)
	go func() { done <- re.Run(ctx) }()
	synctest.Wait()
	return re, sync.OnceFunc(func() {
		cancel(cause)
		if err := <-done; !errors.Is(err, cause) {
			r.t.Errorf("Run returned %v", err)
		}
	})
}

func wantSeqs(t *testing.T, what string, got, want []int64) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestRelay(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		before := r.start() // a sink that is new hears of what comes after
		one, two := newPlace(nil), newPlace(nil)
		re, stop := r.relay(map[string]runs.Sink{"one": one, "two": two})
		defer stop()
		l := r.start()
		before.add(1)
		synctest.Wait()
		for range 3 {
			l.add(250)
			synctest.Wait()
		}
		l.finish()
		before.finish()
		synctest.Wait()
		noTime(t) // all of it on a hint
		for name, p := range map[string]*place{"one": one, "two": two} {
			wantSeqs(t, name, p.got(l.id), span(1, 752))
			wantSeqs(t, name, p.got(before.id), span(2, 3))
		}
		health := re.Health()
		if len(health) != 2 || health[0].Name != "one" || health[1].Name != "two" {
			t.Fatalf("health %+v", health)
		}
		for _, h := range health {
			if h.Error != "" || h.Success == 0 || h.Backlog != 0 || h.Oldest != 0 {
				t.Errorf("health %+v", h)
			}
		}
	})
}

// TestRelayWithoutHints publishes what the hub never heard of.
func TestRelayWithoutHints(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		p := newPlace(nil)
		deaf := *r
		deaf.hub = runs.NewHub()
		_, stop := deaf.relay(map[string]runs.Sink{"place": p})
		defer stop()
		l := r.start()
		time.Sleep(250 * time.Millisecond)
		wantSeqs(t, "one look later", p.got(l.id), span(1, 1))
	})
}

// TestDeadSink has one sink that refuses, one that hangs and one that works.
func TestDeadSink(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		dead := newPlace(func(context.Context, []claybot.Event) error { return errors.New("the line is cut") })
		hangs := newPlace(func(ctx context.Context, _ []claybot.Event) error { <-ctx.Done(); return ctx.Err() })
		well := newPlace(nil)
		re, stop := r.relay(map[string]runs.Sink{"dead": dead, "hangs": hangs, "well": well})
		defer stop()
		l := r.start()
		l.add(10)
		l.finish()
		synctest.Wait()
		noTime(t)
		wantSeqs(t, "well", well.got(l.id), span(1, 12))
		time.Sleep(10 * time.Minute)
		var pauses []time.Duration
		tries := dead.tried()
		for i := range tries[1:] {
			pauses = append(pauses, tries[i+1]-tries[i])
		}
		for i, d := range pauses {
			most := min(time.Minute, 200*time.Millisecond<<min(i, 20))
			if d < most/2 || d > most+200*time.Millisecond {
				t.Errorf("pause %d took %v, want %v to %v", i+1, d, most/2, most)
			}
		}
		if len(pauses) < 15 {
			t.Errorf("%d tries in ten minutes", len(tries))
		}
		health := re.Health()
		if !strings.HasPrefix(health[0].Error, "the line is cut. It is tried again") || health[0].Backlog != 1 || health[0].Oldest == 0 || health[0].Success != 0 {
			t.Errorf("health of the dead one %+v", health[0])
		}
		if !strings.Contains(health[1].Error, "30s") {
			t.Errorf("health of the one that hangs %+v", health[1])
		}
		if health[2].Error != "" {
			t.Errorf("health of the one that works %+v", health[2])
		}
	})
}

// TestSinkRecovers tells in order what waited.
func TestSinkRecovers(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		down := true
		p := newPlace(nil)
		p.answer = func(context.Context, []claybot.Event) error {
			p.mu.Lock()
			defer p.mu.Unlock()
			if down {
				return errors.New("down")
			}
			return nil
		}
		re, stop := r.relay(map[string]runs.Sink{"place": p})
		defer stop()
		var all []*live
		for range 5 {
			l := r.start()
			l.add(3)
			all = append(all, l)
			time.Sleep(time.Second)
		}
		p.mu.Lock()
		down = false
		p.mu.Unlock()
		for _, l := range all {
			l.finish()
		}
		time.Sleep(2 * time.Minute)
		for _, l := range all {
			wantSeqs(t, string(l.id), p.got(l.id), span(1, 5))
		}
		if h := re.Health()[0]; h.Error != "" || h.Backlog != 0 {
			t.Errorf("health %+v", h)
		}
	})
}

// A stopped sink gets nothing, over a restart as well, and everything in order once it is started.
func TestSinkStopped(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var why atomic.Value
		why.Store("")
		p, other := newPlace(nil), newPlace(nil)
		begin := func() (*runs.Relay, func()) {
			return r.relaying(&runs.Relay{Sinks: map[string]runs.Sink{"place": p, "other": other}, Stopped: func(sink string) string {
				if sink == "other" {
					return ""
				}
				return why.Load().(string)
			}})
		}
		re, stop := begin()
		l := r.start()
		l.add(3)
		synctest.Wait()
		why.Store("stopped by boss")
		l.add(300)
		time.Sleep(time.Minute)
		wantSeqs(t, "stopped", p.got(l.id), span(1, 4))
		wantSeqs(t, "another sink", other.got(l.id), span(1, 304))
		if h := re.Health()[1]; h.Stopped != "stopped by boss" || h.Backlog != 1 || h.Error != "" {
			t.Errorf("health %+v", h)
		}
		stop()
		r.reopen()
		l.rig = r
		_, stop = begin()
		defer stop()
		l.resume()
		l.finish()
		time.Sleep(time.Minute)
		wantSeqs(t, "after a restart", p.got(l.id), span(1, 4))
		why.Store("")
		time.Sleep(time.Second)
		wantSeqs(t, "started", p.got(l.id), span(1, l.seq))
	})
}

// TestRunIsNotOvertaken has a run that the sink refuses; all of it waits, and
// others go on.
func TestRunIsNotOvertaken(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		allowed := false
		p := newPlace(nil)
		var bad claybot.RunID
		p.answer = func(_ context.Context, events []claybot.Event) error {
			p.mu.Lock()
			defer p.mu.Unlock()
			if events[0].Run == bad && !allowed {
				return &runs.SinkError{Text: "the receiver answers 422 Unprocessable Entity", Refused: true, Batch: true}
			}
			return nil
		}
		poison := r.post("")
		bad = poison.id
		re, stop := r.relay(map[string]runs.Sink{"place": p})
		defer stop()
		poison.begin()
		synctest.Wait()
		for range 20 {
			poison.add(2)
			l := r.ended(5)
			time.Sleep(10 * time.Second)
			wantSeqs(t, "another run", p.got(l.id), span(1, 5))
		}
		wantSeqs(t, "the refused run", p.got(bad), nil)
		tries := p.of(bad)
		if len(tries) < 3 || len(tries) > 5 { // once a minute in 200 seconds
			t.Errorf("tries %v", tries)
		}
		if c := slices.Compact(slices.Clone(tries)); len(c) != 1 || c[0] != "1-1" {
			t.Errorf("the batch came again as %v", c)
		}
		if h := re.Health()[0]; !strings.Contains(h.Error, "422") || !strings.Contains(h.Error, "every minute") || h.Backlog != 1 || h.Success == 0 {
			t.Errorf("health %+v", h)
		}
		p.mu.Lock()
		allowed = true
		p.mu.Unlock()
		time.Sleep(61 * time.Second)
		wantSeqs(t, "once it is taken", p.got(bad), span(1, poison.seq))
		if h := re.Health()[0]; h.Error != "" {
			t.Errorf("health %+v", h)
		}
	})
}

// TestRetryAfter leaves a sink alone as long as it asks, but no longer than an
// hour.
func TestRetryAfter(t *testing.T) {
	for asked, want := range map[time.Duration]time.Duration{
		90 * time.Second:   90 * time.Second,
		time.Millisecond:   100 * time.Millisecond, // our own is longer
		1000 * time.Hour:   time.Hour,
		-1000 * time.Hour:  100 * time.Millisecond,
		59 * time.Minute:   59 * time.Minute,
		500 * time.Second:  500 * time.Second,
		3600 * time.Second: time.Hour,
	} {
		inBubble(t, func(t *testing.T, r *rig) {
			p := newPlace(nil)
			p.answer = func(context.Context, []claybot.Event) error {
				if len(p.tried()) == 1 {
					return &runs.SinkError{Text: "429", After: asked}
				}
				return nil
			}
			_, stop := r.relay(map[string]runs.Sink{"place": p})
			defer stop()
			l := r.start()
			synctest.Wait()
			other := r.start() // waits, too
			time.Sleep(want + 2*time.Second)
			wantSeqs(t, "run", p.got(l.id), span(1, 1))
			wantSeqs(t, "other run", p.got(other.id), span(1, 1))
			if again := p.tried()[1]; again < want || again > want+300*time.Millisecond {
				t.Errorf("asked for %v, tried again after %v", asked, again)
			}
		})
	}
}

// TestRelayRestarts stops and starts it in the middle of everything.
func TestRelayRestarts(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		p := newPlace(nil)
		n := 0
		p.answer = func(context.Context, []claybot.Event) error {
			if n++; n%3 == 0 {
				return errors.New("every third fails")
			}
			return nil
		}
		_, stop := r.relay(map[string]runs.Sink{"place": p})
		l := r.start()
		for range 10 {
			l.add(7)
			time.Sleep(500 * time.Millisecond)
			stop()
			l.add(1)
			r.reopen()
			l.rig = r
			_, stop = r.relay(map[string]runs.Sink{"place": p})
			l.resume()
		}
		l.finish()
		time.Sleep(time.Minute)
		stop()
		wantSeqs(t, "run", p.got(l.id), span(1, l.seq))

		// Without sinks the old ones are forgotten.
		_, stop = r.relay(nil)
		other := r.start()
		other.finish()
		stop()
		_, stop = r.relay(map[string]runs.Sink{"place": p})
		time.Sleep(time.Minute)
		stop()
		wantSeqs(t, "what it was not named for", p.got(other.id), nil)
	})
}

// TestCutAfterPublish loses the note that a batch was published: it comes
// again, with the same extent first.
func TestCutAfterPublish(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		p := newPlace(nil)
		p.answer = func(context.Context, []claybot.Event) error {
			if len(p.tried()) == 1 {
				r.db.Close() // as if the process ended before it could note it
			}
			return nil
		}
		re, stop := r.relay(map[string]runs.Sink{"place": p})
		l := r.start()
		synctest.Wait()
		time.Sleep(time.Second)
		if h := re.Health()[0]; !strings.Contains(h.Error, "the store") {
			t.Errorf("health %+v", h)
		}
		stop()
		r.reopen()
		l.rig = r
		_, stop = r.relay(map[string]runs.Sink{"place": p})
		defer stop()
		l.resume()
		l.finish()
		time.Sleep(time.Minute)
		got := p.got(l.id)
		slices.Sort(got)
		wantSeqs(t, "run", slices.Compact(got), span(1, 3))
		if len(p.got(l.id)) == 3 {
			t.Error("nothing came twice: the test cut nothing")
		}
	})
}

// TestPrunedBacklog goes on when events are gone that a sink never got.
func TestPrunedBacklog(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		p := newPlace(nil)
		_, stop := r.relay(map[string]runs.Sink{"place": p})
		stop()
		old := r.ended(5)
		r.must(r.db.Prune(t.Context(), time.Now().Add(31*24*time.Hour), storagetest.Retention))
		re, stop := r.relay(map[string]runs.Sink{"place": p})
		defer stop()
		l := r.ended(5)
		time.Sleep(time.Minute)
		wantSeqs(t, "the new run", p.got(l.id), span(1, 5))
		wantSeqs(t, "the old run", p.got(old.id), nil)
		if h := re.Health()[0]; h.Error != "" {
			t.Errorf("health %+v", h)
		}
	})
}

// TestManyWaitingRuns has more runs than a round lists, half of them refused.
func TestManyWaitingRuns(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		refused := make(map[claybot.RunID]bool)
		p := newPlace(func(_ context.Context, events []claybot.Event) error {
			if refused[events[0].Run] {
				return &runs.SinkError{Text: "no", Refused: true, Batch: true}
			}
			return nil
		})
		_, stop := r.relay(map[string]runs.Sink{"place": p})
		stop()
		var well []*live
		for i := range 140 {
			l := r.ended(3)
			if refused[l.id] = i < 110; i >= 110 {
				well = append(well, l)
			}
		}
		re, stop := r.relay(map[string]runs.Sink{"place": p})
		defer stop()
		time.Sleep(time.Minute)
		for _, l := range well {
			wantSeqs(t, string(l.id), p.got(l.id), span(1, 3))
		}
		if h := re.Health()[0]; h.Backlog != 110 {
			t.Errorf("health %+v", h)
		}
	})
}

// TestOthersBeforeFailures has runs that always fail as if the sink were down,
// and others that must not wait behind them.
func TestOthersBeforeFailures(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		bad := make(map[claybot.RunID]bool)
		p := newPlace(func(_ context.Context, events []claybot.Event) error {
			if bad[events[0].Run] {
				return errors.New("500")
			}
			return nil
		})
		_, stop := r.relay(map[string]runs.Sink{"place": p})
		stop()
		for range 5 {
			bad[r.ended(2).id] = true
		}
		_, stop = r.relay(map[string]runs.Sink{"place": p})
		defer stop()
		time.Sleep(10 * time.Minute)
		for range 5 {
			l := r.ended(2)
			time.Sleep(61 * time.Second)
			wantSeqs(t, "another run", p.got(l.id), span(1, 2))
		}
	})
}

// A forgetful store fails to note what was published, some times.
type forgetful struct {
	*sqlite.DB
	fails int
}

func (f *forgetful) Published(ctx context.Context, sink string, run claybot.RunID, seq int64) error {
	if f.fails > 0 {
		f.fails--
		return storage.ErrFull
	}
	return f.DB.Published(ctx, sink, run, seq)
}

// TestNotNoted publishes nothing again while the store is full.
func TestNotNoted(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		p := newPlace(nil)
		re := working(&runs.Relay{Store: &forgetful{r.db, 3}, Hub: r.hub, Sinks: map[string]runs.Sink{"place": p}})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- re.Run(ctx) }()
		synctest.Wait()
		l := r.start()
		synctest.Wait()
		if h := re.Health()[0]; !strings.Contains(h.Error, "the store does not note") || h.Success == 0 {
			t.Errorf("health %+v", h)
		}
		l.add(4)
		time.Sleep(time.Minute)
		wantSeqs(t, "run", p.got(l.id), span(1, 5))
		if h := re.Health()[0]; h.Error != "" || h.Backlog != 0 {
			t.Errorf("health %+v", h)
		}
		cancel()
		<-done
	})
}

package runs_test

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/sqlite"
)

// A door is a place that can be closed, and that keeps its batches until it is open.
type door struct {
	*place
	open   chan struct{}
	closed atomic.Int32
}

func newDoor() *door {
	d := &door{open: make(chan struct{})}
	d.place = newPlace(func(ctx context.Context, _ []claybot.Event) error {
		select {
		case <-d.open:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	return d
}

func (d *door) Close() error {
	d.closed.Add(1)
	return nil
}

// Sinks change while events come: those that stay notice nothing, one with other settings goes on where the one before
// it ended, and one that is gone ends once its batch has.
func TestReplace(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		stays, was, now, gone, added := newPlace(nil), newDoor(), newPlace(nil), newDoor(), newPlace(nil)
		re, stop := r.relay(map[string]runs.Sink{"stays": stays, "changes": was, "goes": gone})
		defer stop()
		l := r.start()
		l.add(3)
		synctest.Wait()
		re.Replace(t.Context(), map[string]runs.Sink{"stays": stays, "changes": now, "comes": added}, false)
		l.add(4)
		synctest.Wait()
		noTime(t)
		wantSeqs(t, "stays", stays.got(l.id), span(1, 8))
		wantSeqs(t, "not before the batch of the one before it has ended", now.got(l.id), nil)
		wantSeqs(t, "it comes, whatever hangs", added.got(l.id), span(5, 8))
		if was.closed.Load()+gone.closed.Load() != 0 {
			t.Error("closed during a batch")
		}
		if h := re.Health(); len(h) != 3 || h[0].Name != "changes" || h[1].Name != "comes" || h[2].Name != "stays" || h[0].Error != "" {
			t.Errorf("health %+v", h)
		}
		close(was.open)
		close(gone.open)
		l.finish()
		time.Sleep(time.Second)
		wantSeqs(t, "stays", stays.got(l.id), span(1, 9))
		if all := slices.Concat(was.got(l.id), now.got(l.id)); !slices.Equal(all, span(1, 9)) || len(was.got(l.id)) == 0 || len(now.got(l.id)) == 0 {
			t.Errorf("it changed: before %v, then %v", was.got(l.id), now.got(l.id))
		}
		if got := gone.got(l.id); len(got) > 4 || len(gone.tried()) != 1 {
			t.Errorf("it is gone, and got %v in %d batches", got, len(gone.tried()))
		}
		wantSeqs(t, "comes", added.got(l.id), span(5, 9))
		if was.closed.Load() != 1 || gone.closed.Load() != 1 {
			t.Errorf("closed %d and %d times", was.closed.Load(), gone.closed.Load())
		}
	})
}

// The end of the relay waits for no batch, also of one that another one replaces.
func TestReplaceAndStop(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		was := newDoor()
		re, stop := r.relay(map[string]runs.Sink{"changes": was})
		r.start()
		synctest.Wait()
		re.Replace(t.Context(), map[string]runs.Sink{"changes": newPlace(nil)}, false)
		synctest.Wait()
		stop()
		noTime(t)
		if was.closed.Load() != 1 {
			t.Error("not closed")
		}
	})
}

// However often sinks come, go and change, each one that stays has every event once, and those of one name have
// all of them between them once.
func TestReplaceOften(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		draw := rand.New(rand.NewPCG(1, 2))
		stays := newPlace(nil)
		var changes []*place
		next := map[string]runs.Sink{"stays": stays, "changes": newPlace(nil)}
		changes = append(changes, next["changes"].(*place))
		re, stop := r.relay(maps.Clone(next))
		defer stop()
		l := r.start()
		for range 200 {
			switch draw.IntN(4) {
			case 0:
				changes = append(changes, newPlace(nil))
				next["changes"] = changes[len(changes)-1]
			case 1:
				next["comes"] = newPlace(nil)
			case 2:
				delete(next, "comes")
			case 3:
				time.Sleep(time.Duration(draw.IntN(300)) * time.Millisecond)
			}
			l.add(1 + draw.IntN(3))
			re.Replace(t.Context(), maps.Clone(next), draw.IntN(2) == 0)
		}
		l.finish()
		time.Sleep(time.Second)
		wantSeqs(t, "stays", stays.got(l.id), span(1, l.seq))
		var all []int64
		for _, p := range changes {
			all = append(all, p.got(l.id)...)
		}
		wantSeqs(t, "changes", all, span(1, l.seq))
	})
}

// A nameless store does not take the names of sinks while it is full.
type nameless struct {
	*sqlite.DB
	full atomic.Bool
}

func (n *nameless) Sinks(ctx context.Context, forget bool, names ...string) error {
	if n.full.Load() {
		return storage.ErrFull
	}
	return n.DB.Sinks(ctx, forget, names...)
}

// A sink that cannot be added leaves the others alone, and comes once it can. One that is gone ends all the same.
func TestReplaceWithoutTheStore(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		store := &nameless{DB: r.db}
		stays, gone, added := newPlace(nil), newPlace(nil), newPlace(nil)
		re := working(&runs.Relay{Store: store, Hub: r.hub, Sinks: map[string]runs.Sink{"stays": stays, "goes": gone}})
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() { _ = re.Run(ctx) })
		synctest.Wait()
		store.full.Store(true)
		re.Replace(t.Context(), map[string]runs.Sink{"stays": stays, "comes": added}, false)
		synctest.Wait()
		l := r.start()
		l.add(2)
		time.Sleep(5 * time.Second)
		wantSeqs(t, "stays", stays.got(l.id), span(1, 3))
		wantSeqs(t, "goes", gone.got(l.id), nil)
		if h := re.Health(); len(h) != 2 || !strings.Contains(h[0].Error, "does not take its name") || h[1].Error != "" {
			t.Errorf("health %+v", h)
		}
		store.full.Store(false)
		time.Sleep(2 * time.Minute)
		l.finish()
		time.Sleep(time.Second)
		wantSeqs(t, "comes", added.got(l.id), span(4, 4))
		wantSeqs(t, "stays", stays.got(l.id), span(1, 4))
		if h := re.Health(); h[0].Error != "" {
			t.Errorf("health %+v", h)
		}
		cancel()
		done.Wait()
	})
}

// A node that has a sink no more gives up the right to tell it.
func TestReplaceYields(t *testing.T) {
	inCluster(t, 2, func(t *testing.T, c *cluster) {
		turn := &turnstile{holder: "a"}
		var yielded atomic.Int32
		p := newPlace(nil)
		ctx, stop := context.WithCancel(t.Context())
		var all []*runs.Relay
		var ended sync.WaitGroup
		for i, node := range []string{"a", "b"} {
			re := working(&runs.Relay{
				Store: c.db, Hub: c.hubs[i], Turn: turn.of(node), Sinks: map[string]runs.Sink{"out": p},
				Yield: func(_ context.Context, claim string) error {
					if claim != runs.SinkClaim("out") {
						t.Errorf("it yields %s", claim)
					}
					yielded.Add(1)
					turn.give("b")
					return nil
				},
			})
			all = append(all, re)
			ended.Go(func() { _ = re.Run(ctx) })
		}
		time.Sleep(3 * time.Second)
		l := c.start()
		time.Sleep(3 * time.Second)
		all[0].Replace(ctx, nil, true) // the store of a cluster keeps it for the other one
		l.add(4)
		l.finish()
		time.Sleep(5 * time.Second)
		wantSeqs(t, "over both", p.got(l.id), span(1, 6))
		if h := all[1].Health()[0]; yielded.Load() != 1 || h.Standby || len(all[0].Health()) != 0 {
			t.Errorf("%d times yielded, health %+v", yielded.Load(), h)
		}
		stop()
		ended.Wait()
		if yielded.Load() != 1 {
			t.Error("it yields at the end as well, which the membership does")
		}
	})
}

// The events of a sink that is off wait, and it says at once why; others notice nothing.
func TestOffSink(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		was, now, stays := newPlace(nil), newPlace(nil), newPlace(nil)
		re, stop := r.relay(map[string]runs.Sink{"off": was, "stays": stays})
		defer stop()
		l := r.start()
		synctest.Wait()
		re.Replace(t.Context(), map[string]runs.Sink{"off": runs.OffSink("it has no secret"), "stays": stays}, true)
		synctest.Wait()
		if h := re.Health(); !strings.HasPrefix(h[0].Error, "it has no secret. Nothing is skipped") || h[1].Error != "" {
			t.Errorf("health %+v", h)
		}
		l.finish()
		time.Sleep(time.Second)
		if h := re.Health()[0]; h.Backlog != 1 {
			t.Errorf("health %+v", h)
		}
		re.Replace(t.Context(), map[string]runs.Sink{"off": now, "stays": stays}, false)
		time.Sleep(time.Second)
		wantSeqs(t, "stays", stays.got(l.id), span(1, 2))
		wantSeqs(t, "once it is on", now.got(l.id), span(2, 2))
		if h := re.Health()[0]; h.Error != "" || h.Backlog != 0 {
			t.Errorf("health %+v", h)
		}
	})
}

package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/sqlite"
)

// A rig is inboxes on a real store that can be made to fail, in a bubble.
type rig struct {
	*testing.T
	db     *sqlite.DB
	store  *faulty
	boxes  *inbox.Inboxes
	agents []claybot.AgentID
	n      int
}

func bubble(t *testing.T, test func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		db, err := sqlite.Open(context.Background(), filepath.Join(t.TempDir(), "claybot.db"), sqlite.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		}()
		r := &rig{T: t, db: db, store: &faulty{Store: db}}
		r.boxes = inboxOf(r.store, "node")
		for i := range 3 {
			a := claybot.Agent{ID: claybot.NewID(), Descriptor: claybot.User("chat", "c", fmt.Sprint(i))}
			if err := db.IndexAgents(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			r.agents = append(r.agents, a.ID)
		}
		test(r)
	})
}

func inboxOf(s inbox.Store, node string) *inbox.Inboxes {
	return inbox.New(inbox.Config{Store: s, Node: func() string { return node }})
}

// A faulty store fails its renewals when told to.
type faulty struct {
	inbox.Store
	err      atomic.Pointer[error]
	renewals atomic.Int64
}

func (f *faulty) fail(err error) { f.err.Store(&err) }

func (f *faulty) Renew(ctx context.Context, l storage.Lease, ttl time.Duration) (storage.Lease, string, error) {
	f.renewals.Add(1)
	if p := f.err.Load(); p != nil && *p != nil {
		return storage.Lease{}, "", *p
	}
	return f.Store.Renew(ctx, l, ttl)
}

func (r *rig) post(agent int, t claybot.MessageType, wait time.Duration) storage.Posted {
	r.Helper()
	r.n++
	done, err := r.boxes.Post(r.Context(), storage.Posting{
		To:      r.agents[agent],
		Message: claybot.AgentMessage{ID: claybot.MessageID(fmt.Sprint("m", r.n)), Type: t, Text: "x"},
		Wait:    storage.Wait{Quiet: wait, Max: 10 * wait},
	})
	if err != nil {
		r.Fatal(err)
	}
	return done
}

// hold takes one box, which must come within the time.
func (r *rig) hold(within time.Duration) *inbox.AgentInbox {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), within)
	defer cancel()
	boxes, err := r.boxes.Next(ctx, 1, 10)
	if err != nil || len(boxes) != 1 {
		r.Fatalf("%d boxes, %v", len(boxes), err)
	}
	return boxes[0]
}

func (r *rig) none(within time.Duration) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), within)
	defer cancel()
	boxes, err := r.boxes.Next(ctx, 10, 10)
	if !errors.Is(err, context.DeadlineExceeded) {
		r.Fatalf("%d boxes, %v", len(boxes), err)
	}
}

func (r *rig) begin(b *inbox.AgentInbox, id claybot.RunID) {
	r.Helper()
	run, err := r.db.Begin(r.Context(), b.Lease, id, []claybot.MessageID{b.Waiting[0].ID}, storage.Beginning{})
	if err != nil {
		r.Fatal(err)
	}
	b.Begun(run.ID)
}

func (r *rig) release(b *inbox.AgentInbox) {
	r.Helper()
	if err := r.db.Release(r.Context(), b.Lease, storage.Wait{}, true); err != nil {
		r.Error(err)
	}
	b.Close()
}

// Next sleeps until an agent is due, to the millisecond, and costs no renewals
// meanwhile.
func TestNextWaitsUntilDue(t *testing.T) {
	bubble(t, func(r *rig) {
		began := time.Now()
		r.post(0, claybot.MessageUser, 7*time.Second)
		r.none(6999 * time.Millisecond)
		b := r.hold(time.Second)
		if took := time.Since(began); took != 7*time.Second {
			t.Errorf("held after %v", took)
		}
		if !r.boxes.Busy(r.agents[0]) || r.boxes.Busy(r.agents[1]) {
			t.Error("busy is wrong")
		}
		r.none(time.Minute) // held agents are not due
		r.release(b)
		if r.boxes.Busy(r.agents[0]) {
			t.Error("busy after Close")
		}
	})
}

// A message that is due earlier wakes a sleeping Next.
func TestPostWakesNext(t *testing.T) {
	bubble(t, func(r *rig) {
		r.post(0, claybot.MessageUser, time.Minute)
		began := time.Now()
		time.AfterFunc(1234*time.Millisecond, func() { r.post(1, claybot.MessageUser, 0) })
		b := r.hold(time.Minute)
		if took := time.Since(began); took != 1234*time.Millisecond || b.Lease.Agent != r.agents[1] {
			t.Errorf("held agent %s after %v", b.Lease.Agent, took)
		}
		r.release(b)
	})
}

// What another node left is found without a wake-up, too.
func TestNextLooksAgain(t *testing.T) {
	bubble(t, func(r *rig) {
		time.AfterFunc(time.Minute+time.Second, func() { // between two looks
			_, err := r.db.Post(r.Context(), storage.Posting{To: r.agents[0], Message: claybot.AgentMessage{ID: "x", Type: claybot.MessageUser}})
			if err != nil {
				t.Error(err)
			}
		})
		r.release(r.hold(time.Minute + 6*time.Second))
	})
}

// Closing a box makes its agent available at once when it is due.
func TestCloseWakesNext(t *testing.T) {
	bubble(t, func(r *rig) {
		r.post(0, claybot.MessageUser, 0)
		first := r.hold(time.Second)
		began := time.Now()
		time.AfterFunc(time.Second, func() { r.release(first) })
		second := r.hold(time.Minute)
		if took := time.Since(began); took != time.Second {
			t.Errorf("held again after %v", took)
		}
		if second.Lease.Token <= first.Lease.Token {
			t.Errorf("token %d after %d", second.Lease.Token, first.Lease.Token)
		}
		r.release(second)
	})
}

// A lease is kept for as long as the box is open, and no longer.
func TestLeaseIsKept(t *testing.T) {
	bubble(t, func(r *rig) {
		r.post(0, claybot.MessageUser, 0)
		b := r.hold(time.Second)
		other := inboxOf(r.db, "other")
		for range 5 {
			time.Sleep(10 * time.Second)
			if b.Context().Err() != nil {
				t.Fatal(context.Cause(b.Context()))
			}
			ctx, cancel := context.WithTimeout(r.Context(), time.Millisecond)
			if boxes, err := other.Next(ctx, 1, 1); err == nil {
				t.Errorf("another node holds %d agents", len(boxes))
			}
			cancel()
		}
		b.Close()
		n := r.store.renewals.Load()
		time.Sleep(time.Minute)
		if got := r.store.renewals.Load(); got != n {
			t.Errorf("%d renewals after Close", got-n)
		}
	})
}

// A lease that another node has ends the work at once.
func TestLeaseLost(t *testing.T) {
	bubble(t, func(r *rig) {
		r.post(0, claybot.MessageUser, 0)
		b := r.hold(time.Second)
		r.store.fail(fmt.Errorf("renew: %w", storage.ErrLeaseLost))
		time.Sleep(4 * time.Second)
		if cause := context.Cause(b.Context()); !errors.Is(cause, storage.ErrLeaseLost) {
			t.Errorf("cause %v", cause)
		}
		b.Close()
	})
}

// A store that does not answer is asked again until the lease cannot be trusted
// any more, 2 s before it runs out; one that comes back in time does no harm.
func TestLeaseLapses(t *testing.T) {
	bubble(t, func(r *rig) {
		r.post(0, claybot.MessageUser, 0)
		b := r.hold(time.Second)
		r.store.fail(storage.ErrFull)
		time.Sleep(7 * time.Second)
		r.store.fail(nil)
		time.Sleep(30 * time.Second)
		if b.Context().Err() != nil {
			t.Fatalf("a short fault ended the work: %v", context.Cause(b.Context()))
		}
		r.store.fail(storage.ErrFull)
		began := time.Now()
		<-b.Context().Done()
		if cause := context.Cause(b.Context()); !errors.Is(cause, inbox.ErrLapsed) {
			t.Errorf("cause %v", cause)
		}
		if took := time.Since(began); took > 8*time.Second {
			t.Errorf("trusted for %v", took)
		}
		b.Close()
	})
}

// Work that was told to end keeps its lease until it has ended.
func TestCanceledWorkKeepsItsLease(t *testing.T) {
	bubble(t, func(r *rig) {
		r.post(0, claybot.MessageUser, 0)
		b := r.hold(time.Second)
		r.boxes.End(errors.New("enough"))
		time.Sleep(time.Minute)
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		if boxes, err := inboxOf(r.db, "other").Next(ctx, 1, 1); err == nil {
			t.Errorf("another node holds %d agents", len(boxes))
		}
		r.release(b)
	})
}

// A stop and a reset end the run they were meant for, with a cause that says
// who asked; the first one counts.
func TestCancel(t *testing.T) {
	for typ, by := range map[claybot.MessageType]string{claybot.MessageCancel: "user", claybot.MessageReset: "reset"} {
		bubble(t, func(r *rig) {
			r.post(0, claybot.MessageUser, 0)
			b := r.hold(time.Second)
			r.begin(b, "r1")
			if done := r.post(0, typ, 0); done.Canceled != "r1" {
				t.Errorf("%s: %+v", typ, done)
			}
			r.boxes.Cancel(r.agents[0], "", "operator")
			var canceled *inbox.CanceledError
			if cause := context.Cause(b.Context()); !errors.As(cause, &canceled) || canceled.By != by {
				t.Errorf("%s: cause %v", typ, cause)
			}
			b.Close()
		})
	}
}

// A stop that comes late does not end the next run, and one that comes before
// the worker has named its run is not lost.
func TestCancelNamesItsRun(t *testing.T) {
	bubble(t, func(r *rig) {
		r.post(0, claybot.MessageUser, 0)
		b := r.hold(time.Second)
		r.boxes.Cancel(r.agents[0], "r1", "user")
		if b.Context().Err() != nil {
			t.Error("ended before it was known which run this is")
		}
		b.Begun("r2")
		r.boxes.Cancel(r.agents[0], "r1", "user")
		if b.Context().Err() != nil {
			t.Error("another run's stop ended this one")
		}
		r.release(b)

		b = r.hold(time.Second)
		r.boxes.Cancel(r.agents[0], "r3", "user")
		b.Begun("r3")
		if b.Context().Err() == nil {
			t.Error("the stop was lost")
		}
		r.release(b)
	})
}

// A cancellation that another node stored comes with the next renewal.
func TestCancelFromElsewhere(t *testing.T) {
	bubble(t, func(r *rig) {
		r.post(0, claybot.MessageUser, 0)
		b := r.hold(time.Second)
		r.begin(b, "r1")
		_, err := r.db.Post(r.Context(), storage.Posting{To: r.agents[0], Message: claybot.AgentMessage{ID: "stop", Type: claybot.MessageCancel}})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Second)
		var canceled *inbox.CanceledError
		if cause := context.Cause(b.Context()); !errors.As(cause, &canceled) || canceled.By != "user" {
			t.Errorf("cause %v", cause)
		}
		b.Close()
	})
}

// The work outlives the context that Next was called with: a shutdown stops the
// intake first.
func TestBoxOutlivesNext(t *testing.T) {
	bubble(t, func(r *rig) {
		r.post(0, claybot.MessageUser, 0)
		ctx, cancel := context.WithCancel(r.Context())
		boxes, err := r.boxes.Next(ctx, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		synctest.Wait()
		if boxes[0].Context().Err() != nil {
			t.Error("the work ended with the intake")
		}
		if _, err := r.boxes.Next(ctx, 1, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("Next after the end: %v", err)
		}
		r.release(boxes[0])
	})
}

// Two nodes share the agents; no agent has two holders.
func TestNodesShare(t *testing.T) {
	bubble(t, func(r *rig) {
		nodes := []*inbox.Inboxes{r.boxes, inboxOf(r.db, "other")}
		var holders [3]atomic.Int64
		var all sync.WaitGroup
		ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
		defer cancel()
		for _, node := range nodes {
			all.Go(func() {
				for {
					boxes, err := node.Next(ctx, 1, 1)
					if err != nil {
						return
					}
					b := boxes[0]
					for i, id := range r.agents {
						if id == b.Lease.Agent && holders[i].Add(1) > 1 {
							t.Errorf("agent %d is held twice", i)
						}
					}
					time.Sleep(100 * time.Millisecond)
					for i, id := range r.agents {
						if id == b.Lease.Agent {
							holders[i].Add(-1)
						}
					}
					if _, err := r.db.Settle(r.Context(), b.Lease, b.Waiting[0].ID, storage.Settlement{Reason: "done"}); err != nil {
						t.Error(err)
					}
					b.Close()
				}
			})
		}
		for range 10 {
			for agent := range r.agents {
				r.post(agent, claybot.MessageUser, 0)
			}
			time.Sleep(150 * time.Millisecond)
		}
		all.Wait()
		counts, err := r.db.Stats(r.Context())
		if err != nil || counts.Waiting != 0 {
			t.Errorf("%d messages still wait, %v", counts.Waiting, err)
		}
	})
}

// A node that is given up gives up its agents, and takes none while it has no id.
func TestNodeChanges(t *testing.T) {
	bubble(t, func(r *rig) {
		var id atomic.Pointer[string]
		set := func(s string) { id.Store(&s) }
		set("one")
		r.boxes = inbox.New(inbox.Config{Store: r.store, Node: func() string { return *id.Load() }, TTL: 3 * time.Second, Poll: time.Second})
		r.post(0, claybot.MessageUser, 0)
		b := r.hold(time.Second)
		if b.Lease.Node != "one" || b.Trusted() != nil || r.boxes.Working() != 1 {
			t.Errorf("held as %q, %v", b.Lease.Node, b.Trusted())
		}
		r.boxes.Lapse()
		if b.Context().Err() != nil {
			t.Error("given up although nothing has changed")
		}
		set("")
		r.boxes.Lapse()
		if err := context.Cause(b.Context()); !errors.Is(err, inbox.ErrLapsed) || b.Trusted() == nil {
			t.Errorf("not given up: %v", err)
		}
		r.release(b)
		b.Close()
		r.none(time.Minute)
		set("two")
		again := r.hold(2 * time.Second) // it got no hint
		if again.Lease.Node != "two" || r.boxes.Working() != 1 {
			t.Errorf("held as %q", again.Lease.Node)
		}
		r.release(again)
		again.Close()
	})
}

// The length of a lease is settable, and a process that was stopped sees by the
// clock that it has lost it. A person who ends the work does not end the lease.
func TestTrusted(t *testing.T) {
	bubble(t, func(r *rig) {
		r.boxes = inbox.New(inbox.Config{Store: r.store, Node: func() string { return "node" }, TTL: 3 * time.Second})
		r.post(0, claybot.MessageUser, 0)
		b := r.hold(time.Second)
		r.begin(b, "run")
		time.Sleep(time.Minute)
		if b.Trusted() != nil {
			t.Errorf("not trusted although it is renewed: %v", b.Trusted())
		}
		r.boxes.Cancel(r.agents[0], "run", "user")
		if b.Context().Err() == nil || b.Trusted() != nil {
			t.Errorf("canceled: %v, %v", context.Cause(b.Context()), b.Trusted())
		}
		r.store.fail(errors.New("gone"))
		time.Sleep(3 * time.Second)
		if !errors.Is(b.Trusted(), inbox.ErrLapsed) {
			t.Errorf("trusted without a renewal: %v", b.Trusted())
		}
		b.Close()
	})
}

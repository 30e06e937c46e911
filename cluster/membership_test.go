package cluster_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/cluster"
	"github.com/claybot/claybot/storage"
)

const ttl = 10 * time.Second

var errCut = errors.New("connection refused")

// A register is a store of members and claims as the contract describes it, whose
// way can be cut. What hangs is answered when the caller gives up.
type register struct {
	version string // of the next member; empty: test

	mu       sync.Mutex
	nodes    map[string]storage.Member
	claims   map[string]storage.Claim
	renewals []time.Time
	cut      error
	hang     bool
	frozen   chan struct{} // a renewal waits for its end, whatever its context says
	told     []storage.Notification
	joined   int // nodes that have said so
}

func newRegister() *register {
	return &register{nodes: make(map[string]storage.Member), claims: make(map[string]storage.Claim)}
}

func (r *register) way(ctx context.Context) error {
	r.mu.Lock()
	hang, cut, frozen := r.hang, r.cut, r.frozen
	r.mu.Unlock()
	if frozen != nil {
		<-frozen
		return nil
	}
	if hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return cut
}

func (r *register) set(cut error, hang bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut, r.hang = cut, hang
}

func (r *register) alive(id string) bool { return r.nodes[id].Until > claybot.Now() }

func (r *register) RenewMember(ctx context.Context, n storage.Member, ttl time.Duration) ([]storage.Member, error) {
	r.mu.Lock()
	r.renewals = append(r.renewals, time.Now())
	r.mu.Unlock()
	if err := r.way(ctx); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.nodes[n.ID]; known && !r.alive(n.ID) {
		return nil, fmt.Errorf("renewal: %w", storage.ErrLeaseLost)
	}
	n.Seen, n.Until = claybot.Now(), claybot.At(time.Now().Add(ttl))
	r.nodes[n.ID] = n
	var list []storage.Member
	for id, x := range r.nodes {
		if r.alive(id) {
			list = append(list, x)
		}
	}
	slices.SortFunc(list, func(a, b storage.Member) int { return int(a.Started - b.Started) })
	return list, nil
}

func (r *register) HeldBy(context.Context, claybot.AgentID) (string, error) { return "", nil }

func (r *register) EndMember(ctx context.Context, id, _ string) error { return r.Leave(ctx, id) }

func (r *register) Leave(ctx context.Context, id string) error {
	if err := r.way(ctx); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if n, ok := r.nodes[id]; ok {
		n.Until = 0
		r.nodes[id] = n
	}
	return nil
}

func (r *register) Members(context.Context) ([]storage.Member, error) { return nil, nil }

func (r *register) Claim(ctx context.Context, node, name string) (storage.Claim, error) {
	if err := r.way(ctx); err != nil {
		return storage.Claim{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.claims[name]
	switch {
	case !r.alive(node):
		return c, storage.ErrLeaseLost
	case c.Member == node:
		return c, nil
	case r.alive(c.Member):
		return c, storage.ErrHeld
	}
	c = storage.Claim{Name: name, Member: node, Token: c.Token + 1}
	r.claims[name] = c
	return c, nil
}

func (r *register) Yield(ctx context.Context, c storage.Claim) error {
	if err := r.way(ctx); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.claims[c.Name] == c {
		r.claims[c.Name] = storage.Claim{Name: c.Name, Token: c.Token}
	}
	return nil
}

func (r *register) Holder(_ context.Context, name string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.claims[name]; r.alive(c.Member) {
		return c.Member, nil
	}
	return "", nil
}

func (r *register) Notify(h storage.Notification) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !h.Due { // which those say that join
		r.told = append(r.told, h)
	} else {
		r.joined++
	}
}

// member is a membership at work; stop ends it and waits.
func (r *register) member(t *testing.T, name string) (m *cluster.Membership, stop func()) {
	t.Helper()
	n := 0
	m = cluster.New(cluster.Config{
		Store: r, Claims: r, Hints: r, TTL: ttl, Self: storage.Member{Name: name, Version: cmp.Or(r.version, "test")},
		NewID: func() string { n++; return fmt.Sprint(name, n) }, Working: func() int { return 3 },
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("Run: %v", err)
			}
		})
	}
	t.Cleanup(stop)
	synctest.Wait()
	return m, stop
}

func bubble(t *testing.T, test func(t *testing.T, r *register)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newRegister()) })
}

func names(list []storage.Member) (all []string) {
	for _, n := range list {
		all = append(all, n.Name)
	}
	slices.Sort(all)
	return all
}

func TestRenewals(t *testing.T) {
	bubble(t, func(t *testing.T, r *register) {
		start := time.Now()
		m, stop := r.member(t, "a")
		if m.Node() != "a1" || m.Trusted() != nil || m.Name() != "a" {
			t.Fatalf("joined as %q, %v", m.Node(), m.Trusted())
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := len(r.renewals); n < 1790 || n > 1810 {
			t.Errorf("%d renewals in an hour", n)
		}
		for i := 1; i < len(r.renewals); i++ {
			if d := r.renewals[i].Sub(r.renewals[i-1]); d != ttl/5 {
				t.Fatalf("renewal %d after %v", i, d)
			}
		}
		if r.renewals[0] != start {
			t.Error("the first renewal was late")
		}
		if n := r.nodes["a1"]; n.Working != 3 || n.Version != "test" || n.Started == 0 || n.Skew != 0 || n.State != storage.MemberLive {
			t.Errorf("the store knows %+v", n)
		}
		stop()
		if r.alive("a1") || m.Node() != "" || m.Trusted() == nil {
			t.Error("it is still there after its end")
		}
	})
}

// Nodes see each other come, drain and go.
func TestOthers(t *testing.T) {
	bubble(t, func(t *testing.T, r *register) {
		a, _ := r.member(t, "a")
		changed := a.Changed()
		if a.Mixed() {
			t.Error("one member has several versions")
		}
		r.version = "newer"
		b, stopB := r.member(t, "b")
		if got := names(b.Alive()); !slices.Equal(got, []string{"a", "b"}) || !b.Mixed() {
			t.Errorf("b sees %v", got)
		}
		<-changed
		if !a.Mixed() {
			t.Error("a does not see the version of b")
		}
		if got := names(a.Alive()); !slices.Equal(got, []string{"a", "b"}) || a.Others() != 1 || a.NameOf("b1") != "b" || a.Gone("b1") {
			t.Errorf("a sees %v", got)
		}
		changed = a.Changed()
		b.Drain()
		if !b.Draining() {
			t.Error("b does not drain")
		}
		<-changed
		if a.Others() != 0 || len(a.Alive()) != 2 {
			t.Error("one that drains counts as one that stays")
		}
		changed = a.Changed()
		stopB()
		<-changed
		if a.Others() != 0 || !a.Gone("b1") || a.Draining() || a.Mixed() {
			t.Error("b is still there")
		}
	})
}

// Of two nodes that start together the first learns of the second by its first hint,
// not by its own next renewal; hints of nodes that stay unknown make a renewal a second.
func TestHintOfNewcomer(t *testing.T) {
	bubble(t, func(t *testing.T, r *register) {
		a, _ := r.member(t, "a")
		_, stopB := r.member(t, "b")
		if r.joined != 2 {
			t.Errorf("%d of those that have joined say so", r.joined)
		}
		if a.Others() != 0 {
			t.Fatal("a knows of b before anybody told it")
		}
		a.Heard("b1")
		synctest.Wait()
		if got := names(a.Alive()); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("a sees %v", got)
		}
		stopB()
		time.Sleep(ttl)
		synctest.Wait()
		for _, tt := range []struct {
			from []string
			most int
		}{
			{[]string{"a1", ""}, 0},
			{[]string{"b1"}, 3},
		} {
			before := len(r.renewals)
			for range 20 { // two seconds, in which one renewal or none is due anyway
				for _, id := range tt.from {
					a.Heard(id)
				}
				time.Sleep(100 * time.Millisecond)
				synctest.Wait()
			}
			if n := len(r.renewals) - before; n > tt.most+1 || n < min(1, tt.most) {
				t.Errorf("hints of %q: %d renewals", tt.from, n)
			}
		}
		cluster.Alone(storage.Member{ID: "x"}).Heard("y") // has no other members to learn of
	})
}

// A member whose membership was ended in the store is gone at the next renewal, which comes
// at once; ids that are not members cause none.
func TestEnded(t *testing.T) {
	bubble(t, func(t *testing.T, r *register) {
		a, _ := r.member(t, "a")
		r.mu.Lock()
		r.nodes["x"] = storage.Member{ID: "x", Name: "x", Until: claybot.At(time.Now().Add(time.Hour)), Seen: claybot.Now(), State: storage.MemberLive}
		r.mu.Unlock()
		time.Sleep(ttl / 5)
		synctest.Wait()
		if a.Others() != 1 {
			t.Fatal("a does not know x")
		}
		changed, before := a.Changed(), len(r.renewals)
		a.Ended([]string{"y"})
		a.Ended(nil)
		synctest.Wait()
		if n := len(r.renewals) - before; n != 0 {
			t.Errorf("%d renewals for unknown members", n)
		}
		if err := r.EndMember(t.Context(), "x", "x"); err != nil {
			t.Fatal(err)
		}
		a.Ended([]string{"y", "x"})
		<-changed
		if !a.Gone("x") || a.Others() != 0 || len(r.renewals) != before+1 {
			t.Errorf("x counts as a member after %d renewals", len(r.renewals)-before)
		}
		cluster.Alone(storage.Member{ID: "n"}).Ended([]string{"x"}) // has no other members
	})
}

// A node that is killed is gone when its lease has run out, not a renewal later.
func TestLost(t *testing.T) {
	bubble(t, func(t *testing.T, r *register) {
		a, _ := r.member(t, "a")
		r.mu.Lock()
		r.nodes["x"] = storage.Member{ID: "x", Name: "x", Until: claybot.At(time.Now().Add(ttl)), Seen: claybot.Now(), State: storage.MemberLive}
		r.mu.Unlock()
		killed := time.Now()
		time.Sleep(ttl - time.Second)
		synctest.Wait()
		if a.Gone("x") || a.Others() != 1 {
			t.Errorf("gone after %v", time.Since(killed))
		}
		time.Sleep(time.Second + time.Millisecond) // the store counts whole ones
		if !a.Gone("x") || a.Others() != 0 {
			t.Error("there after its lease has run out")
		}
	})
}

// Trust ends at the start of the last good renewal + ttl - margin, whether the way
// to the store refuses or hangs, and a new term begins when it answers again.
func TestTrustEnds(t *testing.T) {
	tests := []struct {
		name string
		cut  error
		hang bool
	}{
		{"refused", errCut, false},
		{"silent", nil, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *register) {
				m, _ := r.member(t, "a")
				time.Sleep(time.Minute)
				synctest.Wait()
				term := m.Term()
				last := r.renewals[len(r.renewals)-1]
				r.set(tt.cut, tt.hang)
				time.Sleep(time.Until(last.Add(5 * time.Second)))
				if m.Answering() == nil {
					t.Error("after 5 s it is not noticed")
				}
				time.Sleep(time.Until(last.Add(ttl - ttl/5 - time.Millisecond)))
				synctest.Wait()
				if err := m.Trusted(); err != nil || term.Context().Err() != nil {
					t.Errorf("trust ended early: %v", err)
				}
				time.Sleep(time.Millisecond)
				synctest.Wait()
				if err := m.Trusted(); err == nil || !errors.Is(context.Cause(term.Context()), cluster.ErrLapsed) || m.Node() != "" {
					t.Errorf("trusted without a renewal: %v, %v", err, context.Cause(term.Context()))
				}
				if _, err := m.Claim(t.Context(), "x"); !errors.Is(err, cluster.ErrLapsed) {
					t.Errorf("a claim without a term: %v", err)
				}
				time.Sleep(10 * time.Minute)
				r.set(nil, false)
				again, err := m.Joined(t.Context())
				if err != nil || again.ID() == "a1" || m.Trusted() != nil || m.Answering() != nil {
					t.Errorf("did not come back: %v, %v", err, m.Trusted())
				}
				if term.Trusted() == nil {
					t.Error("the old term came back")
				}
			})
		})
	}
}

// A renewal that succeeds although an earlier one failed keeps the term.
func TestShortCut(t *testing.T) {
	bubble(t, func(t *testing.T, r *register) {
		m, _ := r.member(t, "a")
		for range 20 {
			r.set(errCut, false)
			time.Sleep(4 * time.Second)
			r.set(nil, false)
			time.Sleep(4 * time.Second)
		}
		if m.Node() != "a1" {
			t.Errorf("the term ended: %q", m.Node())
		}
	})
}

// A process that was stopped finds out by the clock, before its timers: time
// passes while nothing of it runs. Here the renewal under way stands for the frozen
// process: it comes back good, but too late.
func TestFrozen(t *testing.T) {
	bubble(t, func(t *testing.T, r *register) {
		m, _ := r.member(t, "a")
		term := m.Term()
		frozen := make(chan struct{})
		r.mu.Lock()
		r.frozen = frozen
		r.mu.Unlock()
		time.Sleep(ttl)
		err := term.Trusted()
		r.mu.Lock()
		r.frozen = nil
		r.mu.Unlock()
		close(frozen)
		synctest.Wait()
		if !errors.Is(err, cluster.ErrLapsed) || term.Trusted() == nil {
			t.Errorf("a late renewal counts: %v, %v", err, term.Trusted())
		}
		again, err := m.Joined(t.Context())
		if err != nil || again.ID() != "a2" || again.Trusted() != nil {
			t.Errorf("did not join anew: %v", err)
		}
	})
}

// When the store has given the node up, the term ends at once and the next one
// has a new id.
func TestExpired(t *testing.T) {
	bubble(t, func(t *testing.T, r *register) {
		m, _ := r.member(t, "a")
		term := m.Term()
		_ = r.Leave(t.Context(), "a1")
		time.Sleep(ttl / 3)
		synctest.Wait()
		if !errors.Is(context.Cause(term.Context()), cluster.ErrExpired) || m.Node() != "a2" {
			t.Errorf("cause %v, now %q", context.Cause(term.Context()), m.Node())
		}
		// A claim finds it out, too.
		_ = r.Leave(t.Context(), "a2")
		if _, err := m.Claim(t.Context(), "x"); !errors.Is(err, storage.ErrLeaseLost) {
			t.Errorf("claim: %v", err)
		}
		synctest.Wait()
		if m.Node() != "a3" || m.Lost() != 2 {
			t.Errorf("now %q, lost %d memberships", m.Node(), m.Lost())
		}
	})
}

// That the store is gone is known within five seconds, however long leases last,
// and whether it refuses or says nothing.
func TestSilenceIsNoticed(t *testing.T) {
	for _, life := range []time.Duration{2 * time.Second, ttl, 5 * time.Minute} {
		for _, hang := range []bool{false, true} {
			bubble(t, func(t *testing.T, r *register) {
				m := cluster.New(cluster.Config{Store: r, Claims: r, TTL: life, Self: storage.Member{Name: "a"}})
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				wg.Go(func() { _ = m.Run(ctx) }) // ends with ctx
				defer wg.Wait()
				defer cancel()
				synctest.Wait()
				time.Sleep(7 * time.Second)
				if err := m.Answering(); err != nil {
					t.Fatalf("before: %v", err)
				}
				r.set(errCut, hang)
				time.Sleep(5 * time.Second)
				if m.Answering() == nil {
					t.Errorf("a ttl of %v, silent %v: nothing was noticed", life, hang)
				}
				r.set(nil, false)
				time.Sleep(life + time.Second)
				if err := m.Answering(); err != nil || m.Trusted() != nil {
					t.Errorf("a ttl of %v, silent %v: afterwards %v, %v", life, hang, err, m.Trusted())
				}
			})
		}
	}
}

func TestStartWithoutStore(t *testing.T) {
	bubble(t, func(t *testing.T, r *register) {
		r.set(errCut, false)
		m, stop := r.member(t, "a")
		time.Sleep(time.Minute)
		if m.Term() != nil || m.Trusted() == nil || m.Answering() == nil || m.Node() != "" {
			t.Error("a member without a store")
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errCut)
		defer cancel()
		if _, err := m.Joined(ctx); !errors.Is(err, errCut) {
			t.Errorf("Joined: %v", err)
		}
		stop() // ends also without a store
	})
}

func TestClaims(t *testing.T) {
	bubble(t, func(t *testing.T, r *register) {
		a, stopA := r.member(t, "a")
		b, _ := r.member(t, "b")
		ctx := t.Context()
		hold, err := a.Claim(ctx, "x")
		if err != nil || hold.Trusted() != nil || hold.Token != 1 {
			t.Fatalf("%+v, %v", hold, err)
		}
		if _, err := b.Claim(ctx, "x"); !errors.Is(err, storage.ErrHeld) {
			t.Errorf("both have it: %v", err)
		}
		if id, err := b.Holder(ctx, "x"); id != "a1" || err != nil {
			t.Errorf("holder %q, %v", id, err)
		}
		if err := hold.Yield(ctx, false); err != nil || len(r.told) > 0 {
			t.Errorf("yield: %v, %v", err, r.told)
		}
		if hold, err = b.Claim(ctx, "x"); err != nil || hold.Token != 2 {
			t.Errorf("%+v, %v", hold, err)
		}
		if err := hold.Yield(ctx, true); err != nil || len(r.told) != 1 || !slices.Equal(r.told[0].Freed, []string{"x"}) {
			t.Errorf("yield: %v, %v", err, r.told)
		}
		// What stands on a claim ends with its term.
		if hold, err = a.Claim(ctx, "y"); err != nil {
			t.Fatal(err)
		}
		mine, free := hold.Context(ctx)
		defer free()
		stopA()
		<-mine.Done()
		if !errors.Is(context.Cause(mine), cluster.ErrLeft) || hold.Trusted() == nil || hold.Yield(ctx, true) != nil {
			t.Errorf("after the end: %v", context.Cause(mine))
		}
		if hold, err = b.Claim(ctx, "y"); err != nil || hold.Token != 2 {
			t.Errorf("not free after the end: %v", err)
		}
	})
}

// A member looks for changes of others and retries while the store is unavailable; a
// process that has the store for itself does neither.
func TestElsewhere(t *testing.T) {
	bubble(t, func(t *testing.T, r *register) {
		m, _ := r.member(t, "a")
		began := time.Now()
		<-m.Elsewhere(2 * time.Second)
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("fired after %v", took)
		}
		alone := cluster.Alone(storage.Member{ID: "x"})
		if alone.Elsewhere(time.Second) != nil {
			t.Error("a process alone looks for changes of others")
		}
		for _, tt := range []struct {
			err  error
			want bool
		}{
			{nil, false},
			{storage.ErrBusy, true},
			{fmt.Errorf("reserve: %w", storage.ErrFull), true},
			{syscall.EIO, true},
			{storage.ErrDamaged, false},
			{context.Canceled, false},
		} {
			if got := m.Retries(tt.err); got != tt.want {
				t.Errorf("Retries(%v) = %v, want %v", tt.err, got, tt.want)
			}
			if alone.Retries(tt.err) {
				t.Errorf("a process alone retries after %v", tt.err)
			}
		}
	})
}

func TestAlone(t *testing.T) {
	m := cluster.Alone(storage.Member{ID: "n", Name: "host"})
	if m.Node() != "n" || m.Name() != "host" || m.Trusted() != nil || m.Others() != 0 || m.Answering() != nil {
		t.Errorf("%q %v", m.Node(), m.Trusted())
	}
	if term, err := m.Joined(t.Context()); err != nil || term.Trusted() != nil {
		t.Error(err)
	}
	m.Drain()
	if m.Draining() {
		t.Error("it leaves its work to others")
	}
	hold, err := m.Claim(t.Context(), "x")
	if err != nil || hold.Trusted() != nil || hold.Yield(t.Context(), true) != nil {
		t.Error(err)
	}
	m.Notify(storage.Notification{Due: true})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Run(ctx); err != nil || m.Trusted() != nil {
		t.Error(err)
	}
}

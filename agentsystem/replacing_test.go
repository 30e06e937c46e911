package agentsystem_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/overview"
)

// A stint counts how often the connectors of one name work at a time.
type stint struct {
	mu         sync.Mutex
	now, most  int
	began, own []string // in order; own: of those that work
}

// works returns a line of a name whose Run takes so long to end.
func (s *stint) works(r *rig, name, mark string, ends time.Duration) *line {
	l := &line{name: name, chat: r.chat, fuse: r.fuse}
	l.run = func(ctx context.Context, _ connectors.Handler) error {
		s.mu.Lock()
		s.now++
		s.most = max(s.most, s.now)
		s.began, s.own = append(s.began, mark), append(s.own, mark)
		s.mu.Unlock()
		l.OK()
		<-ctx.Done()
		_ = rest(context.Background(), ends)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.now--
		s.own = slices.DeleteFunc(s.own, func(x string) bool { return x == mark })
		return context.Cause(ctx)
	}
	return l
}

// is what the stint is at this moment.
func (s *stint) is() (now, most int, began, own []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now, s.most, slices.Clone(s.began), slices.Clone(s.own)
}

// A connector that stays works on, and new ones start when all that are replaced or gone have ended.
func TestReplace(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.fuse = newFuse(-1)
		stays, swaps, hangs, gone := new(stint), new(stint), new(stint), new(stint)
		same := stays.works(r, "stays", "first", 0)
		r.also = []connectors.Connector{
			same, swaps.works(r, "swaps", "first", 3*time.Second), hangs.works(r, "hangs", "first", time.Minute), gone.works(r, "gone", "first", 0),
		}
		r.start()
		main := r.system.Overview.Listings.Connectors.All()[0]
		began := time.Now()
		r.system.Replace(r.Context(), main, same, swaps.works(r, "swaps", "second", 0), hangs.works(r, "hangs", "second", 0), new(stint).works(r, "new", "first", 0))
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("it took %v", took)
		}
		synctest.Wait()
		for name, s := range map[string]struct {
			*stint
			began, own []string
		}{
			"stays": {stays, []string{"first"}, []string{"first"}}, "swaps": {swaps, []string{"first"}, nil},
			"hangs": {hangs, []string{"first"}, []string{"first"}}, "gone": {gone, []string{"first"}, nil},
		} {
			if _, most, began, own := s.is(); most != 1 || !slices.Equal(began, s.began) || !slices.Equal(own, s.own) {
				t.Errorf("%s: began %v, at work %v, %d at a time", name, began, own, most)
			}
		}
		after(time.Minute)
		for name, s := range map[string]*stint{"swaps": swaps, "hangs": hangs} {
			if _, most, _, own := s.is(); most != 1 || !slices.Equal(own, []string{"second"}) {
				t.Errorf("%s, after all ended: %v, %d at a time", name, own, most)
			}
		}
		r.say("hello")
		r.wants("re: hello")
	})
}

// A restart ends a connector and starts it again, also while others ask for the same and it is replaced; one that
// does not end starts again once it has.
func TestRestart(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.fuse = newFuse(-1)
		quick, slow := new(stint), new(stint)
		first, hangs := quick.works(r, "quick", "first", time.Second), slow.works(r, "slow", "first", time.Minute)
		r.also = []connectors.Connector{first, hangs}
		r.start()
		main := r.system.Overview.Listings.Connectors.All()[0]
		if err := errors.Join(r.system.Restart(r.Context(), "quick"), r.system.Restart(r.Context(), "none")); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if err := r.system.Restart(r.Context(), "quick"); err != nil {
					t.Error(err)
				}
			})
		}
		all.Go(func() { r.system.Replace(r.Context(), main, quick.works(r, "quick", "second", 0), hangs) })
		all.Wait()
		synctest.Wait()
		// A restart behind the replacement may end what that started before it has begun.
		if _, most, began, own := quick.is(); most != 1 || len(began) < 5 || len(began) > 6 || !slices.Equal(own, []string{"second"}) {
			t.Errorf("began %v, at work %v, %d at a time", began, own, most)
		}
		if ready, why := r.system.Overview.Ready(); !ready {
			t.Error(why)
		}
		if err := r.system.Restart(r.Context(), "slow"); err == nil {
			t.Error("one that hangs is started anew")
		}
		after(time.Minute)
		if _, most, began, own := slow.is(); most != 1 || len(began) != 2 || len(own) != 1 {
			t.Errorf("slow: began %v, at work %v, %d at a time", began, own, most)
		}
	})
}

// However often a connector is replaced while it does not end, the next one waits for it.
func TestReplaceWhileItHangs(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]func(*rig, *stint, connectors.Connector){
		"twice": func(r *rig, s *stint, main connectors.Connector) {
			r.system.Replace(r.Context(), main, s.works(r, "a", "second", 0))
		},
		"gone and again": func(r *rig, _ *stint, main connectors.Connector) { r.system.Replace(r.Context(), main) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.fuse = newFuse(-1)
				s := new(stint)
				r.also = []connectors.Connector{s.works(r, "a", "first", time.Minute)}
				r.start()
				main := r.system.Overview.Listings.Connectors.All()[1]
				between(r, s, main)
				r.system.Replace(r.Context(), main, s.works(r, "a", "third", 0))
				after(time.Second)
				if _, most, _, own := s.is(); most != 1 || !slices.Equal(own, []string{"first"}) {
					t.Errorf("at work %v, %d at a time", own, most)
				}
				const waits = "it waits for the former connector a to end"
				if got := r.stateOf("a"); got.State != connectors.StateFailing || got.Err != waits {
					t.Errorf("its status is %+v", got)
				}
				if ready, why := r.system.Overview.Ready(); ready || !strings.Contains(why, waits) {
					t.Errorf("ready %v: %q", ready, why)
				}
				after(2 * time.Minute)
				if _, most, _, own := s.is(); most != 1 || !slices.Equal(own, []string{"third"}) {
					t.Errorf("at last %v, %d at a time", own, most)
				}
				if got := r.stateOf("a"); got.State != connectors.StateLive {
					t.Errorf("its status at last is %+v", got)
				}
			})
		})
	}
}

// stateOf returns the health of a connector in the status.
func (r *rig) stateOf(name string) connectors.Health {
	r.Helper()
	st, err := r.system.Overview.Status(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	i := slices.IndexFunc(st.Connectors, func(c overview.ConnectorStatus) bool { return c.Name == name })
	if i < 0 {
		r.Fatalf("%s is not in the status", name)
	}
	return st.Connectors[i].Health
}

// A connector that takes the place of one that works, or is new, has as long as a failure to succeed
// first before the member is not ready; in the place of one that has stopped, it has not.
func TestReadyWhileReplaced(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		main := r.system.Overview.Listings.Connectors.All()[0]
		slow := func(takes time.Duration) *line {
			l := &line{name: "a", chat: r.chat, fuse: r.fuse}
			l.run = func(ctx context.Context, _ connectors.Handler) error {
				if connectors.Sleep(ctx, takes) {
					l.OK()
				}
				<-ctx.Done()
				return context.Cause(ctx)
			}
			return l
		}
		dead := &line{name: "a", chat: r.chat, fuse: r.fuse}
		dead.run = func(context.Context, connectors.Handler) error {
			dead.Stop(errors.New("refused"))
			return &connectors.PermanentError{Err: errors.New("refused")}
		}
		for _, step := range []struct {
			what      string
			next      connectors.Connector
			now, late bool
		}{
			{"new", slow(20 * time.Second), true, true},
			{"replaced", slow(20 * time.Second), true, true},
			{"replaced by one that does not work", slow(time.Hour), true, false},
			{"replaced by one that works at once", new(stint).works(r, "a", "", 0), true, true},
			{"replaced by one that stops", dead, false, false},
			{"in its place", slow(20 * time.Second), false, true},
		} {
			r.system.Replace(r.Context(), main, step.next)
			after(time.Second)
			if ready, why := r.system.Overview.Ready(); ready != step.now {
				t.Errorf("%s: ready %v: %s", step.what, ready, why)
			}
			after(connectors.LiveWithin)
			if ready, why := r.system.Overview.Ready(); ready != step.late {
				t.Errorf("%s, later: ready %v: %s", step.what, ready, why)
			}
		}
	})
}

// A long reply that is made while its connector is gone is sent in parts when it comes again.
func TestReplaceLongReply(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		first := r.system.Overview.Listings.Connectors.All()[0]
		r.system.Replace(r.Context())
		text := strings.Repeat("four ", 1500)
		r.say(text)
		after(time.Minute)
		r.system.Replace(r.Context(), &line{name: first.Name(), chat: r.chat, fuse: r.fuse})
		after(time.Minute)
		sent := r.chat.seen()
		for _, part := range sent {
			if len(part) > 2000 {
				t.Errorf("a part of %d bytes", len(part))
			}
		}
		if got := strings.Join(strings.Fields(strings.Join(sent, " ")), " "); len(sent) < 4 || got != strings.TrimSpace("re: "+text) {
			t.Errorf("%d parts, %d bytes", len(sent), len(got))
		}
	})
}

// Operators who could not be told that a connector had stopped are not told so once another one
// has taken its place.
func TestReplaceStopped(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		main := r.system.Overview.Listings.Connectors.All()[0]
		dead := &line{name: "dead", chat: r.chat, fuse: r.fuse}
		dead.run = func(context.Context, connectors.Handler) error {
			return &connectors.PermanentError{Err: errors.New("the token is refused")}
		}
		r.system.Replace(r.Context(), main, dead)
		after(time.Second) // no operator has a chat yet
		r.system.Replace(r.Context(), main, new(stint).works(r, "dead", "second", 0))
		r.post(claybot.User("chat", "boss", "boss"), msg("b", "b"))
		after(5 * time.Minute)
		if got := r.chat.seen(); !slices.Equal(got, []string{"re: b"}) {
			t.Errorf("%q", got)
		}
	})
}

// What is to be sent by a connector that is gone waits, and goes out once when one of the name
// comes, whether the message waited for the next try or was stored meanwhile.
func TestReplaceWithUnsent(t *testing.T) {
	t.Parallel()
	for name, verdicts := range map[string][]verdict{"at once": nil, "after a failure": {failing}, "after a pause": {slow(5*time.Second, false)}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.start()
				first := r.system.Overview.Listings.Connectors.All()[0]
				r.chat.will(verdicts...)
				if len(verdicts) > 0 {
					r.say("early")
					synctest.Wait()
				}
				r.system.Replace(r.Context())
				r.say("late")
				after(time.Minute)
				sent := len(r.chat.seen())
				if sent != 0 {
					t.Errorf("sent without a connector: %q", r.chat.seen())
				}
				next := &line{name: first.Name(), chat: r.chat, fuse: r.fuse}
				r.system.Replace(r.Context(), next)
				after(time.Minute)
				if len(verdicts) > 0 {
					r.wants("re: early", "re: late")
				} else {
					r.wants("re: late")
				}
			})
		})
	}
}

// However connectors come and go, and whenever the system ends, two of a name never work at a
// time, the last ones work, and none is left at the end.
func TestReplaceAtRandom(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		bubble(t, func(r *rig) {
			dice := rand.New(rand.NewPCG(seed, 1))
			r.start()
			main := r.system.Overview.Listings.Connectors.All()[0]
			names := []string{"a", "b", "c"}
			stints := make(map[string]*stint)
			for _, n := range names {
				stints[n] = new(stint)
			}
			present := make(map[string]connectors.Connector)
			var calls sync.WaitGroup
			for i := range 60 {
				n := names[dice.IntN(len(names))]
				switch dice.IntN(4) {
				case 0:
					delete(present, n)
				case 1: // all stay
				default:
					present[n] = stints[n].works(r, n, fmt.Sprint(n, i), time.Duration(dice.IntN(4))*time.Second)
				}
				all := append(slices.Collect(maps.Values(present)), main)
				calls.Go(func() { r.system.Replace(r.Context(), all...) })
				after(time.Duration(dice.IntN(1500)) * time.Millisecond)
				r.say(fmt.Sprint("m", i))
			}
			if seed%4 == 0 { // the system ends while it works
				r.stopRun()
			}
			calls.Wait()
			if seed%4 != 0 {
				all := append(slices.Collect(maps.Values(present)), main)
				r.system.Replace(r.Context(), all...)
				after(10 * time.Second)
			}
			for n, s := range stints {
				_, most, _, own := s.is()
				if most > 1 {
					t.Errorf("seed %d: %d of %s at a time", seed, most, n)
				}
				if works := len(own) == 1; seed%4 != 0 && works != (present[n] != nil) {
					t.Errorf("seed %d: %s works: %v", seed, n, own)
				}
			}
			if seed%4 != 0 && len(r.chat.seen()) != 60 {
				t.Errorf("seed %d: %d answers", seed, len(r.chat.seen()))
			}
			r.shut()
			for n, s := range stints {
				if now, _, _, _ := s.is(); now != 0 {
					t.Errorf("seed %d: %s works after the end", seed, n)
				}
			}
		})
	}
}

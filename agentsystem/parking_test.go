package agentsystem_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/storage"
)

// noticesIn is how many notices of a fault a channel shows.
func (r *rig) noticesIn(channel string) (n int) {
	for _, text := range r.chat.seen(channel) {
		if strings.Contains(text, "has to wait") {
			n++
		}
	}
	return n
}

// answersIn are the answers that a channel shows.
func (r *rig) answersIn(channel string) (all []string) {
	for _, text := range r.chat.seen(channel) {
		if strings.HasPrefix(text, "re: ") {
			all = append(all, text)
		}
	}
	return all
}

func (r *rig) status() overview.Status {
	r.Helper()
	st, err := r.system.Overview.Status(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	return st
}

// A fault of real files reaches one agent alone. A directory in the place of a file
// stands for one that a restore has left unreadable, which root could read. Others are answered at once, the daemon is ready and says in
// its status what waits and why (R1).
func TestRealFaultsOfOneAgent(t *testing.T) {
	t.Parallel()
	for name, parks := range map[string]bool{"state.json": true, "descriptor.json": true, "history.jsonl": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.setPolicy(oneByOne)
				r.start()
				r.say("a")
				r.wants("re: a")
				id := r.agent(ann)
				r.shut()
				path := filepath.Join(r.dir, "agents", string(id), name)
				if err := errors.Join(os.Rename(path, path+".kept"), os.Mkdir(path, 0o700)); err != nil {
					r.Fatal(err)
				}
				r.start()
				for i := range 10 {
					r.say(fmt.Sprint("b", i))
					r.post(carol, msg(fmt.Sprint("c", i), fmt.Sprint("c", i)))
					after(time.Second)
					if got := r.answersIn("dm-carol"); len(got) != i+1 {
						r.Fatalf("after %d messages of another person: %q", i+1, got)
					}
				}
				if ready, why := r.system.Overview.Ready(); !ready {
					r.Errorf("not ready: %s", why)
				}
				st := r.status()
				if st.Faulty != 1 || parks != (st.Parked != nil) || parks && (st.Parked.Messages != 10 || st.Parked.Agents != 1) {
					r.Errorf("status: %+v, %d agents", st.Parked, st.Faulty)
				}
				stories, err := r.system.Overview.Why(r.Context(), "b3")
				told := err == nil && slices.ContainsFunc(stories[0].Steps, func(s overview.Step) bool { return s.What == "parked" })
				if err != nil || told != parks || parks && stories[0].Ahead != 3 {
					r.Errorf("why: %+v, %v", stories, err)
				}
				if err := errors.Join(os.Remove(path), os.Rename(path+".kept", path)); err != nil {
					r.Fatal(err)
				}
				after(2 * time.Minute)
				want := []string{"re: a"}
				for i := range 10 {
					want = append(want, fmt.Sprint("re: b", i))
				}
				if got := r.answersIn("dm-ann"); !slices.Equal(got, want) {
					r.Errorf("after the repair: %q, want %q", got, want)
				}
				if n := r.noticesIn("dm-ann"); n != 1 {
					r.Errorf("%d notices", n)
				}
			})
		})
	}
}

// A row that the index refuses parks the message of that agent alone.
func TestConstraintParksOneAgent(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var refuse atomic.Bool
		r.decorate = func(s agentsystem.Stores) agentsystem.Stores {
			s.Agents = constrained{s.Agents, s.Index, &refuse}
			return s
		}
		refuse.Store(true)
		r.start()
		r.say("a")
		r.post(carol, msg("c", "c"))
		after(10 * time.Second)
		if got := r.answersIn("dm-carol"); !slices.Equal(got, []string{"re: c"}) || r.noticesIn("dm-ann") != 1 {
			r.Errorf("people see %q", r.chat.seen())
		}
		if st := r.status(); st.Parked == nil || st.Parked.Messages != 1 {
			r.Errorf("status: %+v", st.Parked)
		}
		refuse.Store(false)
		after(time.Minute)
		if got := r.answersIn("dm-ann"); !slices.Equal(got, []string{"re: a"}) {
			r.Errorf("afterwards: %q", got)
		}
	})
}

// constrained makes two agents of Ann's descriptor, which the index refuses.
type constrained struct {
	agentsystem.Agents
	index  agentsystem.Index
	refuse *atomic.Bool
}

func (c constrained) AgentFor(ctx context.Context, d claybot.Descriptor) (claybot.Agent, error) {
	if c.refuse.Load() && d.Identity() == ann {
		err := c.index.IndexAgents(ctx, claybot.Agent{ID: claybot.NewID(), Descriptor: d}, claybot.Agent{ID: claybot.NewID(), Descriptor: d})
		if err != nil {
			return claybot.Agent{}, err
		}
	}
	return c.Agents.AgentFor(ctx, d)
}

// A fault while the notice itself is stored delays the notice, and makes no second one.
func TestNoticeMeetsAFault(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		both := &agentFault{call: "Enqueue", also: "AgentFor", err: errAccess}
		only := &agentFault{call: "AgentFor", err: errAccess}
		r.decorate = func(s agentsystem.Stores) agentsystem.Stores { return only.stores(both.stores(s)) }
		r.start()
		both.on.Store(true)
		r.post(carol, msg("a", "a"))
		after(20 * time.Second)
		if n := r.noticesIn("dm-carol"); n != 0 || both.hits.Load() == 0 {
			r.Errorf("%d notices, %d faults", n, both.hits.Load())
		}
		both.on.Store(false)
		only.on.Store(true)
		after(time.Minute)
		r.post(carol, msg("b", "b"))
		after(2 * time.Minute)
		if n := r.noticesIn("dm-carol"); n != 1 {
			r.Errorf("%d notices", n)
		}
		only.on.Store(false)
		after(2 * time.Minute)
		if got := r.answersIn("dm-carol"); !slices.Equal(got, []string{"re: a\n\nb"}) && !slices.Equal(got, []string{"re: a", "re: b"}) {
			r.Errorf("answers %q", r.chat.seen())
		}
	})
}

// What is parked outlives the process, in order, with one notice, wherever the process
// dies.
func TestParkedOutlivesCrashes(t *testing.T) {
	t.Parallel()
	for blow := range 8 {
		t.Run(fmt.Sprint("after ", blow, " steps"), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				f := &agentFault{call: "AgentFor", err: errAccess}
				r.decorate = f.stores
				r.setPolicy(oneByOne)
				f.on.Store(true)
				r.start()
				var want []string
				for i := range 3 {
					text := fmt.Sprint("m", i)
					r.post(carol, msg(text, text))
					want = append(want, "re: "+text)
				}
				after(10 * time.Second)
				r.crash()
				r.start()
				after(10 * time.Second)
				f.on.Store(false)
				r.fuse.blowIn(blow)
				after(time.Minute)
				if blow > 0 {
					r.crash()
					r.start()
					after(time.Minute)
				}
				r.post(carol, msg("m1", "m1")) // the source repeats it
				after(time.Minute)
				got := slices.Compact(r.answersIn("dm-carol")) // a send of unknown fate may be made again
				missing := slices.DeleteFunc(slices.Clone(want), func(text string) bool { return slices.Contains(got, text) })
				lost := strings.Count(strings.Join(r.chat.seen("dm-carol"), "\n"), "One of my last replies may be missing")
				want = slices.DeleteFunc(want, func(text string) bool { return slices.Contains(missing, text) })
				// The process may die between the mark of a send and the send: a notice says so.
				if !slices.Equal(got, want) || len(missing) > lost || lost > 1 || r.noticesIn("dm-carol") != 1 {
					r.Errorf("people see %q", r.chat.seen())
				}
				if st := r.status(); st.Parked != nil {
					r.Errorf("parked: %+v", st.Parked)
				}
			})
		})
	}
}

// smallParking is a parking table with little room.
type smallParking struct {
	agentsystem.Parking
	all, agent int
}

func (s smallParking) Park(ctx context.Context, p storage.Parked, r storage.ParkRules) (bool, error) {
	r.All, r.Agent = s.all, s.agent
	return s.Parking.Park(ctx, p, r)
}

// A full table is an alarm and no loss: the source keeps what does not fit. A full
// share of one agent is reported to its person and delays no other agent.
func TestFullParking(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		f := &agentFault{call: "Enqueue", err: errAccess}
		var faulty atomic.Bool
		r.decorate = func(s agentsystem.Stores) agentsystem.Stores {
			s.Parking = smallParking{s.Parking, 5, 3}
			s.Agents = gone{s.Agents, &faulty}
			return f.stores(s)
		}
		r.setPolicy(oneByOne)
		r.start()
		faulty.Store(true)
		for i := range 5 {
			r.post(carol, msg(fmt.Sprint("c", i), fmt.Sprint("c", i)))
		}
		f.on.Store(true) // a source that cannot be told keeps the message
		if err := r.system.Post(r.Context(), carol, msg("c9", "c9")); storage.ClassOf(err) != storage.ClassStore {
			r.Errorf("untold: %v", err)
		}
		f.on.Store(false)
		synctest.Wait()
		if got := r.chat.seen("dm-carol"); len(got) != 1 || !strings.HasPrefix(got[0], "Too many") {
			r.Errorf("people see %q", got)
		}
		r.say("a0", "a1")
		if ready, why := r.system.Overview.Ready(); !ready {
			r.Errorf("not ready: %s", why)
		}
		err := r.system.Post(r.Context(), ann, msg("a2", "a2"))
		if !errors.Is(err, storage.ErrParkingFull) || storage.ClassOf(err) != storage.ClassStore {
			r.Errorf("the table is full: %v", err)
		}
		if ready, why := r.system.Overview.Ready(); ready || !strings.Contains(why, "parking table") {
			r.Errorf("ready with a full table: %v, %q", ready, why)
		}
		faulty.Store(false)
		after(2 * time.Minute)
		r.say("a2")
		for _, id := range []string{"c3", "c4"} { // a redelivery of what was refused
			if rec := r.receipt(claybot.MessageID(id)); rec.Skipped != "inbox_full" || rec.Message.Text != id {
				r.Errorf("%s was refused: %+v", id, rec)
			}
			r.post(carol, msg(id, id))
		}
		after(time.Minute)
		if got := slices.Concat(r.answersIn("dm-ann"), r.answersIn("dm-carol")); !slices.Equal(got, []string{"re: a0", "re: a1", "re: a2", "re: c0", "re: c1", "re: c2"}) {
			r.Errorf("people see %q", r.chat.seen())
		}
		if ready, why := r.system.Overview.Ready(); !ready {
			r.Errorf("not ready afterwards: %s", why)
		}
	})
}

// gone finds no agent while it is faulty.
type gone struct {
	agentsystem.Agents
	faulty *atomic.Bool
}

func (g gone) AgentFor(ctx context.Context, d claybot.Descriptor) (claybot.Agent, error) {
	if g.faulty.Load() {
		return claybot.Agent{}, errAccess
	}
	return g.Agents.AgentFor(ctx, d)
}

// A member without descriptors costs no run a try and gives up nothing: it takes less,
// is not ready and says why, and all is answered when it is over (R4).
func TestUnwellMember(t *testing.T) {
	t.Parallel()
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.EIO, syscall.ENOMEM} {
		t.Run(errno.Error(), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				files := &unwellFiles{errno: errno}
				r.decorate = func(s agentsystem.Stores) agentsystem.Stores { files.Agents = s.Agents; s.Agents = files; return s }
				r.start()
				const people = 30
				for i := range people {
					user := fmt.Sprint("u", i)
					r.post(claybot.User("chat", "dm-"+user, user), msg("warm "+user, "warm"))
				}
				after(time.Minute)
				files.set(true)
				for i := range people {
					user := fmt.Sprint("u", i)
					r.post(claybot.User("chat", "dm-"+user, user), msg(user, user))
				}
				after(6 * time.Second)
				if ready, why := r.system.Overview.Ready(); ready || r.status().Unwell != why {
					r.Errorf("ready while it is unwell: %v, %q, status %q", ready, why, r.status().Unwell)
				}
				first, last := files.rates()
				if last > first/2 {
					r.Errorf("it tried %d agents in the first second, and %d in the last", first, last)
				}
				after(time.Second)
				files.set(false)
				after(time.Minute)
				for i := range people {
					user := fmt.Sprint("u", i)
					if got := r.answersIn("dm-" + user); !slices.Equal(got, []string{"re: warm", "re: " + user}) {
						r.Errorf("%s sees %q", user, r.chat.seen("dm-"+user))
					}
					if run := r.receipt(claybot.MessageID(user)).Run; run == nil || run.Attempts > 1 {
						r.Errorf("%s: %+v", user, run)
					}
				}
				if ready, why := r.system.Overview.Ready(); !ready || r.status().Unwell != "" {
					r.Errorf("not ready afterwards: %s", why)
				}
			})
		})
	}
}

// unwellFiles cannot open histories for a while.
type unwellFiles struct {
	agentsystem.Agents
	errno syscall.Errno

	mu    sync.Mutex
	ill   bool
	since time.Time
	tries []time.Time
}

func (u *unwellFiles) set(ill bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ill, u.since = ill, time.Now()
}

// rates are the tries of the first second and of the present one.
func (u *unwellFiles) rates() (first, last int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, at := range u.tries {
		if at.Sub(u.since) < time.Second {
			first++
		}
		if time.Since(at) < time.Second {
			last++
		}
	}
	return first, last
}

func (u *unwellFiles) OpenHistory(ctx context.Context, l storage.Lease) (storage.History, error) {
	u.mu.Lock()
	ill := u.ill
	if ill {
		u.tries = append(u.tries, time.Now())
	}
	u.mu.Unlock()
	if ill {
		return nil, &os.PathError{Op: "open", Path: "history.jsonl", Err: u.errno}
	}
	return u.Agents.OpenHistory(ctx, l)
}

// An agent at fault waits without a slot: where one run at a time is allowed, others
// run meanwhile.
func TestFaultLeavesItsSlot(t *testing.T) {
	t.Parallel()
	for class, err := range map[string]error{"agent": errAccess, "member": errFiles} {
		t.Run(class, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				f := &agentFault{call: "OpenHistory", err: err}
				r.decorate = f.stores
				r.maxRuns = 1
				r.start()
				r.post(carol, msg("warm", "warm"))
				after(time.Second)
				id := r.agent(carol)
				f.id.Store(&id)
				f.on.Store(true)
				r.post(carol, msg("c", "c"))
				for i := range 20 {
					r.say(fmt.Sprint("a", i))
					after(time.Second)
					if got := len(r.answersIn("dm-ann")); got != i+1 {
						r.Fatalf("%d of %d messages of another person were answered", got, i+1)
					}
				}
				f.on.Store(false)
				after(time.Minute)
				if got := r.answersIn("dm-carol"); len(got) != 2 {
					r.Errorf("people see %q", r.chat.seen("dm-carol"))
				}
			})
		})
	}
}

// A caller who waits for its message is refused while the agent cannot be used, so it
// keeps the message; what is parked goes before it afterwards.
func TestCallersAreRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		f := &agentFault{call: "AgentFor", err: errAccess}
		r.decorate = f.stores
		r.setPolicy(oneByOne)
		r.start()
		f.on.Store(true)
		r.post(carol, msg("a", "a"))
		if _, err := r.system.Control.Invoke(r.Context(), carol, msg("b", "b")); !errors.Is(err, syscall.EACCES) {
			r.Errorf("Invoke: %v", err)
		}
		if _, err := r.system.Control.StartRun(r.Context(), agentsystem.Address{Descriptor: &carol}, msg("c", "c")); !errors.Is(err, syscall.EACCES) {
			r.Errorf("StartRun: %v", err)
		}
		f.on.Store(false)
		if _, err := r.system.Control.Invoke(r.Context(), carol, msg("b", "b")); err != nil {
			r.Errorf("Invoke afterwards: %v", err)
		}
		after(time.Minute)
		r.wants("re: a", "re: b")
	})
}

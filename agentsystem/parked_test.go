package agentsystem_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/storage"
)

// faulty has r find no agent while the result is true.
func (r *rig) faulty() *atomic.Bool {
	var on atomic.Bool
	r.decorate = func(s agentsystem.Stores) agentsystem.Stores { s.Agents = gone{s.Agents, &on}; return s }
	return &on
}

// A parked message of a person who lost access does not run, and says why: at once when
// an operator revokes it, else when its turn comes, as after a changed list.
func TestRevokedParked(t *testing.T) {
	t.Parallel()
	for name, revoke := range map[string]func(r *rig) error{
		"by an operator": func(r *rig) error { return r.system.Control.Revoke(r.Context(), "chat", "ann") },
		"by the list": func(r *rig) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.access.Allow = []string{"chat:carol"}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.access = people.Access{Mode: people.AccessAllowlist, Allow: []string{"chat:carol"}}
				if name == "by the list" {
					r.access.Allow = append(r.access.Allow, "chat:ann")
				}
				faulty := r.faulty()
				r.start()
				if name == "by an operator" {
					if err := r.system.People.Allow(r.Context(), "chat", "ann"); err != nil {
						t.Fatal(err)
					}
				}
				r.say("a")
				after(time.Second)
				faulty.Store(true)
				r.say("b0", "b1")
				r.post(carol, msg("c", "c"))
				after(time.Second)
				if err := revoke(r); err != nil {
					t.Fatal(err)
				}
				if name == "by an operator" && r.receipt("b1").Skipped != "revoked" {
					r.Errorf("at once: %+v", r.receipt("b1"))
				}
				faulty.Store(false)
				after(2 * time.Minute)
				for _, id := range []claybot.MessageID{"b0", "b1"} {
					if rec := r.receipt(id); rec.Skipped != "revoked" || rec.Run != nil {
						r.Errorf("%s: %+v", id, rec)
					}
				}
				if n := r.askedAbout("b0") + r.askedAbout("b1"); n != 0 {
					r.Errorf("the model was asked %d times", n)
				}
				if got := r.answersIn("dm-carol"); !slices.Equal(got, []string{"re: c"}) {
					r.Errorf("another person sees %q", got)
				}
				if st := r.status(); st.Parked != nil || st.Faulty != 0 {
					r.Errorf("status: %+v, %d agents", st.Parked, st.Faulty)
				}
			})
		})
	}
}

// hurtParking damages a row, with or without whom it is for, and counts the looks.
type hurtParking struct {
	agentsystem.Parking
	id    claybot.MessageID
	whole bool
	looks *atomic.Int64
}

func (h hurtParking) ParkedAgents(ctx context.Context, limit int) ([]storage.ParkedAgent, error) {
	h.looks.Add(1)
	return h.Parking.ParkedAgents(ctx, limit)
}

func (h hurtParking) ParkedOf(ctx context.Context, key string, limit int) ([]storage.Parked, error) {
	list, err := h.Parking.ParkedOf(ctx, key, limit)
	for i, p := range list {
		if p.Message.ID != h.id {
			continue
		}
		list[i].Message, list[i].Damaged = claybot.AgentMessage{ID: h.id}, storage.ErrDamaged
		if h.whole {
			list[i].To = claybot.Descriptor{}
		}
	}
	return list, err
}

// A damaged row ends with a reason and one notice, is not tried for ever, and holds up
// nothing behind it.
func TestDamagedParked(t *testing.T) {
	t.Parallel()
	for _, whole := range []bool{false, true} {
		t.Run(fmt.Sprint("descriptor damaged ", whole), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				var looks atomic.Int64
				faulty := r.faulty()
				agents := r.decorate
				r.decorate = func(s agentsystem.Stores) agentsystem.Stores {
					s.Parking = hurtParking{s.Parking, "b0", whole, &looks}
					return agents(s)
				}
				r.start()
				faulty.Store(true)
				r.say("b0", "b1")
				after(10 * time.Second)
				faulty.Store(false)
				after(time.Minute)
				before := looks.Load()
				after(10 * time.Minute)
				if n := looks.Load() - before; n > 0 {
					r.Errorf("%d looks in ten minutes at an empty table", n)
				}
				if got := r.answersIn("dm-ann"); !slices.Equal(got, []string{"re: b1"}) {
					r.Errorf("answers %q", got)
				}
				if n := strings.Count(strings.Join(r.chat.seen("dm-ann"), "\n"), "was damaged"); n != 1 {
					r.Errorf("people see %q", r.chat.seen("dm-ann"))
				}
				if rec := r.receipt("b0"); rec.Skipped != "damaged" {
					r.Errorf("the damaged one: %+v", rec)
				}
			})
		})
	}
}

// An operator makes room: what is parked for one agent ends with a reason.
func TestDropParked(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		faulty := r.faulty()
		agents := r.decorate
		r.decorate = func(s agentsystem.Stores) agentsystem.Stores {
			s.Parking = smallParking{s.Parking, 3, 3}
			return agents(s)
		}
		r.setPolicy(oneByOne)
		r.start()
		faulty.Store(true)
		r.say("a0", "a1")
		r.post(carol, msg("c", "c"))
		if err := r.system.Post(r.Context(), carol, msg("c2", "c2")); !errors.Is(err, storage.ErrParkingFull) {
			r.Fatalf("the table is full: %v", err)
		}
		list, err := r.system.Overview.ParkedAgents(r.Context(), 9)
		if err != nil || len(list) != 2 || list[0].Agent != "chat:dm-ann:ann" || list[0].Messages != 2 || list[0].First != "a0" || list[0].Cause == "" {
			r.Errorf("parked: %+v, %v", list, err)
		}
		if _, err := r.system.Control.DropParked(r.Context(), "chat:dm-ann:an"); !errors.Is(err, storage.ErrNotFound) {
			r.Errorf("an unknown agent: %v", err)
		}
		dropped, err := r.system.Control.DropParked(r.Context(), "chat:dm-ann:ann")
		if err != nil || !slices.Equal(dropped, []claybot.MessageID{"a0", "a1"}) {
			r.Errorf("dropped %q, %v", dropped, err)
		}
		if ready, why := r.system.Overview.Ready(); !ready {
			r.Errorf("not ready with room in the table: %s", why)
		}
		r.post(carol, msg("c2", "c2"))
		faulty.Store(false)
		after(2 * time.Minute)
		if rec := r.receipt("a1"); rec.Skipped != "operator" {
			r.Errorf("a dropped message: %+v", rec)
		}
		if got := r.answersIn("dm-ann"); len(got) > 0 {
			r.Errorf("people see %q", got)
		}
		if got := r.answersIn("dm-carol"); !slices.Equal(got, []string{"re: c", "re: c2"}) {
			r.Errorf("people see %q", got)
		}
	})
}

// What stands before a parked /stop is not answered after it.
func TestParkedStop(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		faulty := r.faulty()
		r.setPolicy(oneByOne)
		r.start()
		faulty.Store(true)
		r.post(ann, msg("a", "a"), command("why", "why"), typed("stop", claybot.MessageCancel, ""), msg("b", "b"))
		after(time.Second)
		faulty.Store(false)
		after(time.Minute)
		if got := r.answersIn("dm-ann"); !slices.Equal(got, []string{"re: b"}) {
			r.Errorf("people see %q", r.chat.seen())
		}
		if rec := r.receipt("a"); rec.Skipped != "canceled" {
			r.Errorf("the message before it: %+v", rec)
		}
		if rec := r.receipt("why"); rec.Skipped != "command" {
			r.Errorf("the command before it: %+v", rec)
		}
	})
}

// A /stop is taken also where the share of its agent is full.
func TestStopMakesRoom(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		faulty := r.faulty()
		agents := r.decorate
		r.decorate = func(s agentsystem.Stores) agentsystem.Stores {
			s.Parking = smallParking{s.Parking, 9, 2}
			return agents(s)
		}
		r.start()
		faulty.Store(true)
		r.post(ann, msg("a0", "a0"), msg("a1", "a1"), typed("stop", claybot.MessageCancel, ""))
		for id, want := range map[claybot.MessageID]string{"a0": "canceled", "a1": "canceled", "stop": "command"} {
			if rec := r.receipt(id); rec.Skipped != want {
				r.Errorf("%s: %+v", id, rec)
			}
		}
	})
}

// Where the files of very many agents do not answer, the fault is the member's: the
// number of calls that wait is bounded, and the daemon is not ready.
func TestManyBlockedAgents(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var calls atomic.Int64
		blocked := make(chan struct{})
		r.decorate = func(s agentsystem.Stores) agentsystem.Stores {
			s.Agents = blockedAgents{s.Agents, &calls, blocked}
			return s
		}
		r.setPolicy(oneByOne)
		r.start()
		const people = 300
		for i := range people {
			user := fmt.Sprint("u", i)
			r.post(claybot.User("chat", "dm-"+user, user), msg(user, user))
		}
		after(10 * time.Second)
		if n := calls.Load(); n != 256 {
			r.Errorf("%d calls wait", n)
		}
		if ready, why := r.system.Overview.Ready(); ready {
			r.Errorf("ready: %s", why)
		}
		close(blocked)
		after(3 * time.Minute)
		for i := range people {
			if got := r.answersIn(fmt.Sprint("dm-u", i)); len(got) != 1 {
				r.Fatalf("person %d sees %q", i, got)
			}
		}
		if ready, why := r.system.Overview.Ready(); !ready {
			r.Errorf("not ready afterwards: %s", why)
		}
	})
}

// blockedAgents finds no agent before a channel is closed, and counts the calls until
// then.
type blockedAgents struct {
	agentsystem.Agents
	calls   *atomic.Int64
	blocked chan struct{}
}

func (b blockedAgents) AgentFor(ctx context.Context, d claybot.Descriptor) (claybot.Agent, error) {
	select {
	case <-b.blocked:
	default:
		b.calls.Add(1)
		<-b.blocked
	}
	return b.Agents.AgentFor(ctx, d)
}

// A message that waits long to be stored is not hidden: the connector fails, and the
// daemon is not ready, until it is stored.
func TestStuckIntake(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		f := &agentFault{call: "Post", block: make(chan struct{})}
		r.decorate = f.stores
		r.start()
		r.post(carol, msg("warm", "warm"))
		after(time.Second)
		id := r.agent(carol)
		f.id.Store(&id)
		f.on.Store(true)
		posted := make(chan error, 1)
		go func() { posted <- r.system.Post(r.Context(), carol, msg("c", "c")) }()
		after(8 * time.Second)
		if ready, why := r.system.Overview.Ready(); !ready {
			r.Errorf("not ready too early: %s", why)
		}
		after(4 * time.Second)
		const want = "waits to be stored for 12s"
		if ready, why := r.system.Overview.Ready(); ready || !strings.Contains(why, want) {
			r.Errorf("ready: %v, %q", ready, why)
		}
		if c := r.status().Connectors[0]; c.State != connectors.StateFailing || !strings.Contains(c.Err, want) {
			r.Errorf("the connector: %+v", c)
		}
		f.end()
		synctest.Wait()
		if ready, why := r.system.Overview.Ready(); !ready || len(posted) != 1 || <-posted != nil {
			r.Errorf("not ready afterwards: %s", why)
		}
	})
}

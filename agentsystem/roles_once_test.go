package agentsystem_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/storage"
)

// A roleStore counts how often all grants are read. It lets stored act after each change of a role.
type roleStore struct {
	agentsystem.Access
	grants atomic.Int64
	stored func(c storage.RoleChange)
}

func (s *roleStore) Grants(ctx context.Context) ([]storage.Grant, error) {
	s.grants.Add(1)
	return s.Access.Grants(ctx)
}

func (s *roleStore) SetRole(ctx context.Context, c storage.RoleChange) (storage.RoleChange, error) {
	done, err := s.Access.SetRole(ctx, c)
	if s.stored != nil {
		s.stored(done)
	}
	return done, err
}

// listed runs a test with Ann and Bob on the list of access, over a roleStore.
func listed(t *testing.T, test func(r *rig, s *roleStore)) {
	t.Helper()
	bubble(t, func(r *rig) {
		s := new(roleStore)
		r.decorate = func(stores agentsystem.Stores) agentsystem.Stores {
			s.Access, stores.Access = stores.Access, s
			return stores
		}
		r.access = people.Access{Mode: people.AccessAllowlist, Allow: []string{"chat:ann", "chat:bob"}, Trusted: []string{"web", "terminal"}}
		r.start()
		test(r, s)
	})
}

// give gives a person a role as the user of the machine does.
func (r *rig) give(who string, role storage.Role) {
	r.Helper()
	if _, err := r.system.People.SetRole(r.Context(), who, role, "test"); err != nil {
		r.Fatal(err)
	}
}

// To refuse /pair of a user, claybot reads their role and not all grants.
func TestPairOfAUserReadsNoGrants(t *testing.T) {
	t.Parallel()
	listed(t, func(r *rig, s *roleStore) {
		s.grants.Store(0)
		r.orders("1", "bob", "role chat:bob owner")
		if got := r.receipt("1").Message.Command; got != "unknown" || s.grants.Load() > 0 {
			t.Errorf("/pair of a user is %s, and all grants were read %d times", got, s.grants.Load())
		}
		r.give("chat/bob", storage.RoleOperator)
		r.orders("2", "bob", "")
		if got := r.receipt("2").Message.Command; got != "pair" {
			t.Errorf("/pair of an operator is %s", got)
		}
	})
}

// A /pair role that comes again after a kill at any moment gives the role once: one that was taken
// in between stays taken.
func TestPairRoleOnce(t *testing.T) {
	t.Parallel()
	for steps := 1; steps <= 4; steps++ {
		t.Run(fmt.Sprint("killed after ", steps), func(t *testing.T) {
			t.Parallel()
			listed(t, func(r *rig, _ *roleStore) {
				r.give("chat/bob", storage.RoleOwner)
				m := command("1", "pair")
				m.Text, m.From = "role chat:ann operator", claybot.Sender{UserID: "bob"}
				r.fuse.blowIn(steps)
				_ = r.system.Post(r.Context(), private("bob"), m) // which it may fail
				synctest.Wait()
				r.crash()
				r.start()
				given := r.system.People.IsOperator("chat/ann")
				r.give("chat/ann", storage.RoleUser)
				r.post(private("bob"), m)
				synctest.Wait()
				if again := r.system.People.IsOperator("chat/ann"); again == given {
					t.Errorf("before the role was taken, Ann was an operator: %v; after the command came again: %v", given, again)
				}
				changes, err := r.system.People.RoleChanges(r.Context())
				if err != nil {
					t.Fatal(err)
				}
				n := 0
				for _, c := range changes {
					if c.Who == "chat/ann" && c.After == storage.RoleOperator {
						n++
					}
				}
				if n != 1 {
					t.Errorf("the command gave the role %d times: %+v", n, changes)
				}
			})
		})
	}
}

// Of two changes of a role at once, the one that the store made last holds.
func TestRolesHoldInTheOrderOfTheStore(t *testing.T) {
	t.Parallel()
	listed(t, func(r *rig, s *roleStore) {
		dir, later := r.system.People, make(chan struct{})
		s.stored = func(c storage.RoleChange) {
			if c.After == storage.RoleOperator {
				<-later
			}
		}
		done := make(chan error)
		go func() {
			_, err := dir.SetRole(context.Background(), "chat/ann", storage.RoleOperator, "test")
			done <- err
		}()
		synctest.Wait()
		r.give("chat/ann", storage.RoleUser)
		close(later)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if dir.IsOperator("chat/ann") {
			t.Error("a role holds that the store has ended")
		}
		go func() { done <- dir.Load(context.Background()) }()
		if err := <-done; err != nil || dir.IsOperator("chat/ann") {
			t.Errorf("after reading the roles again, Ann is an operator: %v, %v", dir.IsOperator("chat/ann"), err)
		}
	})
}

package agentsystem_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/storage"
)

// A group that loses its access loses the runs of all its members, and no other group does.
func TestRevokeGroup(t *testing.T) {
	t.Parallel()
	pairing(t, func(r *rig) {
		r.mind.hold("long", time.Minute)
		r.start()
		for _, channel := range []string{"C1", "C11"} {
			if err := r.system.People.Allow(r.Context(), "chat", channel); err != nil {
				t.Fatal(err)
			}
		}
		want := map[claybot.MessageID]claybot.RunState{}
		for _, d := range []claybot.Descriptor{claybot.User("chat", "C1", "ann"), claybot.User("chat", "C1", "bob"), claybot.User("chat", "C11", "ann")} {
			m := msg(d.ChannelID+d.UserID, "long")
			m.Context.Group = true
			r.post(d, m)
			want[m.ID] = claybot.RunCanceled
			if d.ChannelID != "C1" {
				want[m.ID] = claybot.RunSucceeded
			}
		}
		synctest.Wait()
		if err := r.system.Control.Revoke(r.Context(), "chat", "C1"); err != nil {
			t.Fatal(err)
		}
		after(5 * time.Minute)
		for id, state := range want {
			if run := r.receipt(id).Run; run == nil || run.State != state {
				t.Errorf("the run of %s is %+v, want %s", id, run, state)
			}
		}
	})
}

// A brokenChatter cannot list what is kept of groups.
type brokenChatter struct{ storage.Chatter }

func (brokenChatter) SaidChats(context.Context) ([]storage.Chat, error) {
	return nil, errors.New("the store fails")
}

// The work of a revoked person ends even if what was kept of groups cannot be removed at present.
func TestRevokeWhileNothingCanBeRemoved(t *testing.T) {
	t.Parallel()
	pairing(t, func(r *rig) {
		r.decorate = func(s agentsystem.Stores) agentsystem.Stores {
			s.Chatter = brokenChatter{s.Chatter}
			return s
		}
		r.mind.hold("long", time.Minute)
		r.start()
		if err := r.system.People.Allow(r.Context(), "chat", "ann"); err != nil {
			t.Fatal(err)
		}
		r.say("long")
		synctest.Wait()
		r.say("waiting")
		synctest.Wait()
		if err := r.system.Control.Revoke(r.Context(), "chat", "ann"); err == nil {
			t.Error("the failure is not reported")
		}
		after(5 * time.Minute)
		if run, waited := r.receipt("long").Run, r.receipt("waiting"); run.State != claybot.RunCanceled || waited.Skipped != "revoked" {
			t.Errorf("the run is %s, what waited is %+v", run.State, waited)
		}
	})
}

// What was kept of a group goes when a new configuration takes its access or its context.
func TestReloadRemovesWhatWasKept(t *testing.T) {
	for name, change := range map[string]func(r *rig){
		"access":  func(r *rig) { r.access = people.Access{} },
		"context": func(r *rig) { r.profile.Context = nil },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				n := 5
				r.access, r.profile.Context = people.Access{Allow: []string{"chat:room"}}, &n
				r.start()
				kept := func() int {
					t.Helper()
					if err := r.system.Reschedule(r.Context()); err != nil {
						t.Fatal(err)
					}
					all, err := r.db.SaidChats(r.Context())
					if err != nil {
						t.Fatal(err)
					}
					return len(all)
				}
				said := connectors.Overheard{In: room, Said: claybot.Said{ID: "1", At: claybot.Now(), Text: "hello"}}
				if err := r.system.Overheard(r.Context(), []connectors.Overheard{said}); err != nil || kept() != 1 {
					t.Errorf("%d groups are kept: %v", kept(), err)
				}
				r.mu.Lock()
				change(r)
				r.mu.Unlock()
				if n := kept(); n != 0 {
					t.Errorf("%d groups are kept", n)
				}
			})
		})
	}
}

package agentsystem_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
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

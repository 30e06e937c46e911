package agentsystem_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/texts"
)

// changes reports a change of ann's channel, which happened at a time.
func (r *rig) changes(at time.Time, dead string) error {
	return r.system.RouteChanged(r.Context(), connectors.RouteChange{Connector: "chat", ChannelID: "dm-ann", Dead: dead, At: claybot.At(at)})
}

// wantDead checks why ann's route is dead; empty: it is not.
func (r *rig) wantDead(step, want string) {
	r.Helper()
	if why, _ := r.system.DeadRoute(ann.Route()); why != want {
		r.Errorf("%s: the route is dead: %q, want %q", step, why, want)
	}
}

// Of changes of a route that come twice and in any order, also across crashes, the newest
// counts; what a person wrote since counts more.
func TestRouteChanges(t *testing.T) {
	t.Parallel()
	const blocked = "the user blocked the bot"
	bubble(t, func(r *rig) {
		r.start()
		r.say("a")
		r.wants("re: a")
		began := time.Now()
		second := func(n int) time.Time { return began.Add(time.Duration(n) * time.Second) }
		for _, x := range []struct {
			name  string
			at    int // second
			dead  string
			crash bool
			want  string
		}{
			{"before the person wrote", -60, blocked, false, ""},
			{"blocked", 10, blocked, true, blocked},
			{"redelivered", 10, blocked, false, blocked},
			{"an old end of it", 5, "", true, blocked},
			{"unblocked", 20, "", true, ""},
			{"redelivered late", 10, blocked, true, ""},
			{"unblocked twice", 20, "", false, ""},
			{"blocked again in the same second", 20, blocked, true, blocked},
		} {
			if err := r.changes(second(x.at), x.dead); err != nil {
				t.Fatal(err)
			}
			r.wantDead(x.name, x.want)
			if x.crash {
				r.crash()
				r.start()
				r.wantDead(x.name+", after a crash", x.want)
			}
		}
		if err := r.system.Tell(r.Context(), r.agent(ann), func(texts.Voice) string { return "a notice" }); err != nil {
			t.Fatal(err)
		}
		r.wants("re: a") // the platform is not asked
		time.Sleep(time.Minute)
		r.say("b")
		r.wants("re: a", "re: b")
		if err := r.changes(second(20), blocked); err != nil { // redelivered
			t.Fatal(err)
		}
		r.wantDead("redelivered behind a message", "")
	})
}

// A change ends the death of a route that a refused message met.
func TestRouteChangeRevives(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.chat.will(refused(true))
		r.start()
		r.say("a")
		synctest.Wait()
		r.wantDead("refused", "403")
		if err := r.changes(time.Now(), ""); err != nil {
			t.Fatal(err)
		}
		r.wantDead("unblocked", "")
	})
}

// What happens in a channel in which no person with access wrote leaves nothing behind.
func TestRouteChangesOfStrangers(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		for _, dead := range []string{"the bot was removed", "", "the bot was removed"} {
			if err := r.changes(time.Now(), dead); err != nil {
				t.Fatal(err)
			}
		}
		r.wantDead("a stranger", "")
		for _, prefix := range []string{"dead route/", "route changed/"} {
			if all, err := r.db.ListCheckpoints(r.Context(), prefix); err != nil || len(all) > 0 {
				t.Errorf("%v: %q", err, all)
			}
		}
	})
}

package agentsystem_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// A webhook is no person: nothing goes there that was meant for the person who wrote last,
// its events are no activity of a user, and no rate of persons holds for them.
func TestProgramsAreNoPersons(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.instances = map[string]string{"ci": "webhook"}
		r.also = append(r.also, &line{name: "ci", chat: new(chat), fuse: newFuse(-1)})
		r.runsPerMinute = 2
		r.start()
		event := func(id string) {
			r.post(claybot.User("ci", "channel "+id, "ci"), msg(id, id))
			after(time.Second)
		}
		event("ci/0")
		if _, _, err := r.system.People.Foreground(r.Context()); !errors.Is(err, storage.ErrNotFound) {
			r.Errorf("a webhook alone: %v", err)
		}
		r.say("hello")
		wrote := claybot.Now()
		for i := range 4 {
			event(fmt.Sprint("ci/", i+1))
		}
		synctest.Wait()
		route, at, err := r.system.People.Foreground(r.Context())
		if err != nil || route.Dest() != ann.Route().Dest() || at > wrote {
			r.Errorf("the heartbeat: %+v %v %v", route, at, err)
		}
		for owner, want := range map[string]claybot.AgentID{"ci/ci": "", ann.OwnerID(): r.receipt("hello").Agent} {
			e, err := r.system.People.PlaceOf(r.Context(), owner)
			if e.ID != want || (want == "") != errors.Is(err, storage.ErrNotFound) {
				r.Errorf("the place of %s: %s %v", owner, e.ID, err)
			}
		}
		for i := range 5 {
			if got := r.receipt(claybot.MessageID(fmt.Sprint("ci/", i))).Skipped; got != "" {
				r.Errorf("event %d is skipped: %s", i, got)
			}
		}
	})
}

package agentsystem_test

import (
	"testing"
	"testing/synctest"

	"github.com/claybot/claybot"
)

// Of two /model commands within a second of a platform that counts whole seconds, the later one
// holds, also where the earlier one is redelivered alone, to this process or to the next.
func TestModelCommandsWithinASecond(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.profile.Models = []string{"small", "large"}
		r.start()
		r.say("a")
		synctest.Wait()
		at := claybot.Now()
		choose := func(id, model string) {
			r.Helper()
			m := command(id, "model")
			m.Text, m.At = model, at
			r.post(ann, m)
			synctest.Wait()
		}
		wants := func(what, want string) {
			r.Helper()
			if got := r.system.Profiles.OwnModel(claybot.Agent{ID: r.agent(ann), Descriptor: ann}); got != want {
				r.Errorf("%s: %q, want %q", what, got, want)
			}
		}
		choose("1", "small")
		choose("2", "large")
		wants("two", "large")
		choose("1", "small")
		wants("the first one again", "large")
		r.crash()
		r.start()
		choose("1", "small")
		wants("the first one again, after a crash", "large")
		choose("2", "large")
		choose("3", "small")
		choose("2", "large")
		wants("a third one", "small")
	})
}

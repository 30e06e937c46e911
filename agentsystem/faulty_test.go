package agentsystem_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/claybot/claybot"
)

// brokenFile puts a directory in the place of a file of an agent, and returns how to
// repair that.
func (r *rig) brokenFile(id claybot.AgentID, name string) (repair func()) {
	r.Helper()
	path := filepath.Join(r.dir, "agents", string(id), name)
	if err := errors.Join(os.Rename(path, path+".kept"), os.Mkdir(path, 0o700)); err != nil {
		r.Fatal(err)
	}
	return func() {
		r.Helper()
		if err := errors.Join(os.Remove(path), os.Rename(path+".kept", path)); err != nil {
			r.Fatal(err)
		}
	}
}

// An agent that was deleted while it could not be used is none that cannot be used.
func TestFaultEndsWithItsAgent(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"history.jsonl", "state.json"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.start()
				r.say("a")
				after(time.Minute)
				id := r.agent(ann)
				r.shut()
				r.brokenFile(id, name)
				r.start()
				r.say("b")
				after(5 * time.Second)
				if st := r.status(); st.Faulty != 1 {
					r.Fatalf("%d agents at fault", st.Faulty)
				}
				if err := r.system.Delete(r.Context(), id); err != nil {
					r.Fatal(err)
				}
				after(5 * time.Minute)
				if st := r.status(); st.Faulty != 0 {
					r.Errorf("afterwards %d agents at fault", st.Faulty)
				}
			})
		})
	}
}

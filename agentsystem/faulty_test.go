package agentsystem_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
				if err := r.system.Control.Delete(r.Context(), id); err != nil {
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

// With an agent that cannot be used, /stop, /status and /why are answered at once, and
// what stands before a /stop is not answered after it: not even the text of a /new.
func TestAnswersAtOnce(t *testing.T) {
	t.Parallel()
	for _, known := range []bool{false, true} {
		t.Run(fmt.Sprint("agent exists ", known), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				faulty := r.faulty()
				r.setPolicy(oneByOne)
				r.start()
				if known {
					r.say("warm")
					after(time.Second)
				}
				faulty.Store(true)
				r.post(ann, msg("a", "a"), typed("new", claybot.MessageReset, "write an essay"), command("status", "status"), command("why", "why"))
				after(time.Second)
				seen := r.chat.seen("dm-ann")
				if n := len(seen); n < 2 || !strings.HasPrefix(seen[n-2], "I haven't been able to access the files") || !strings.Contains(seen[n-1], "It is parked until its agent can be used again") {
					r.Errorf("people see %q", seen)
				}
				r.post(ann, typed("stop", claybot.MessageCancel, ""), msg("b", "b"))
				r.post(ann, typed("stop", claybot.MessageCancel, "")) // a redelivery
				after(time.Second)
				if seen := r.chat.seen("dm-ann"); !slices.Contains(seen, "Stopped.") {
					r.Errorf("after /stop people see %q", seen)
				}
				for id, want := range map[claybot.MessageID]string{"a": "canceled", "new": "canceled", "status": "command", "why": "command", "stop": "command", "b": ""} {
					if rec := r.receipt(id); rec.Skipped != want || id == "b" && rec.Parked == "" {
						r.Errorf("%s: %+v", id, rec)
					}
				}
				faulty.Store(false)
				after(2 * time.Minute)
				want := []string{"re: b"}
				if known {
					want = []string{"re: warm", "re: b"}
				}
				if got := r.answersIn("dm-ann"); !slices.Equal(got, want) {
					r.Errorf("people see %q", r.chat.seen())
				}
				if n := strings.Count(strings.Join(r.chat.seen("dm-ann"), "\n"), "I have forgotten our conversation"); n != 1 {
					r.Errorf("%d resets: %q", n, r.chat.seen())
				}
			})
		})
	}
}

// What is parked behind other messages names what those met.
func TestCauseOfParkedOnes(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		faulty := r.faulty()
		r.start()
		faulty.Store(true)
		r.say("a")
		r.post(ann, typed("stop", claybot.MessageCancel, ""), msg("b", "b"), msg("c", "c"))
		for _, id := range []claybot.MessageID{"b", "c"} {
			if rec := r.receipt(id); !strings.HasSuffix(rec.Parked, errAccess.Error()) {
				r.Errorf("%s is parked because of %q", id, rec.Parked)
			}
		}
	})
}

// The owner of a background agent is notified once of a fault that keeps it from
// working: where its task answers, else in the owner's chat.
func TestFaultOfBackgroundAgent(t *testing.T) {
	t.Parallel()
	const name = "scheduled task “Count” has to wait"
	for _, file := range []string{"history.jsonl", "state.json"} {
		for _, routed := range []bool{true, false} {
			t.Run(fmt.Sprint(file, " with a route ", routed), func(t *testing.T) {
				t.Parallel()
				bubble(t, func(r *rig) {
					fire := func(instant string) error {
						f := claybot.Firing{Task: "abc", Instant: instant}
						m := claybot.AgentMessage{ID: f.MessageID(), Type: claybot.MessageSystem, Kind: claybot.KindCron, Text: instant, Firing: &f}
						if routed {
							m.Route = &claybot.Route{Connector: "chat", ChannelID: "dm-carol"}
						}
						return r.system.Post(r.Context(), task, m)
					}
					r.start()
					r.say("hello")
					if err := fire("t1"); err != nil {
						r.Fatal(err)
					}
					after(time.Minute)
					id := r.agent(task)
					r.shut()
					repair := r.brokenFile(id, file)
					r.start()
					for range 600 { // as the schedule does
						if fire("t2") == nil {
							break
						}
						after(time.Second)
					}
					after(time.Hour)
					place := map[bool]string{true: "dm-carol", false: "dm-ann"}[routed]
					if n := strings.Count(strings.Join(r.chat.seen(), "\n"), name); n != 1 || !strings.Contains(strings.Join(r.chat.seen(place), "\n"), name) {
						r.Errorf("%d notices: %q", n, r.chat.seen())
					}
					repair()
					if err := fire("t2"); err != nil {
						r.Error(err)
					}
					after(5 * time.Minute)
					if st := r.status(); st.Faulty != 0 {
						r.Errorf("afterwards %d agents at fault", st.Faulty)
					}
				})
			})
		}
	}
}

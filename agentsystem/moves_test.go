package agentsystem_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/storage"
)

// inGroup is a message to a group.
func inGroup(id string) claybot.AgentMessage {
	m := msg(id, id)
	m.Context.Group = true
	return m
}

var (
	annOld = claybot.User("chat", "T1/old", "ann")
	annNew = claybot.User("chat", "T1/new", "ann")
)

// gone makes the platform refuse the old id of the channel.
func (r *rig) gone() {
	r.chat.judge = func(o claybot.Outgoing) verdict {
		return map[bool]verdict{true: refused(true)}[o.Route.ChannelID == annOld.ChannelID]
	}
}

// allows makes the list of access name these alone.
func (r *rig) allows(names ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.access.Allow = names
}

func (r *rig) move() {
	r.Helper()
	if err := r.system.Moved(r.Context(), "chat", annOld.ChannelID, annNew.ChannelID, claybot.Now()); err != nil {
		r.Fatal(err)
	}
}

// park stores a message as one whose agent cannot be used.
func (r *rig) park(to claybot.Descriptor) {
	r.Helper()
	parked := storage.Parked{To: to, Message: inGroup("p"), Cause: "cut"}
	if _, err := r.db.Park(r.Context(), parked, storage.ParkRules{All: storage.MaxParked, Agent: storage.MaxParkedAgent}); err != nil {
		r.Fatal(err)
	}
}

// enqueue stores a message for the old id of the channel, as a task does that names it.
func (r *rig) enqueue(id string) {
	r.Helper()
	o := claybot.Outgoing{ID: id, Kind: claybot.OutgoingNotice, Run: "run", Agent: "task", Route: annOld.Route(), Text: id, Part: 1, Parts: 1, At: claybot.Now()}
	o.Route.Group = true
	if _, err := r.db.Enqueue(r.Context(), o); err != nil {
		r.Fatal(err)
	}
}

// What is sent to the old id of a channel arrives at the new one, once and in order, and leaves
// no dead route.
func TestMovedReplies(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(r *rig){
		"a new id in the attempt": func(r *rig) {
			first := true
			r.chat.judge = func(o claybot.Outgoing) verdict {
				if first {
					first = false
					r.system.Moved(r.Context(), "chat", annOld.ChannelID, annNew.ChannelID, claybot.Now()) //nolint:errcheck // the test finds out
				}
				return map[bool]verdict{true: refused(true)}[o.Route.ChannelID == annOld.ChannelID]
			}
			r.post(annOld, inGroup("a"))
			r.wants("re: a")
		},
		"a route of a task": func(r *rig) {
			r.gone()
			r.move()
			r.enqueue("1")
			r.restart()
			r.wants("1")
		},
		"another member stored it": func(r *rig) {
			r.gone()
			mark := `{"connector":"chat","from":"T1/old","to":"T1/new"}`
			if err := r.db.SetCheckpoint(r.Context(), storage.CheckpointMoved+"chat/T1/old", mark); err != nil {
				r.Fatal(err)
			}
			r.post(annOld, inGroup("a"))
			r.wants("re: a")
		},
		"in order": func(r *rig) {
			r.gone()
			r.move()
			r.enqueue("1")
			r.enqueue("2")
			r.crash()
			old := r.chat.judge
			first := true
			r.chat.judge = func(o claybot.Outgoing) verdict {
				if first {
					first = false
					return slow(time.Minute, false)
				}
				return old(o)
			}
			r.start()
			r.post(annNew, inGroup("b"))
			after(2 * time.Minute)
			r.wants("1", "2", "re: b")
		},
		"sent again after it was lost": func(r *rig) {
			r.gone()
			r.post(annOld, inGroup("a"))
			r.wants()
			if why, _ := r.system.DeadRoute(annOld.Route()); why == "" {
				r.Error("the old id is no dead route")
			}
			r.move()
			m := command("c", "resend")
			m.Context.Group = true
			r.post(annNew, m)
			after(time.Second)
			r.wants(resending, "re: a")
		},
		"a late message": func(r *rig) {
			r.gone()
			r.post(annOld, inGroup("a"))
			synctest.Wait()
			r.move()
			r.post(annOld, inGroup("b"))
			after(time.Second)
			r.post(annNew, inGroup("c"))
			after(time.Second)
			r.wants("re: b", "re: c")
			if got := r.directories(); len(got) != 1 {
				r.Errorf("agents %q", got)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.access.Mode, r.access.Allow = "allowlist", []string{"chat:old"} // without its team
				r.start()
				test(r)
				synctest.Wait()
				if why, _ := r.system.DeadRoute(annNew.Route()); why != "" {
					t.Errorf("dead: %s", why)
				}
				if st, err := r.system.Overview.Status(r.Context()); err != nil || len(st.DeadRoutes) > 0 {
					t.Errorf("dead routes %v, %v", st.DeadRoutes, err)
				}
			})
		})
	}
}

// What was parked for the former id of a channel goes to its agent, which has moved.
func TestMovedParked(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		r.post(annOld, inGroup("a"))
		synctest.Wait()
		r.park(annOld)
		r.move()
		r.crash()
		r.start()
		after(time.Minute)
		r.wants("re: a", "re: p")
		if got := r.directories(); len(got) != 1 {
			t.Errorf("agents %q", got)
		}
	})
}

// A message of a moved channel waits behind those that were parked under its former id.
func TestMovedBehindParked(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		r.post(annOld, inGroup("a"))
		synctest.Wait()
		r.park(annOld)
		r.move()
		r.post(annNew, inGroup("b"))
		after(time.Minute)
		asked := slices.DeleteFunc(r.history(annNew), func(line string) bool { return !strings.HasPrefix(line, "user_message ") })
		if want := []string{"user_message a", "user_message p", "user_message b"}; !slices.Equal(asked, want) {
			t.Errorf("the agent read %q, want %q", asked, want)
		}
		if got := r.chat.seen(); got[len(got)-1] != "re: b" { // one run may take both
			t.Errorf("people see %q", got)
		}
		if got := r.directories(); len(got) != 1 {
			t.Errorf("agents %q", got)
		}
	})
}

// A /stop in a moved channel ends what was parked under its former id.
func TestMovedStopsParked(t *testing.T) {
	t.Parallel()
	stop := msg("s", "")
	stop.Type, stop.Context.Group = claybot.MessageCancel, true
	bubble(t, func(r *rig) {
		r.start()
		r.post(annOld, inGroup("a"))
		synctest.Wait()
		r.park(annOld)
		r.move()
		r.post(annNew, stop)
		synctest.Wait() // the crash cuts off no reply
		r.crash()
		r.start()
		after(time.Minute)
		r.wants("re: a", "Stopped.")
		if got := r.directories(); len(got) != 1 {
			t.Errorf("agents %q", got)
		}
	})
}

// A channel that gets its old id back is answered there by the agent that it had all along, also
// after a restart and a redelivered report of the first move.
func TestMovedBack(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.access.Mode = "pairing"
		r.start()
		if err := r.system.People.Allow(r.Context(), "chat", annOld.ChannelID); err != nil {
			t.Fatal(err)
		}
		r.post(annOld, inGroup("a"))
		synctest.Wait()
		id := r.agent(annOld)
		there := claybot.Now()
		move := func(from, to claybot.Descriptor, at claybot.Time) {
			t.Helper()
			if err := r.system.Moved(r.Context(), "chat", from.ChannelID, to.ChannelID, at); err != nil {
				t.Fatal(err)
			}
		}
		move(annOld, annNew, there)
		r.post(annNew, inGroup("b"))
		after(time.Minute)
		move(annNew, annOld, claybot.Now())
		r.post(annOld, inGroup("c"))
		after(time.Second)
		move(annOld, annNew, there)
		r.post(annOld, inGroup("d"))
		after(time.Second)
		r.restart()
		r.post(annOld, inGroup("e"))
		r.post(annNew, inGroup("late"))
		after(time.Second)
		r.wants("re: a", "re: b", "re: c", "re: d", "re: e", "re: late")
		if got := r.chat.seen("T1/old"); len(got) != 5 {
			t.Errorf("at the old id %q", got)
		}
		if got := r.agent(annOld); got != id || len(r.directories()) != 1 {
			t.Errorf("agent %s, was %s, of %q", got, id, r.directories())
		}
		grants, err := r.db.Grants(r.Context())
		if err != nil || len(grants) != 1 || grants[0].Subject != annOld.ChannelID {
			t.Errorf("grants %v, %v", grants, err)
		}
	})
}

// What unknown users do with their groups leaves no new id behind; what concerns a chat that an
// agent, the settings or access name does.
func TestMovedConcerns(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		do   func(r *rig)
		want int
	}{
		{"an unknown group", func(*rig) {}, 0},
		{"a named group", func(r *rig) { r.named = []string{"chat:T1/old"} }, 1},
		{"a group named without its workspace", func(r *rig) { r.named = []string{"chat:old"} }, 1},
		{"access", func(r *rig) { r.allows("chat:old") }, 1},
		{"an agent without access", func(r *rig) {
			r.allows("chat:old")
			r.post(annOld, inGroup("a"))
			synctest.Wait()
			r.allows()
		}, 1},
		{"a parked message", func(r *rig) { r.park(annOld) }, 1},
		{"a parked message of another group", func(r *rig) { r.park(claybot.User("chat", "T1/other", "ann")) }, 0},
		{"a message to send", func(r *rig) { r.enqueue("1") }, 1},
		{"open access", func(r *rig) { r.access.Mode = "open" }, 0},
		{"open access, and an agent", func(r *rig) {
			r.access.Mode = "open"
			r.post(annOld, inGroup("a"))
			synctest.Wait()
		}, 1},
		{"open access, and what was overheard", func(r *rig) {
			r.access.Mode = "open"
			said := storage.SaidIn{Chat: storage.Chat{Connector: "chat", Channel: "T1/old"}, Said: claybot.Said{ID: "1", At: claybot.Now(), Text: "hello"}}
			if err := r.db.KeepSaid(r.Context(), 10, said); err != nil {
				r.Fatal(err)
			}
		}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.access.Mode = "allowlist"
				r.start()
				tt.do(r)
				r.move()
				marks, err := r.db.ListCheckpoints(r.Context(), storage.CheckpointMoved)
				if err != nil || len(marks) != tt.want {
					t.Errorf("stored %q, %v", marks, err)
				}
			})
		})
	}
}

// dying ends a process before a step of a move.
type dying struct {
	agentsystem.Agents
	before func() error
}

func (d dying) MoveChannel(ctx context.Context, connector, from, to string) error {
	if err := d.before(); err != nil {
		return err
	}
	return d.Agents.MoveChannel(ctx, connector, from, to)
}

// A process that dies after it stored the new id, before the agents have moved, completes the
// move before it takes a message of the channel.
func TestMovedCutShort(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		dies := true
		r.decorate = func(s agentsystem.Stores) agentsystem.Stores {
			s.Agents = dying{s.Agents, func() error {
				if dies {
					return fmt.Errorf("cut: %w", storage.ErrBusy)
				}
				return nil
			}}
			return s
		}
		r.access.Mode = "pairing"
		r.start()
		if err := r.system.People.Allow(r.Context(), "chat", "old"); err != nil {
			t.Fatal(err)
		}
		r.post(annOld, inGroup("a"))
		synctest.Wait()
		id := r.agent(annOld)
		if err := r.system.Moved(r.Context(), "chat", annOld.ChannelID, annNew.ChannelID, claybot.Now()); err == nil {
			t.Fatal("moved")
		}
		r.crash()
		dies = false
		r.start()
		r.post(annNew, inGroup("b"))
		r.wants("re: a", "re: b")
		if got := r.agent(annNew); got != id {
			t.Errorf("another agent: %s, was %s", got, id)
		}
		grants, err := r.db.Grants(r.Context())
		if err != nil || len(grants) != 1 || grants[0].Subject != annNew.ChannelID {
			t.Errorf("grants %v, %v", grants, err)
		}
		// Access that is taken from the new id is gone for good, also after a restart.
		if err := r.system.People.Revoke(r.Context(), "chat", annNew.ChannelID); err != nil {
			t.Fatal(err)
		}
		r.restart()
		r.post(annNew, inGroup("c"))
		r.wants("re: a", "re: b")
	})
}

// Operators are told once that the configuration names a chat by an id that it has no more.
func TestMovedIsTold(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.named = []string{"chat:T1/old", "chat:old", "chat:other"}
		from := r.bossy()
		r.move()
		after(3 * time.Hour)
		want := []string{"The configuration names chat:T1/old, which is now chat:T1/new. The configuration names chat:old, which is now chat:new. " +
			"Its settings hold for the new name as well. Please change the name in the configuration."}
		if got := r.bossReads(from); !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
	})
}

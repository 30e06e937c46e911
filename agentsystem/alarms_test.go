package agentsystem_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// Operators read over a connector that works that another one has stopped: once, also after
// a restart and hours later, never in a group, and no other person; and that it works again.
func TestStoppedConnectorIsTold(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		broken := true
		dead := &line{name: "dead", chat: &chat{}, fuse: newFuse(-1)}
		dead.run = func(ctx context.Context, _ connectors.Handler) error {
			if broken {
				dead.Stop(errors.New("the token is refused (401); get a new one"))
				return &connectors.PermanentError{Says: texts.StoppedToken, Err: errors.New("the token is refused (401)"), Fix: "get a new one"}
			}
			dead.OK()
			<-ctx.Done()
			return context.Cause(ctx)
		}
		r.instances = map[string]string{"chat": "telegram"}
		r.start()
		boss := msg("b", "b")
		r.post(claybot.User("chat", "boss", "boss"), boss)
		group := msg("g", "g")
		group.Context.Group = true
		r.post(claybot.User("chat", "-100", "boss"), group)
		r.say("a")
		synctest.Wait()
		before := len(r.chat.seen())
		r.also = []connectors.Connector{dead}
		for range 3 {
			r.restart()
			time.Sleep(2 * time.Hour)
		}
		want := []string{"Dead has stopped, so nothing is received or sent there: its token is refused. `claybot doctor` says what to do."}
		if got := r.chat.seen()[before:]; !slices.Equal(got, want) {
			t.Errorf("people read %q, want %q", got, want)
		}
		if got := r.chat.seen("boss"); !slices.Contains(got, want[0]) {
			t.Errorf("the operator reads %q", got)
		}
		broken = false
		r.restart()
		time.Sleep(time.Minute)
		r.restart()
		time.Sleep(time.Hour)
		want = append(want, "Dead works again.")
		if got := r.chat.seen()[before:]; !slices.Equal(got, want) {
			t.Errorf("people read %q, want %q", got, want)
		}
	})
}

// Operators read of each stop and each return of a connector, also where several happen within an
// hour for one cause, and of each once where a crash repeats the telling.
func TestConnectorThatStopsTwiceIsToldTwice(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		broken := false
		dead := &line{name: "dead", chat: &chat{}, fuse: newFuse(-1)}
		dead.run = func(ctx context.Context, _ connectors.Handler) error {
			if broken {
				dead.Stop(errors.New("gone"))
				return &connectors.PermanentError{Err: errors.New("gone")}
			}
			dead.OK()
			<-ctx.Done()
			return context.Cause(ctx)
		}
		r.also = []connectors.Connector{dead}
		n := r.bossy()
		var want []string
		for range 2 {
			for _, broken = range []bool{true, false} {
				r.restart()
				time.Sleep(time.Minute)
			}
			want = append(want, "Dead has stopped, so nothing is received or sent there. `claybot doctor` says why, and what to do.", "Dead works again.")
		}
		// As after a crash between the notice that it works and its mark.
		if err := r.db.SetCheckpoint(r.Context(), "notice/connector/dead/works", "untold"); err != nil {
			t.Fatal(err)
		}
		r.restart()
		if got := r.bossReads(n); !slices.Equal(got, want) {
			t.Errorf("the operator reads %q, want %q", got, want)
		}
	})
}

// Where no operator could be reached when a connector stopped, one reads of it as soon as they can
// be reached, also one who has only ever sent commands; once, without a restart.
func TestStoppedConnectorIsToldLater(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		dead := &line{name: "dead", chat: &chat{}, fuse: newFuse(-1)}
		dead.run = func(context.Context, connectors.Handler) error {
			dead.Stop(errors.New("gone"))
			return &connectors.PermanentError{Err: errors.New("gone")}
		}
		r.instances = map[string]string{"chat": "telegram"}
		r.also = []connectors.Connector{dead}
		r.start()
		time.Sleep(time.Hour + time.Second) // not at the moment of a try
		if got := r.chat.seen("boss"); len(got) != 0 {
			t.Fatalf("an operator without a conversation reads %q", got)
		}
		status := command("c", "status")
		status.From.UserID = "boss"
		r.post(claybot.User("chat", "boss", "boss"), status)
		synctest.Wait()
		before := len(r.chat.seen("boss"))
		time.Sleep(3 * time.Hour)
		want := []string{"Dead has stopped, so nothing is received or sent there. `claybot doctor` says why, and what to do."}
		if got := r.chat.seen("boss")[before:]; !slices.Equal(got, want) {
			t.Errorf("the operator reads %q, want %q", got, want)
		}
	})
}

// bossReads returns what an operator reads, besides answers, from a place on.
func (r *rig) bossReads(from int) []string {
	r.Helper()
	time.Sleep(2 * time.Minute)
	return r.chat.seen("boss")[from:]
}

// bossy starts a system whose operator has a private conversation, and returns how much they have read.
func (r *rig) bossy() int {
	r.Helper()
	r.instances = map[string]string{"chat": "telegram"}
	r.start()
	r.post(claybot.User("chat", "boss", "boss"), msg("b", "b"))
	synctest.Wait()
	return len(r.chat.seen("boss"))
}

// Operators read of replies that were given up: grouped, at most once an hour, once across
// restarts and crashes, and not anew a day later.
func TestLostRepliesAreTold(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.chat.judge = func(o claybot.Outgoing) verdict {
			if o.Route.UserID == "boss" {
				return verdict{}
			}
			return refused(false)
		}
		n := r.bossy()
		r.say("one", "two")
		one := []string{"I couldn't deliver 2 replies. `claybot outbox list --state failed` shows what failed and why, and `claybot outbox retry` sends it again."}
		if got := r.bossReads(n); !slices.Equal(got, one) {
			t.Fatalf("the operator reads %q, want %q", got, one)
		}
		r.say("three")
		if got := r.bossReads(n); !slices.Equal(got, one) {
			t.Errorf("the operator reads a second notice within an hour: %q", got)
		}
		r.crash()
		r.start()
		time.Sleep(time.Hour)
		two := append(one, "I couldn't deliver 1 reply. `claybot outbox list --state failed` shows what failed and why, and `claybot outbox retry` sends it again.")
		if got := r.bossReads(n); !slices.Equal(got, two) {
			t.Errorf("the operator reads %q, want %q", got, two)
		}
		r.restart()
		time.Sleep(25 * time.Hour)
		if got := r.bossReads(n); !slices.Equal(got, two) {
			t.Errorf("the operator reads %q, want %q", got, two)
		}
	})
}

// Operators read of dead routes of groups and of tasks, not of people who do not want to be written to.
func TestDeadRoutesAreTold(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.chat.judge = func(o claybot.Outgoing) verdict {
			if o.Route.UserID == "boss" {
				return verdict{}
			}
			return refused(true)
		}
		n := r.bossy()
		r.say("a")
		if got := r.bossReads(n); len(got) != 0 {
			t.Errorf("the operator reads of a person: %q", got)
		}
		group := msg("g", "g")
		group.Context.Group = true
		r.post(claybot.User("chat", "-100", "ann"), group)
		want := []string{"I can't write to 1 group on Chat any more. `claybot status` lists the routes and why."}
		if got := r.bossReads(n); !slices.Equal(got, want) {
			t.Errorf("the operator reads %q, want %q", got, want)
		}
		task := claybot.Descriptor{Type: claybot.AgentCron, UID: "t1", Name: "Morning", Owner: "chat/ann"}
		out := typed("t", claybot.MessageSystem, "report")
		to := ann.Route()
		out.Route = &to
		r.post(task, out)
		time.Sleep(time.Hour)
		want = append(want, "The scheduled task “Morning” can't reach its chat any more. `claybot status` lists the routes and why.")
		if got := r.bossReads(n); !slices.Equal(got, want) {
			t.Errorf("the operator reads %q, want %q", got, want)
		}
	})
}

// Operators read that the store was full once it works again, once for each time: while it is
// full, the notice cannot be stored.
func TestFullStoreIsTold(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		disk := r.onDisk()
		n := r.bossy()
		for want := range 3 {
			disk.full.Store(true)
			if err := r.system.Post(r.Context(), ann, msg(fmt.Sprint("lost", want), "lost")); err == nil {
				t.Error("a message was acknowledged that is not stored")
			}
			time.Sleep(10 * time.Minute)
			if got := r.bossReads(n); len(got) != want {
				t.Errorf("while the store is full the operator reads %q", got)
			}
			disk.full.Store(false)
			r.post(ann, msg(fmt.Sprint("kept", want), "kept"))
			time.Sleep(2 * time.Hour)
			if got := r.bossReads(n); len(got) != want+1 || !strings.HasPrefix(got[want], "The disk with my data was full or read-only from today at ") {
				t.Errorf("the operator reads %q", got)
			}
		}
		r.restart()
		time.Sleep(2 * time.Hour)
		if got := r.bossReads(n); len(got) != 3 {
			t.Errorf("after a restart the operator reads %q", got)
		}
	})
}

// A process that ends while the store is full, in order or not, leaves the notice to the next one,
// also to one after that if no operator can be reached before; it is told once for each time.
func TestFullStoreIsToldByTheNextStart(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*rig){"crash": (*rig).crash, "shutdown": (*rig).shut} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				disk := r.onDisk()
				n := r.bossy()
				for want := 1; want <= 2; want++ {
					disk.full.Store(true)
					if err := r.system.Post(r.Context(), ann, msg(fmt.Sprint("lost", want), "lost")); err == nil {
						t.Error("a message was acknowledged that is not stored")
					}
					for range 2 { // the second process cannot store the notice either
						end(r)
						r.start()
						time.Sleep(5 * time.Minute)
					}
					if got := r.bossReads(n); len(got) != want-1 {
						t.Errorf("while the store is full the operator reads %q", got)
					}
					disk.full.Store(false)
					for i := range 3 {
						end(r)
						r.start()
						r.post(ann, msg(fmt.Sprint("kept", want, i), "kept"))
						time.Sleep(2 * time.Hour)
						if got := r.bossReads(n); len(got) != want || !strings.HasPrefix(got[want-1], "The disk with my data was full or read-only from ") {
							t.Errorf("the operator reads %q, want %d", got, want)
						}
					}
				}
			})
		})
	}
}

// Members that find the store that they share full within minutes of each other make one notice, and
// what was full long ago makes none.
func TestFullStoreIsToldOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		n := r.bossy()
		for range 3 { // the mark of what operators know is in the store
			r.system.Worker.Health.Stored(storage.ErrFull)
			r.system.Worker.Health.Stored(nil)
			time.Sleep(7 * time.Minute)
		}
		time.Sleep(3 * time.Hour)
		if got := r.bossReads(n); len(got) != 1 {
			t.Errorf("the operator reads %q", got)
		}
	})
	bubble(t, func(r *rig) {
		disk := r.onDisk()
		n := r.bossy()
		disk.full.Store(true)
		if err := r.system.Post(r.Context(), ann, msg("lost", "lost")); err == nil {
			t.Error("a message was acknowledged that is not stored")
		}
		r.shut()
		time.Sleep(8 * 24 * time.Hour)
		disk.full.Store(false)
		r.start()
		r.post(ann, msg("kept", "kept"))
		time.Sleep(3 * time.Hour)
		if got := r.bossReads(n); len(got) != 0 {
			t.Errorf("of a week ago the operator reads %q", got)
		}
	})
}

// Operators read once that messages of all chats of a connector may be missing, unless they have
// read that in their own chat there; also where no operator could be reached at first.
func TestGapIsTold(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.instances = map[string]string{"chat": "telegram"}
		r.start()
		from := time.Now().Add(-30 * time.Hour)
		for _, name := range []string{"far", "far", "chat"} {
			if _, err := r.system.Missed(r.Context(), connectors.Missed{Connector: name, From: from, To: time.Now()}); err != nil {
				t.Fatal(err)
			}
		}
		r.crash()
		r.start()
		time.Sleep(time.Hour + time.Second) // not at the moment of a try
		r.post(claybot.User("chat", "boss", "boss"), msg("b", "b"))
		time.Sleep(time.Hour)
		got := slices.DeleteFunc(r.chat.seen("boss"), func(s string) bool { return !strings.HasPrefix(s, "I couldn't reach ") })
		if len(got) != 1 || !strings.HasPrefix(got[0], "I couldn't reach Far from ") {
			t.Errorf("the operator reads %q", got)
		}
	})
}

// A second gap of a connector does not replace one of which no operator has read yet.
func TestEachGapIsTold(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.instances = map[string]string{"chat": "telegram"}
		r.start()
		for range 2 {
			from := time.Now()
			time.Sleep(30 * time.Hour)
			if _, err := r.system.Missed(r.Context(), connectors.Missed{Connector: "far", From: from, To: time.Now()}); err != nil {
				t.Fatal(err)
			}
		}
		r.post(claybot.User("chat", "boss", "boss"), msg("b", "b"))
		r.crash()
		r.start()
		time.Sleep(time.Hour)
		got := slices.DeleteFunc(r.chat.seen("boss"), func(s string) bool { return !strings.HasPrefix(s, "I couldn't reach Far from ") })
		if len(got) != 2 || got[0] == got[1] {
			t.Errorf("the operator reads %q", got)
		}
	})
}

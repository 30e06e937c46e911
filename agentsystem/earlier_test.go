package agentsystem_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// An archive is what a platform keeps of a chat. It outlives the processes.
type archive struct {
	mu    sync.Mutex
	said  []claybot.Said
	spans []connectors.Span
	err   error         // of each reading
	slow  time.Duration // what each reading takes
	deaf  time.Duration // by how much a reading comes too late
}

// A keepingLine has an archive.
type keepingLine struct {
	findingLine
	*archive
}

func (l keepingLine) Said(ctx context.Context, s connectors.Span) (said []claybot.Said, more bool, err error) {
	if err := rest(ctx, l.slow); err != nil {
		return nil, false, err
	}
	time.Sleep(l.deaf)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spans = append(l.spans, s)
	for _, m := range l.archive.said {
		if m.ID > s.After && (s.Before == "" || m.ID < s.Before) {
			said = append(said, m)
		}
	}
	if extra := len(said) - s.Limit; extra > 0 {
		return said[extra:], true, l.err
	}
	return said, false, l.err
}

// says has a person say something that is not for the bot.
func (a *archive) says(id, user string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.said = append(a.said, claybot.Said{ID: id, UserID: user, Name: user, At: claybot.Now(), Text: "said " + id})
}

// withArchive runs a test on a platform that keeps what was said.
func withArchive(t *testing.T, test func(r *rig, a *archive)) {
	bubble(t, func(r *rig) {
		a := new(archive)
		r.line = func(l *line) connectors.Connector { return keepingLine{findingLine{l}, a} }
		test(r, a)
	})
}

// earlier returns what came with each message of the agent of room: the ids, and what is said
// about it.
func (r *rig) earlier() (all []string) {
	r.Helper()
	for _, rec := range r.records(room) {
		if rec.Type != claybot.RecordUser {
			continue
		}
		line := string(rec.MessageID) + ":"
		if e := rec.Earlier; e != nil {
			for _, s := range e.Said {
				line += " " + s.ID
			}
			if e.More {
				line += " more"
			}
			if e.Others {
				line += " others"
			}
			if e.Missing != "" {
				line += " missing"
			}
		}
		all = append(all, line)
	}
	return all
}

func (r *rig) wantEarlier(want ...string) {
	r.Helper()
	if got := r.earlier(); !slices.Equal(got, want) {
		r.Errorf("with the messages came %q, want %q", got, want)
	}
}

// A message of a thread brings what was said there since the one before, with what could not
// be read then, and never what was forgotten, or what the agent knows (CN-18).
func TestEarlier(t *testing.T) {
	withArchive(t, func(r *rig, a *archive) {
		r.start()
		post := func(thread, id string) {
			r.post(room, in(thread, id, id))
			synctest.Wait()
			time.Sleep(time.Second)
		}
		a.says("01", "eve")
		a.says("02", "ann")
		post("00", "03")
		a.says("03", "ann") // what the agent got
		post("00", "04")
		a.err = errNet
		a.says("05", "ann")
		post("00", "06")
		a.err = nil
		post("00", "07")
		for i := range 30 {
			a.says(fmt.Sprint(10+i), "ann")
		}
		r.restart()
		post("00", "50")
		post("51", "51") // begins a thread of its own
		want := []string{"03: 01 02 others", "04:", "06: missing", "07: 05"}
		long := "50:"
		for i := 20; i < 40; i++ {
			long += " " + fmt.Sprint(i)
		}
		want = append(want, long+" more", "51:")
		r.wantEarlier(want...)
		reset := in("00", "60", "")
		reset.Type = claybot.MessageReset
		r.post(room, reset)
		time.Sleep(time.Second)
		a.says("61", "eve")
		post("00", "62")
		r.wantEarlier("62: 61 others")
	})
}

// The profile says how many messages come, outside threads as well; direct chats get none.
func TestEarlierByProfile(t *testing.T) {
	for n, want := range map[int]string{0: "m:", 1: "m: c more", 5: "m: a b c"} {
		withArchive(t, func(r *rig, a *archive) {
			r.profile.Context = &n
			r.start()
			for _, id := range []string{"a", "b", "c"} {
				a.says(id, "ann")
			}
			r.post(room, in("m", "m", "m"))
			synctest.Wait()
			r.wantEarlier(want)
			r.post(ann, msg("n", "n"))
			synctest.Wait()
			if n := len(a.spans); n > 1 {
				t.Errorf("read %+v", a.spans)
			}
		})
	}
}

// A platform that is slow, or asks for a pause, delays a message by five seconds at most.
func TestEarlierLate(t *testing.T) {
	for name, set := range map[string]func(*archive){
		"slow":  func(a *archive) { a.slow = time.Hour },
		"pause": func(a *archive) { a.err = &connectors.RetryError{After: time.Hour, Err: errors.New("429")} },
	} {
		t.Run(name, func(t *testing.T) {
			withArchive(t, func(r *rig, a *archive) {
				set(a)
				r.start()
				began := time.Now()
				r.post(room, in("00", "03", "03"))
				time.Sleep(6 * time.Second)
				synctest.Wait()
				r.wants("re: 03")
				if at := r.chat.posts[0].at; at.Sub(began) > 6*time.Second {
					t.Errorf("answered after %s", at.Sub(began))
				}
				r.wantEarlier("03: missing")
			})
		})
	}
}

// A thread is read from the message before on, also where nothing new was said.
func TestEarlierStartsWhereItWasRead(t *testing.T) {
	withArchive(t, func(r *rig, a *archive) {
		r.start()
		for _, id := range []string{"03", "04", "05", "06"} {
			if id == "06" {
				r.restart()
			}
			r.post(room, in("00", id, id))
			synctest.Wait()
			a.says(id, "ann") // what the agent got
			time.Sleep(time.Second)
		}
		r.wantEarlier("03:", "04:", "05:", "06:")
		var after []string
		for _, s := range a.spans {
			after = append(after, s.After)
		}
		if want := []string{"", "03", "04", "05"}; !slices.Equal(after, want) {
			t.Errorf("read after %q, want %q", after, want)
		}
	})
}

// Where the store does not say in time which messages the agent knows, none of them is shown as
// new, and the next message brings what was.
func TestEarlierUnknown(t *testing.T) {
	withArchive(t, func(r *rig, a *archive) {
		r.start()
		r.post(room, in("00", "03", "03"))
		synctest.Wait()
		a.says("03", "ann") // what the agent got
		a.says("04", "eve")
		time.Sleep(time.Second)
		a.deaf = time.Minute
		r.post(room, in("00", "05", "05"))
		after(2 * time.Minute)
		a.deaf = 0
		r.post(room, in("00", "06", "06"))
		after(time.Second)
		r.wantEarlier("03:", "05: missing", "06: 04 others")
	})
}

// Wherever the process dies, each message has what was said before it, once.
func TestEarlierCrashes(t *testing.T) {
	run := func(t *testing.T, k int) (steps int) {
		withArchive(t, func(r *rig, a *archive) {
			r.blowAfter = k
			a.says("01", "eve")
			say := func() {
				r.insist(room, in("00", "02", "02"))
				after(time.Minute)
			}
			r.start()
			say()
			steps = len(r.fuse.steps)
			if k >= 0 {
				r.crash()
				a.says("03", "eve") // later than the message
				r.start()
				say()
			}
			r.wantEarlier("02: 01 others")
			if n := len(r.chat.seen()); n != 1 {
				t.Errorf("people see %d answers", n)
			}
		})
		return steps
	}
	for k := range run(t, -1) {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			t.Parallel()
			run(t, k)
		})
	}
}

package heartbeat_test

import (
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

// After so many unattended ticks it pauses, and says so once.
func TestRestsUnattended(t *testing.T) {
	bubble(t, func(r *rig) {
		r.settings.MaxUnattended = 3
		r.file("a.md", "a")
		r.write()
		r.start()
		r.pass(80 * time.Minute)
		r.wantNotices(0)
		r.pass(3 * time.Hour)
		r.wantTimes("0 30 60")
		r.wantNotices(1)
		if b := r.heartbeats()[0]; b.Stopped != "no user wrote during 3 ticks" || !b.Next.IsZero() {
			r.Errorf("rests %q, next %v", b.Stopped, b.Next)
		}
		r.set(func() {
			if want := "heartbeat/rest/946690200000: The heartbeat is paused because you did not write during 3 ticks. It resumes when you write."; r.notices[0] != want {
				r.Errorf("notice %q, want %q", r.notices[0], want)
			}
		})
		if n := strings.Count(r.log.String(), `msg="heartbeat paused until the next message of a user" connector=heartbeat why="no user wrote during 3 ticks"`); n != 1 {
			r.Errorf("the log was told %d times", n)
		}
		r.restart() // it rests on, and says nothing
		r.pass(time.Hour)
		r.wantTimes("0 30 60")
		r.wantNotices(1)
		r.write()
		r.pass(15 * time.Second)
		r.wantTimes("0 30 60 320")
		if b := r.heartbeats()[0]; b.Stopped != "" || b.Next.IsZero() {
			r.Errorf("rests %q, next %v", b.Stopped, b.Next)
		}
		r.pass(3 * time.Hour) // and again
		r.wantTimes("0 30 60 320 350 380")
		r.wantNotices(2)
	})
}

func TestAMessageKeepsItTicking(t *testing.T) {
	bubble(t, func(r *rig) {
		r.settings.MaxUnattended = 2
		r.file("a.md", "a")
		r.start()
		r.pass(50 * time.Minute) // ticks at 0 and 30
		r.write()
		r.pass(30 * time.Minute) // and at 60
		r.restart()              // which forgets no tick
		r.pass(3 * time.Hour)    // and at 90
		r.wantTimes("0 30 60 90")
		r.wantNotices(1)
	})
}

func TestRestsByDefaultAfterADay(t *testing.T) {
	bubble(t, func(r *rig) {
		r.settings.Every = 5 * time.Minute
		r.file("a.md", "a")
		r.start()
		r.pass(5 * time.Hour)
		if got := r.state(); got.posts != 48 {
			r.Errorf("%d ticks", got.posts)
		}
	})
}

func TestRestsWhenTheModelRefuses(t *testing.T) {
	bubble(t, func(r *rig) {
		r.code = "model_refused"
		r.takes = 3 * time.Minute
		r.file("a.md", "a")
		r.start()
		r.pass(time.Minute)
		r.write() // before the rest
		r.pass(5 * time.Hour)
		r.wantTimes("0")
		r.wantNotices(1)
		if b := r.heartbeats()[0]; !strings.Contains(b.Stopped, "the model refused") || !strings.Contains(b.Stopped, "run/heartbeat/") {
			r.Errorf("rests %q", b.Stopped)
		}
		r.write()
		r.pass(2 * time.Hour) // refused again
		r.wantTimes("0 301")
		r.wantNotices(2)
		r.set(func() { r.code = "" })
		r.write()
		r.pass(40 * time.Minute)
		r.wantTimes("0 301 421 451")
		r.wantNotices(2)
	})
}

// The end of a refused run that was not reported is understood in the same way.
func TestRestsAfterARefusalFoundOut(t *testing.T) {
	bubble(t, func(r *rig) {
		r.code, r.deaf = "model_refused", true
		r.file("a.md", "a")
		r.start()
		r.pass(10 * time.Second)
		r.restart()
		r.pass(2 * time.Hour)
		r.wantTimes("0")
		r.wantNotices(1)
	})
}

func TestNoticeFails(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want int // notices after it works again
	}{
		{storage.ErrBusy, 1},     // tried again
		{storage.ErrNotFound, 0}, // there was no agent
	} {
		bubble(t, func(r *rig) {
			r.code, r.mute = "model_refused", tc.err
			r.file("a.md", "a")
			r.start()
			r.pass(time.Minute)
			r.restart()
			r.pass(time.Minute)
			r.set(func() { r.mute = nil })
			r.pass(time.Minute)
			r.wantNotices(tc.want)
			r.wantTimes("0")
		})
	}
}

// A clock that goes back neither ends a rest nor makes it endless.
func TestRestAndClock(t *testing.T) {
	bubble(t, func(r *rig) {
		r.settings.MaxUnattended = 1
		r.file("a.md", "a")
		r.write()
		r.start()
		r.pass(2 * time.Hour)
		r.wantNotices(1)
		r.set(func() { r.shift = -24 * time.Hour })
		r.pass(2 * time.Hour)
		if got := r.state(); got.posts != 1 {
			r.Errorf("%d posts", got.posts)
		}
		r.write()
		r.pass(time.Minute)
		if got := r.state(); got.posts != 2 {
			r.Errorf("%d posts after a word", got.posts)
		}
	})
}

// A person may run a tick by hand meanwhile.
func TestManualTickDuringARest(t *testing.T) {
	bubble(t, func(r *rig) {
		r.settings.MaxUnattended = 1
		r.file("a.md", "a")
		r.start()
		r.pass(time.Hour)
		r.wantTimes("0")
		r.runNow(1, "k")
		r.pass(2 * time.Hour)
		r.wantTimes("0 60")
		if h := r.heart.Health(); h.State != connectors.StateLive {
			r.Errorf("health %+v", h)
		}
	})
}

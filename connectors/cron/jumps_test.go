package cron_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// A task whose output did not arrive twice in a row rests until it is changed
// or enabled.
func TestDeadRoute(t *testing.T) {
	for _, how := range []string{"edit", "enable"} {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.ends = func(claybot.AgentMessage) (claybot.RunState, string) { return claybot.RunSucceeded, "bot was blocked" }
				text := taskText("a", "schedule: '*/10 * * * *'", "route: telegram/1")
				r.write("a", text)
				r.cfg.Poll = time.Minute
				told := make(map[string]string)
				r.cfg.Notice = func(_ context.Context, owner, key string, say func(texts.Voice) string) error {
					told[key] = owner + ": " + say(texts.Voice{})
					return nil
				}
				r.start()
				pass(time.Hour)
				if len(r.posts) != 2 {
					t.Fatalf("fired %v, want twice", r.fired())
				}
				if len(told) != 1 {
					t.Errorf("the owner was told %v", told)
				}
				all, _, err := r.cron.Tasks(r.t.Context())
				if err != nil || !strings.Contains(all[0].Paused, "bot was blocked") || len(all[0].Next) != 0 {
					t.Errorf("task %+v, %v", all, err)
				}
				r.stop() // the pause survives
				r.start()
				pass(time.Hour + time.Minute)
				if len(r.posts) != 2 {
					t.Fatalf("fired %v after a restart", r.fired())
				}
				if how == "edit" {
					r.write("a", strings.Replace(text, "telegram/1", "telegram/2", 1))
				} else if v, err := r.cron.Change(r.t.Context(), "a", connectors.TaskChange{Enabled: ptr(true)}); err != nil || v.Paused != "" {
					t.Errorf("enabled %+v, %v", v, err)
				}
				r.mu.Lock()
				r.ends = succeed
				r.mu.Unlock()
				pass(time.Hour)
				if len(r.posts) != 8 {
					t.Errorf("fired %v, want 6 times more", r.fired())
				}
			})
		})
	}
}

// A store that went back in time does not know which instants have run: none up to the
// moment when that was noticed runs, whatever the task's rule says, and the ledger says
// why. What comes after it runs as planned.
func TestRestored(t *testing.T) {
	for name, tt := range map[string]struct {
		back   func(r *rig, saved *world) // makes the store an earlier one
		ledger []string                   // of the schedule, at the end
	}{
		"an earlier state": {func(r *rig, saved *world) { r.rows, r.marks = saved.rows, saved.marks }, []string{
			"2000-01-01T00:20:00Z FAILED", "2000-01-01T01:00:00Z skipped restored (2)", "2000-01-01T01:20:00Z FAILED", "2000-01-01T01:20:00Z FAILED",
		}},
		"all is lost": {func(r *rig, _ *world) { r.rows, r.marks = newWorld().rows, newWorld().marks }, []string{
			"2000-01-01T01:20:00Z FAILED", "2000-01-01T01:20:00Z FAILED",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.ends = func(claybot.AgentMessage) (claybot.RunState, string) { return claybot.RunFailed, "" }
				r.cfg.Poll = time.Minute
				r.write("often", taskText("a", "schedule: '*/20 * * * *'", "misfire: run_once", "retries: 1"))
				r.write("past", taskText("b", "at: 2000-01-01T00:50:00Z", "misfire: run_once"))
				r.write("later", taskText("c", "at: 2000-01-01T01:25:00Z", "misfire: run_once"))
				r.start()
				pass(20*time.Minute + 10*time.Second)
				saved := r.copied()
				pass(41 * time.Minute)
				r.stop()
				if got := len(r.posts); got != 7 { // three instants that are tried again, and one
					t.Fatalf("before: fired %v", r.fired())
				}
				tt.back(r, saved)
				r.marks[connectors.MarkRestored] = time.Now().UTC().Format(time.RFC3339)
				r.posts = nil
				// Its folder had not been put aside yet.
				r.write("past", taskText("b", "at: 2000-01-01T00:50:00Z", "misfire: run_once"))
				r.start()
				pass(28 * time.Minute)
				r.stop()
				r.is(r.fired(), "2000-01-01T01:20:00Z@01:20:00", "2000-01-01T01:20:00Z@01:21:10", "2000-01-01T01:25:00Z@01:25:00")
				r.is(r.ledger("a"), tt.ledger...)
				r.is(r.ledger("b"), "2000-01-01T00:50:00Z skipped restored (1)")
			})
		})
	}
}

// The clock is set while cron runs.
func TestClockJumps(t *testing.T) {
	for _, c := range []struct {
		name   string
		jump   time.Duration // at 01:30:00
		ledger []string      // of the next 2 hours, after those of 01:00
	}{
		{"an hour on", time.Hour, []string{"2000-01-01T02:00:00Z skipped missed (1)", "2000-01-01T03:00:00Z SUCCEEDED", "2000-01-01T04:00:00Z SUCCEEDED"}},
		{"half a minute on", 29*time.Minute + 30*time.Second, []string{"2000-01-01T02:00:00Z SUCCEEDED", "2000-01-01T03:00:00Z SUCCEEDED"}},
		{"into the minute", 30*time.Minute + 30*time.Second, []string{"2000-01-01T02:00:00Z SUCCEEDED", "2000-01-01T03:00:00Z SUCCEEDED", "2000-01-01T04:00:00Z SUCCEEDED"}},
		{"an hour back", -time.Hour, []string{"2000-01-01T02:00:00Z SUCCEEDED"}},
		{"30 days on", 30 * 24 * time.Hour, []string{"2000-01-31T01:00:00Z skipped missed (720)", "2000-01-31T02:00:00Z SUCCEEDED", "2000-01-31T03:00:00Z SUCCEEDED"}},
		{"30 days back", -30 * 24 * time.Hour, []string{"1999-12-02T02:00:00Z SUCCEEDED", "1999-12-02T03:00:00Z SUCCEEDED"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				var mu sync.Mutex
				var shift time.Duration
				r.cfg.Now = func() time.Time {
					mu.Lock()
					defer mu.Unlock()
					return time.Now().Add(shift)
				}
				r.write("a", taskText("a", "schedule: '0 * * * *'"))
				r.cfg.Poll = 10 * time.Second
				r.start()
				pass(90 * time.Minute)
				mu.Lock()
				shift = c.jump
				mu.Unlock()
				pass(2*time.Hour - time.Second)
				r.is(r.ledger("a"), append([]string{"2000-01-01T01:00:00Z SUCCEEDED"}, c.ledger...)...)
				if r.repeat != 0 {
					t.Errorf("%d posts of what had fired", r.repeat)
				}
			})
		})
	}
}

// An idle day reads neither the ledger nor fires.
func TestIdle(t *testing.T) {
	bubble(t, func(r *rig) {
		r.cfg.Poll = time.Minute
		r.write("a", taskText("a", "at: 2000-12-24T18:00:00Z"))
		r.start()
		pass(time.Minute)
		before := r.reads
		pass(23 * time.Hour)
		if r.reads != before || len(r.posts) != 0 {
			t.Errorf("%d reads of the ledger, fired %v", r.reads-before, r.fired())
		}
	})
}

// What was decided long ago stays decided when the ledger has forgotten it.
func TestForgottenRows(t *testing.T) {
	bubble(t, func(r *rig) {
		r.cfg.Poll = time.Hour
		r.write("a", taskText("a", "schedule: '0 1 1 1 *'", "misfire: run_once"))
		r.write("b", taskText("b", "at: 2000-01-01T01:00:00Z"))
		r.start()
		pass(50 * time.Hour)
		r.stop()
		r.rows = make(map[string][]*storage.LedgerRow)
		pass(100 * 24 * time.Hour)
		r.start()
		pass(time.Hour)
		r.is(r.fired()[2:])
	})
}

// Posts that are stored although their answer is an error, as when the process
// or the disk fails in between, are found in the ledger and stay one.
func TestLostAnswers(t *testing.T) {
	bubble(t, func(r *rig) {
		r.cfg.Poll = time.Minute
		r.write("a", taskText("a", "schedule: '* * * * *'"))
		r.handler = &forgetful{world: r.world}
		r.start()
		pass(10*time.Minute + 30*time.Second)
		if rows := r.ledger("a"); len(rows) != 10 || r.repeat != 0 {
			t.Errorf("%d repeats, ledger %v; want 10 instants, each posted once", r.repeat, rows)
		}
	})
}

// A forgetful handler stores a message and says that it did not, the first time.
type forgetful struct {
	*world
	told sync.Map
}

func (f *forgetful) Post(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) error {
	err := f.world.Post(ctx, to, m)
	if _, again := f.told.LoadOrStore(m.ID, true); err == nil && !again {
		return errors.New("no answer")
	}
	return err
}

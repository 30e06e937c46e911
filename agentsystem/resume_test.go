package agentsystem_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
)

// A run that six processes died of, the last three times after a control, ends with
// exactly one notice, and the next message runs (RN-06).
func TestInterruptedThreeTimes(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.line = platforms[0].line
		r.mind.hold("poison", time.Hour)
		r.start()
		r.say("poison")
		if deaths := r.dieOf("poison"); deaths != 6 {
			t.Errorf("the process died %d times, want 6", deaths)
		}
		after(time.Minute)
		notice := "I was interrupted several times while working on this and gave up."
		r.wants(notice)
		if got := r.receipt("poison").Run; got.State != claybot.RunFailed || got.Error.Code != "interrupted" {
			t.Errorf("the run: %+v", got)
		}
		r.crash()
		r.start()
		r.say("next")
		after(time.Minute)
		r.wants(notice, "re: next")
		r.checkEvents(ann)
	})
}

// A new record is progress: a long run may survive many crashes.
func TestProgressAllowsMoreAttempts(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.line = platforms[0].line
		r.mind.plan("long", use("work"), use("look"), use("work"), use("look"), use("work"), use("look"), llmtest.Say("end"))
		r.mind.before = func(ctx context.Context, _ llm.Request) error { return rest(ctx, time.Minute) }
		r.start()
		r.say("long")
		for range 6 {
			after(90 * time.Second) // one model call and a half
			r.crash()
			r.start()
		}
		after(30 * time.Minute) // the process died with the run alone, so the run waits for a control first
		r.wants("end")
		r.checkEvents(ann)
	})
}

// An orderly shutdown cuts what does not end within the grace; that counts as
// no attempt, and the same run goes on.
func TestShutdownIsNoAttempt(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.grace = 10 * time.Second
		r.mind.hold("long", time.Minute)
		r.start()
		r.say("long")
		run := r.ranID("long")
		for range 5 {
			began := time.Now()
			r.restart()
			if took := time.Since(began); took < 10*time.Second || took > 15*time.Second {
				t.Errorf("the shutdown took %v", took)
			}
		}
		after(2 * time.Minute)
		r.wants("re: long")
		if got := r.receipt("long").Run; got.ID != run || got.State != claybot.RunSucceeded {
			t.Errorf("the run %+v, want %s", got, run)
		}
	})
}

// What ends within the grace is answered before the process ends.
func TestShutdownLetsRunsEnd(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.mind.hold("", 5*time.Second)
		r.start()
		r.say("a")
		synctest.Wait()
		r.shut()
		r.wants("re: a")
	})
}

// An engine that panics, or fails with an error of its own, fails the run with
// one sentence; the daemon goes on.
func TestEngineFaults(t *testing.T) {
	tests := []struct {
		name, code, sentence string
		engine               engineFunc
	}{
		{"panic", "panic", "Something went wrong", func(context.Context, *runs.Turn, func(claybot.Record, error) bool) {
			panic("a secret")
		}},
		{"panic after a record", "panic", "Something went wrong", func(_ context.Context, _ *runs.Turn, yield func(claybot.Record, error) bool) {
			yield(claybot.Record{Type: claybot.RecordAssistant, Step: 1, Text: "half"}, nil)
			panic("a secret")
		}},
		{"error without a code", "internal", "Something went wrong", func(_ context.Context, _ *runs.Turn, yield func(claybot.Record, error) bool) {
			yield(claybot.Record{}, errOdd)
		}},
		{"error with a code", "too_many_steps", "step limit", func(_ context.Context, _ *runs.Turn, yield func(claybot.Record, error) bool) {
			yield(claybot.Record{}, &runs.Error{Code: "too_many_steps", Text: "a secret"})
		}},
		{"deadline", "deadline", "longer than allowed", func(ctx context.Context, _ *runs.Turn, yield func(claybot.Record, error) bool) {
			<-ctx.Done()
			yield(claybot.Record{}, ctx.Err())
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.profile.Deadline = time.Minute
				r.engine = tt.engine
				r.start()
				r.say("a")
				after(time.Minute)
				run := r.receipt("a").Run
				if run.State != claybot.RunFailed || run.Error.Code != tt.code {
					t.Errorf("the run: %+v %+v", run, run.Error)
				}
				seen := r.chat.seen()
				if len(seen) != 1 || !strings.Contains(seen[0], tt.sentence) || strings.Contains(seen[0], string(run.ID)) || strings.Contains(seen[0], "secret") {
					t.Errorf("people see %q", seen)
				}
				r.checkEvents(ann)
				r.say("b")
				after(time.Minute)
				if got := r.chat.seen(); len(got) != 2 {
					t.Errorf("after the next message people see %q", got)
				}
			})
		})
	}
}

// No engine of that name: a sentence, not silence.
func TestNoEngine(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.profile.Engine = "plan"
		r.start()
		r.say("a")
		synctest.Wait()
		if run := r.receipt("a").Run; run.State != claybot.RunFailed || run.Error.Code != "no_engine" {
			t.Errorf("the run: %+v", run)
		}
	})
}

// onDisk lets the stores of the rig stand on a disk that may be full.
func (r *rig) onDisk() *disk {
	d := new(disk)
	r.decorate = func(s agentsystem.Stores) agentsystem.Stores {
		s.Inbox, s.Runs, s.Outbox = diskInbox{s.Inbox, d}, diskRuns{s.Runs, d}, diskOutbox{s.Outbox, d}
		return s
	}
	return d
}

// A full disk for half a minute, in the middle of everything: what was not
// stored was not confirmed, what was is answered once.
func TestFullDisk(t *testing.T) {
	for _, when := range []time.Duration{0, time.Second / 2, 3 * time.Second / 2, 5 * time.Second / 2, 7 * time.Second / 2} {
		t.Run(when.String(), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				disk := r.onDisk()
				r.line = platforms[0].line
				r.mind.hold("", time.Second)
				r.mind.plan("begin", use("pay", "look"), llmtest.Say("end"))
				r.start()
				if when == 0 {
					disk.full.Store(true)
				}
				err := r.system.Post(r.Context(), ann, msg("begin", "begin"))
				if when == 0 && err == nil {
					t.Error("a message was confirmed that is not stored")
				}
				after(when)
				disk.full.Store(true)
				after(30 * time.Second)
				if err := r.system.Post(r.Context(), ann, msg("lost", "lost")); err == nil {
					t.Error("a message was confirmed that is not stored")
				}
				disk.full.Store(false)
				if when == 0 {
					r.say("begin")
				}
				after(5 * time.Second)
				if run := r.receipt("begin").Run; run == nil || run.State != claybot.RunSucceeded {
					t.Errorf("5 s after the disk is back the run is %+v", run)
				}
				after(time.Minute)
				r.wants("end")
				r.checkEvents(ann)
				r.checkOnce()
				r.say("next")
				after(2 * time.Second)
				r.wants("end", "re: next")
			})
		})
	}
}

// A lease that cannot be renewed because the store does not answer is given
// back when it does: the agent is not stuck.
func TestLapsedLeaseRecovers(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		silent := new(disk)
		r.decorate = func(s agentsystem.Stores) agentsystem.Stores {
			s.Inbox = unrenewed{s.Inbox, silent}
			return s
		}
		r.line = platforms[0].line
		r.mind.hold("long", 30*time.Second)
		r.start()
		r.say("long")
		synctest.Wait()
		silent.full.Store(true)
		after(20 * time.Second)
		if n := len(r.mind.asked()); n != 1 {
			t.Errorf("%d model calls without a lease to trust", n)
		}
		silent.full.Store(false)
		after(time.Minute)
		r.wants("re: long")
		if n := len(r.mind.asked()); n != 2 {
			t.Errorf("%d model calls, want 2", n)
		}
	})
}

type unrenewed struct {
	agentsystem.Inbox
	*disk
}

func (u unrenewed) Renew(ctx context.Context, l storage.Lease, ttl time.Duration) (storage.Lease, string, error) {
	if err := u.err(); err != nil {
		return storage.Lease{}, "", err
	}
	return u.Inbox.Renew(ctx, l, ttl)
}

func (u unrenewed) Release(ctx context.Context, l storage.Lease, w storage.Wait, orderly bool) error {
	if err := u.err(); err != nil {
		return err
	}
	return u.Inbox.Release(ctx, l, w, orderly)
}

// A store that fails for good ends the system with an error.
func TestBrokenStoreEndsTheSystem(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.decorate = func(s agentsystem.Stores) agentsystem.Stores {
			s.Inbox = brokenInbox{s.Inbox}
			return s
		}
		r.start()
		after(10 * time.Second)
		select {
		case err := <-r.ended:
			if err == nil || !strings.Contains(err.Error(), "broken") {
				t.Errorf("Run: %v", err)
			}
			r.ended <- nil // for shut
		default:
			t.Error("Run goes on")
		}
	})
}

type brokenInbox struct{ agentsystem.Inbox }

func (brokenInbox) Acquire(context.Context, string, time.Duration, int, int) ([]storage.Acquired, time.Time, error) {
	return nil, time.Time{}, errBroken
}

// A run without memory sees only its own messages; later runs with memory do
// not see it (Aside).
func TestForget(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		r.say("a")
		synctest.Wait()
		r.mu.Lock()
		r.profile.Forget = true
		r.mu.Unlock()
		r.say("b")
		synctest.Wait()
		r.mu.Lock()
		r.profile.Forget = false
		r.mu.Unlock()
		r.say("c")
		synctest.Wait()
		for i, want := range []string{"a", "b", "a, re: a, c"} {
			var got []string
			for _, m := range r.mind.asked()[i].Messages {
				if m.Role == llm.RoleUser {
					got = append(got, said(m.Content))
				} else if m.Role == llm.RoleAssistant {
					got = append(got, m.Content)
				}
			}
			if text := strings.Join(got, ", "); text != want {
				t.Errorf("run %d saw %q, want %q", i, text, want)
			}
		}
	})
}

// A stateless message has a run of its own that sees nothing of earlier ones, and that later ones do not
// see, also where it waited behind others.
func TestStateless(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		r.say("a")
		synctest.Wait()
		alone := msg("b", "b")
		alone.Stateless = true
		r.post(ann, alone, msg("c", "c"))
		synctest.Wait()
		var saw []string
		for _, q := range r.mind.asked() {
			var got []string
			for _, m := range q.Messages {
				switch m.Role {
				case llm.RoleUser:
					got = append(got, said(m.Content))
				case llm.RoleAssistant:
					got = append(got, m.Content)
				}
			}
			saw = append(saw, strings.Join(got, ", "))
		}
		if want := []string{"a", "b", "a, re: a, c"}; !slices.Equal(saw, want) {
			t.Errorf("the runs saw %q, want %q", saw, want)
		}
	})
}

// Texts on the way are messages of their own where the profile asks for that,
// each once.
func TestProgressTexts(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.line = platforms[0].line
		r.profile.Progress = true
		on := use("look")
		on.Text = "I look it up."
		r.mind.plan("a", on, use("work"), llmtest.Say("end"))
		r.bench.work = restALittle
		r.start()
		r.say("a")
		after(500 * time.Millisecond)
		r.wants("I look it up.")
		r.crash()
		r.start()
		after(time.Minute)
		r.wants("I look it up.", "end")
	})
}

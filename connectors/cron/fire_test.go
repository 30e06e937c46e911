package cron_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
)

// Bubbles begin at midnight UTC of 2000-01-01, a Saturday.

func succeed(claybot.AgentMessage) (claybot.RunState, string) { return claybot.RunSucceeded, "" }

// pass lets time pass and waits until all is quiet.
func pass(d time.Duration) {
	told.Lock()
	told.Unlock() //nolint:staticcheck // see there
	time.Sleep(d)
	synctest.Wait()
}

// bubble runs a test in a bubble and stops its Cron at the end.
func bubble(t *testing.T, test func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.ends = succeed
		r.stop = func() {}
		test(r)
		r.stop()
	})
}

func TestFiresInTime(t *testing.T) {
	bubble(t, func(r *rig) {
		r.write("five", taskText("five", "name: Five", "schedule: '*/5 * * * *'"))
		r.start()
		pass(11 * time.Minute)
		r.is(r.fired(), "2000-01-01T00:05:00Z@00:05:00", "2000-01-01T00:10:00Z@00:10:00")
		p := r.posts[0]
		if want := (claybot.Descriptor{Type: claybot.AgentCron, UID: uid("five"), Name: "Five"}); p.to != want {
			t.Errorf("posted to %+v, want %+v", p.to, want)
		}
		if p.m.ID != claybot.MessageID("cron/"+uid("five")+"/2000-01-01T00:05:00Z") || p.m.Kind != claybot.KindCron || p.m.Type != claybot.MessageSystem || p.m.From.Name != "cron" {
			t.Errorf("posted %+v", p.m)
		}
		want := "Task \"Five\" (five), planned for 2000-01-01 00:05:00 UTC. Its folder is " + r.dir + "/five.\n\nDo five."
		if p.m.Text != want {
			t.Errorf("text %q, want %q", p.m.Text, want)
		}
	})
}

// A task that is due 5 s after its creation fires in time, as does one whose
// file appears while cron runs.
func TestSoonAfterCreation(t *testing.T) {
	bubble(t, func(r *rig) {
		pass(55 * time.Second)
		r.write("a", taskText("a", "schedule: '* * * * *'"))
		r.start()
		pass(57 * time.Second)
		r.write("b", taskText("b", "schedule: '* * * * *'"))
		pass(10 * time.Second)
		r.is(r.ledger("a"), "2000-01-01T00:01:00Z SUCCEEDED", "2000-01-01T00:02:00Z SUCCEEDED")
		r.is(r.ledger("b"), "2000-01-01T00:02:00Z SUCCEEDED")
	})
}

func TestEdits(t *testing.T) {
	bubble(t, func(r *rig) {
		r.start()
		pass(time.Second)
		r.write("a", taskText("a", "schedule: '* * * * *'"))
		pass(61 * time.Second)
		r.write("a", taskText("a", "schedule: '*/10 * * * *'"))
		pass(10 * time.Minute)
		r.write("a", taskText("a", "schedule: '*/10 * * * *'", "enabled: false"))
		pass(time.Hour)
		r.write("a", taskText("a", "schedule: '*/10 * * * *'", "enabled: true"))
		pass(10 * time.Minute)
		r.is(r.ledger("a"), "2000-01-01T00:01:00Z SUCCEEDED", "2000-01-01T00:10:00Z SUCCEEDED", "2000-01-01T01:20:00Z SUCCEEDED")
		r.is(r.fired(), "2000-01-01T00:01:00Z@00:01:00", "2000-01-01T00:10:00Z@00:10:00", "2000-01-01T01:20:00Z@01:20:00")
	})
}

// A disabled task that is enabled goes on with the next instant, also when it
// was disabled and enabled while nothing ran.
func TestEnabledWhileDown(t *testing.T) {
	bubble(t, func(r *rig) {
		off := taskText("a", "schedule: '0 * * * *'", "misfire: run_once", "enabled: false")
		r.write("a", off)
		r.cfg.Poll = 5 * time.Minute
		r.start()
		pass(90 * time.Minute)
		r.stop()
		r.write("a", strings.Replace(off, "false", "true", 1))
		pass(time.Hour)
		r.start()
		pass(time.Hour)
		r.is(r.ledger("a"), "2000-01-01T03:00:00Z SUCCEEDED")
	})
}

func TestEvery(t *testing.T) {
	bubble(t, func(r *rig) {
		pass(7 * time.Second)
		r.write("a", taskText("a", "every: 90s"))
		r.start()
		pass(4 * time.Minute)
		r.stop()
		r.start() // counts on from the same moment
		pass(time.Minute)
		r.is(r.ledger("a"), "2000-01-01T00:01:37Z SUCCEEDED", "2000-01-01T00:03:07Z SUCCEEDED", "2000-01-01T00:04:37Z SUCCEEDED")
	})
}

// What is missed while nothing runs, by every rule.
func TestMisfires(t *testing.T) {
	for _, c := range []struct {
		name, rule, times string
		down              time.Duration // from 00:30
		ledger            []string
		text              string
	}{
		{"skip", "misfire: skip", "schedule: '0 * * * *'", 3 * time.Hour, []string{"2000-01-01T03:00:00Z skipped missed (3)", "2000-01-01T04:00:00Z SUCCEEDED"}, "Since the last run: missed 03:00 (3 in all)."},
		{"skip is usual", "", "schedule: '0 * * * *'", time.Hour, []string{"2000-01-01T01:00:00Z skipped missed (1)", "2000-01-01T02:00:00Z SUCCEEDED"}, "Since the last run: missed 01:00.\n"},
		{"run_once", "misfire: run_once", "schedule: '0 * * * *'", 3 * time.Hour, []string{"2000-01-01T03:00:00Z SUCCEEDED", "2000-01-01T04:00:00Z SUCCEEDED"}, "This run is late: missed 03:00, ran 03:30.\nIt stands for 2 missed runs before as well."},
		{"within, yes", "misfire: run_if_within 31m", "schedule: '0 * * * *'", time.Hour, []string{"2000-01-01T01:00:00Z SUCCEEDED", "2000-01-01T02:00:00Z SUCCEEDED"}, "missed 01:00, ran 01:30"},
		{"within, no", "misfire: run_if_within=29m", "schedule: '0 * * * *'", time.Hour, []string{"2000-01-01T01:00:00Z skipped missed (1)", "2000-01-01T02:00:00Z SUCCEEDED"}, "missed 01:00"},
		{"at is late", "", "at: 2000-01-01T01:00:00Z", 48 * time.Hour, []string{"2000-01-01T01:00:00Z SUCCEEDED"}, "missed 2000-01-01 01:00, ran 00:30"},
		{"at with skip", "misfire: skip", "at: 2000-01-01T01:00:00Z", time.Hour, []string{"2000-01-01T01:00:00Z skipped missed (1)"}, ""},
		{"not yet missed", "", "schedule: '0 * * * *'", 30*time.Minute + 50*time.Second, []string{"2000-01-01T01:00:00Z SUCCEEDED"}, "planned for 2000-01-01 01:00:00 UTC. Its"},
		{"seconds", "misfire: skip", "every: 600s", 25*time.Minute + 30*time.Second, []string{"2000-01-01T00:10:00Z SUCCEEDED", "2000-01-01T00:20:00Z SUCCEEDED", "2000-01-01T00:30:00Z SUCCEEDED", "2000-01-01T00:50:00Z skipped missed (2)"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.write("a", taskText("a", c.times, c.rule, "route: telegram/4711"))
				r.cfg.Poll = 5 * time.Minute
				r.start()
				pass(30*time.Minute + 100*time.Millisecond)
				before := len(r.posts)
				r.stop()
				pass(c.down)
				r.start()
				pass(100 * time.Millisecond)
				if !strings.HasPrefix(c.times, "every") {
					pass(50 * time.Minute)
				}
				r.is(r.ledger("a"), c.ledger...)
				if c.text != "" && (len(r.posts) == before || !strings.Contains(r.posts[before].m.Text, c.text)) {
					t.Errorf("posts %+v, want the text %q", r.posts[before:], c.text)
				}
			})
		})
	}
}

// The folders of many tasks whose runs ended while claybot was down are put aside
// together.
func TestManyEndedWhileDown(t *testing.T) {
	const n = 120
	bubble(t, func(r *rig) {
		r.ends = nil
		for i := range n {
			id := fmt.Sprintf("x%03d", i)
			r.write(id, taskText(id, "at: 2000-01-01T00:01:00Z", "once: true"))
		}
		r.start()
		pass(2 * time.Minute)
		r.stop()
		r.mu.Lock()
		for _, rows := range r.rows {
			rows[0].State, rows[0].Ended = string(claybot.RunSucceeded), claybot.Now()
		}
		was := r.marked
		r.mu.Unlock()
		r.start()
		pass(time.Second)
		done, err := filepath.Glob(filepath.Join(r.dir, ".done", "x*"))
		if left := r.slugs(); err != nil || len(done) != n || len(left) != 0 {
			t.Errorf("%d folders are done, %d are left, %v, want %d done", len(done), len(left), err, n)
		}
		if wrote := r.marked - was; wrote > n/5 {
			t.Errorf("the facts were written %d times", wrote)
		}
	})
}

// A year of missed instants is one run, and is told quickly.
func TestLongDowntime(t *testing.T) {
	bubble(t, func(r *rig) {
		r.write("a", taskText("a", "schedule: '*/2 * * * *'", "misfire: run_once"))
		r.start()
		pass(time.Second)
		r.stop()
		pass(365*24*time.Hour + 30*time.Minute + 90*time.Second)
		r.start()
		pass(time.Second)
		r.is(r.ledger("a"), "2000-12-31T00:30:00Z SUCCEEDED")
		want := "This run is late: missed 00:30, ran 00:31.\nIt stands for more than 999 missed runs before as well.\n"
		if len(r.posts) != 1 || !strings.Contains(r.posts[0].m.Text, want) {
			t.Errorf("posts %+v, want the text %q", r.posts, want)
		}
	})
}

// A slowPoster takes a second for each post.
type slowPoster struct {
	*world
	mu      sync.Mutex
	posting map[string]int // by agent
	most    int            // to one agent at once
	all     int            // at once
	now     int
}

func (s *slowPoster) Post(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) error {
	s.add(to, 1)
	defer s.add(to, -1)
	time.Sleep(time.Second)
	return s.world.Post(ctx, to, m)
}

func (s *slowPoster) add(to claybot.Descriptor, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.posting[to.Key()] += n
	s.now += n
	s.most, s.all = max(s.most, s.posting[to.Key()]), max(s.all, s.now)
}

// Messages to one agent are posted one after another, those to several at once.
func TestOneAtATime(t *testing.T) {
	bubble(t, func(r *rig) {
		r.agents[claybot.AgentID(uid("someone"))] = claybot.User("telegram", "7", "8")
		for i := range 4 {
			same, own := fmt.Sprintf("same%d", i), fmt.Sprintf("own%d", i)
			r.write(same, taskText(same, "schedule: '* * * * *'", "agent: "+uid("someone")))
			r.write(own, taskText(own, "schedule: '* * * * *'"))
		}
		s := &slowPoster{world: r.world, posting: make(map[string]int)}
		r.handler = s
		r.start()
		pass(70 * time.Second)
		if len(r.posts) != 8 || s.most != 1 || s.all < 4 {
			t.Errorf("%d posts, %d to one agent at once, %d in all", len(r.posts), s.most, s.all)
		}
	})
}

// A last run that is not over keeps the task from running, however many
// instants pass, but not one that only waits for more than a day.
func TestOverlap(t *testing.T) {
	bubble(t, func(r *rig) {
		r.ends = nil
		r.write("a", taskText("a", "schedule: '*/30 * * * *'"))
		r.cfg.Poll = 5 * time.Minute
		r.start()
		pass(30*time.Minute + time.Second)
		pass(20 * time.Hour)
		rows := r.ledger("a")
		if len(rows) != 41 || rows[0] != "2000-01-01T00:30:00Z waiting" || rows[40] != "2000-01-01T20:30:00Z skipped overlap" {
			t.Fatalf("ledger %v", rows)
		}
		r.mu.Lock()
		r.rows[uid("a")][0].State = "AWAITING"
		r.mu.Unlock()
		pass(4 * time.Hour)
		if len(r.posts) != 2 || r.posts[1].m.Firing.Instant != "2000-01-02T00:30:00Z" {
			t.Errorf("fired %v, want again after a day", r.fired())
		}
	})
}

// A firing that is skipped because the agent of an earlier one cannot be used says so.
func TestOverlapWithAnUnusableAgent(t *testing.T) {
	bubble(t, func(r *rig) {
		r.ends = nil
		r.write("a", taskText("a", "schedule: '*/30 * * * *'"))
		r.cfg.Unusable = func(d claybot.Descriptor) bool {
			return d.Key() == claybot.Descriptor{Type: claybot.AgentCron, UID: uid("a")}.Key()
		}
		r.start()
		pass(time.Hour + time.Second)
		if rows := r.ledger("a"); len(rows) != 2 || rows[1] != "2000-01-01T01:00:00Z skipped agent cannot be used" {
			t.Fatalf("ledger %v", rows)
		}
	})
}

func TestRetries(t *testing.T) {
	bubble(t, func(r *rig) {
		r.ends = nil
		r.write("a", taskText("a", "schedule: '0 * * * *'", "retries: 2"))
		r.cfg.Poll = 5 * time.Minute
		r.start()
		pass(time.Hour)
		pass(time.Second)
		r.end("a", claybot.RunFailed) // 01:00:01
		pass(40 * time.Second)
		r.end("a", claybot.RunFailed) // 01:00:41
		pass(5 * time.Second)
		r.stop()
		pass(5 * time.Second)
		r.start() // goes on with the third attempt
		pass(5 * time.Minute)
		r.is(r.fired(), "2000-01-01T01:00:00Z@01:00:00", "2000-01-01T01:00:00Z@01:00:31", "2000-01-01T01:00:00Z@01:01:41")
		r.end("a", claybot.RunFailed)
		pass(50 * time.Minute)
		if len(r.posts) != 3 {
			t.Errorf("fired %v after the last attempt", r.fired())
		}
		for i, want := range []claybot.Firing{{Attempt: 1, Quiet: true}, {Attempt: 2, Quiet: true}, {Attempt: 3}} {
			if f := r.posts[i].m.Firing; f.Attempt != want.Attempt || f.Quiet != want.Quiet {
				t.Errorf("attempt %d is %+v, want %+v", i+1, f, want)
			}
		}
	})
}

// Failures are told at the 1st, the 3rd, and then once a day, and the first
// success says that it works again.
func TestToldFailures(t *testing.T) {
	bubble(t, func(r *rig) {
		r.ends = func(claybot.AgentMessage) (claybot.RunState, string) { return claybot.RunFailed, "" }
		r.write("a", taskText("a", "schedule: '0 */4 * * *'"))
		r.cfg.Poll = 5 * time.Minute
		r.start()
		pass(49 * time.Hour)
		r.mu.Lock()
		r.ends = succeed
		r.mu.Unlock()
		pass(8 * time.Hour)
		var told, back []string
		for _, p := range r.posts {
			when := p.at.UTC().Format("02 15")
			if !p.m.Firing.Quiet {
				told = append(told, when)
			}
			if p.m.Firing.Recovered {
				back = append(back, when)
			}
		}
		r.is(told, "01 04", "01 12", "02 00", "03 00", "03 08")
		r.is(back, "01 08", "01 12", "01 16", "01 20", "02 00", "02 04", "02 08", "02 12", "02 16", "02 20", "03 00", "03 04")
	})
}

func TestOnce(t *testing.T) {
	for _, c := range []struct {
		name  string
		lines []string
		ends  []claybot.RunState
		down  bool // the end comes while nothing runs
	}{
		{"success", []string{"once: true"}, []claybot.RunState{claybot.RunSucceeded}, false},
		{"failure", []string{"deleteAfterRun: true"}, []claybot.RunState{claybot.RunFailed}, false},
		{"canceled", []string{"delete_after_run: yes"}, []claybot.RunState{claybot.RunCanceled}, false},
		{"ended while down", []string{"once: true"}, []claybot.RunState{claybot.RunSucceeded}, true},
		{"retries", []string{"once: true", "retries: 1"}, []claybot.RunState{claybot.RunFailed, claybot.RunFailed}, false},
		{"retries while down", []string{"once: true", "retries: 1"}, []claybot.RunState{claybot.RunFailed, claybot.RunSucceeded}, true},
	} {
		for _, times := range []string{"at: 2000-01-01T00:10:00Z", "schedule: '*/10 * * * *'"} {
			t.Run(c.name+" "+times[:2], func(t *testing.T) {
				bubble(t, func(r *rig) {
					r.ends = nil
					r.write("a", taskText("a", append(c.lines, times)...))
					r.cfg.Poll = time.Minute
					r.start()
					pass(10*time.Minute + time.Second)
					for i, state := range c.ends {
						if len(r.posts) != i+1 || !r.exists("a") {
							t.Fatalf("before end %d: %d posts, folder there: %v", i+1, len(r.posts), r.exists("a"))
						}
						if c.down {
							r.stop()
						}
						r.end("a", state)
						if c.down {
							r.start()
						}
						pass(time.Minute)
					}
					pass(time.Hour)
					if r.exists("a") || len(r.posts) != len(c.ends) {
						t.Errorf("folder there: %v; fired %v", r.exists("a"), r.fired())
					}
				})
			})
		}
	}
}

// Posts that fail are tried again, and given up by the rule for missed ones.
func TestPostFails(t *testing.T) {
	bubble(t, func(r *rig) {
		r.refuse = errors.New("disk is full")
		r.write("a", taskText("a", "schedule: '0 * * * *'"))
		r.cfg.Poll = 10 * time.Second
		r.start()
		pass(time.Hour + 20*time.Second)
		if h := r.cron.Health(); h.State != "failing" || !strings.Contains(h.Err, "disk is full") {
			t.Errorf("health %+v", h)
		}
		r.mu.Lock()
		r.refuse = nil
		r.mu.Unlock()
		pass(20 * time.Second)
		r.is(r.ledger("a"), "2000-01-01T01:00:00Z SUCCEEDED")
		if h := r.cron.Health(); h.State != "live" || h.Err != "" {
			t.Errorf("health %+v", h)
		}
		r.mu.Lock()
		r.refuse = errors.New("disk is full")
		r.mu.Unlock()
		pass(time.Hour + 5*time.Minute)
		r.is(r.ledger("a"), "2000-01-01T01:00:00Z SUCCEEDED", "2000-01-01T02:00:00Z skipped missed (1)")
	})
}

// The folder of a task that has run once goes aside, also when a person edits the file as the run ends; the
// wait for that end does not read what all tasks did.
func TestOnceWithAnEdit(t *testing.T) {
	r := newRig(t)
	synctest.Test(t, func(t *testing.T) {
		r.write("a", taskText("a", "schedule: '* * * * *'", "once: true"))
		r.start()
		defer func() { r.stop() }()
		time.Sleep(90 * time.Second)
		before := r.sweeps.Load()
		time.Sleep(time.Minute + 500*time.Millisecond)
		if n := r.sweeps.Load() - before; n != 0 {
			t.Errorf("%d reads of all tasks", n)
		}
		r.write("a", taskText("a", "schedule: '* * * * *'", "once: true")+"More.\n")
		r.end("a", claybot.RunSucceeded)
		time.Sleep(10 * time.Second)
		if r.exists("a/TASK.md") || len(r.fired()) != 1 {
			t.Errorf("still there; fired %v", r.fired())
		}
	})
}

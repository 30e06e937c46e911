package cron_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
)

// fromEnv is a number from the environment, or the usual one.
func fromEnv(t *testing.T, name string, usual int) int {
	v := os.Getenv(name)
	if v == "" {
		return usual
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		t.Fatalf("%s = %q", name, v)
	}
	return n
}

// TestRestarts lets minute tasks run for days with restarts at random moments:
// each instant runs 0 or 1 times as the task's rule says, never twice, and none
// is lost without a trace. The whole bar is CLAYBOT_CRON_DAYS=30
// CLAYBOT_CRON_TASKS=1000.
func TestRestarts(t *testing.T) {
	days, tasks := fromEnv(t, "CLAYBOT_CRON_DAYS", 1), fromEnv(t, "CLAYBOT_CRON_TASKS", 20)
	synctest.Test(t, func(t *testing.T) {
		b := &bar{rig: newRig(t), rules: []string{"skip", "run_once", "run_if_within 10m"}}
		b.days, b.tasks = days, tasks
		b.run()
	})
}

// A bar counts what each task did in each minute.
type bar struct {
	*rig
	days, tasks int
	rules       []string
	runs        map[string][]uint8 // by uid: runs of each minute
	doubles     int
	late        int // posts of missed instants that do not say so
	restarts    int
	ups         []span // when a Cron was running
}

// A span is from and to in seconds since the start.
type span struct{ from, to float64 }

func (b *bar) run() {
	begin := time.Now()
	b.ends, b.keep, b.runs = succeed, 8, make(map[string][]uint8)
	b.cfg.Poll = time.Hour
	minutes := b.days*24*60 + 2
	for i := range b.all() {
		b.runs[uid(b.id(i))] = make([]uint8, minutes)
		b.write(b.id(i), taskText(b.id(i), fmt.Sprintf("schedule: '*/%d * * * *'", b.minutes(i)), "misfire: "+b.rules[i%len(b.rules)]))
	}
	b.posted = func(m claybot.AgentMessage) {
		at := m.Firing.Planned.Time()
		n := &b.runs[m.Firing.Task][int(at.Sub(begin)/time.Minute)]
		if *n++; *n > 1 {
			b.doubles++
		}
		if time.Since(at) > time.Minute && !strings.Contains(m.Text, "This run is late: missed ") {
			b.late++
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	end := begin.Add(time.Duration(b.days) * 24 * time.Hour)
	for time.Now().Before(end) {
		from := time.Since(begin).Seconds()
		b.start()
		up := time.Duration(random.Int64N(int64(2 * time.Hour)))
		if random.IntN(4) == 0 { // in the midst of the posts of a minute
			up = time.Until(time.Now().Add(up).Truncate(time.Minute))
		}
		time.Sleep(min(max(up, 0), time.Until(end)))
		b.stop()
		b.ups = append(b.ups, span{from, time.Since(begin).Seconds()})
		b.restarts++
		time.Sleep(time.Duration(random.Int64N(int64(20 * time.Minute))))
		if random.IntN(3) == 0 {
			time.Sleep(-time.Until(time.Now().Truncate(time.Minute).Add(-time.Minute)) / 2)
		}
	}
	b.check()
}

// all counts the minute tasks, and some that are due every half hour, so that
// what is missed is not on time at the next start.
func (b *bar) all() int { return b.tasks + b.tasks/10 + len(b.rules) }

func (b *bar) id(i int) string { return fmt.Sprintf("task%05d", i) }

func (b *bar) minutes(i int) int {
	if i < b.tasks {
		return 1
	}
	return 30
}

// check compares what ran with when a Cron was there to run it.
func (b *bar) check() {
	total, wrong := 0, 0
	for i := range b.all() {
		rule, minutes := b.rules[i%len(b.rules)], b.minutes(i)
		for minute, n := range b.runs[uid(b.id(i))] {
			total += int(n)
			must, may := b.expect(float64(minute*60), float64(minutes*60), rule)
			if minute%minutes != 0 || minute == 0 {
				must, may = false, false
			}
			if must && n != 1 || !may && n != 0 {
				if wrong++; wrong < 5 {
					b.t.Errorf("task %d (%s), minute %d: %d runs, must %v, may %v", i, rule, minute, n, must, may)
				}
			}
		}
	}
	if b.doubles != 0 || b.late != 0 || wrong != 0 {
		b.t.Errorf("%d instants ran twice, %d were silently late, %d against the rule", b.doubles, b.late, wrong)
	}
	b.t.Logf("%d tasks, %d days, %d restarts: %d runs, %d doubles, %d against the rule, %d posts that were known", b.tasks, b.days, b.restarts, total, b.doubles, wrong, b.repeat)
}

// expect says whether an instant at (seconds since the start) of a task with a
// period must run and may run.
func (b *bar) expect(at, period float64, rule string) (must, may bool) {
	const edge = 0.001 // starts and ends in the same moment
	for _, u := range b.ups {
		late := u.from - at
		switch {
		case u.to < at-edge:
			continue
		case u.to <= at+edge || u.to-u.from < edge:
			may = true // ended at the instant, or at once: perhaps
			continue
		case late <= 0:
			return true, true
		case late >= period: // a newer instant was missed as well
			return false, may
		case late <= 60 || rule == "run_once" || rule == "run_if_within 10m" && late <= 600:
			return !may, true
		}
		return false, may
	}
	return false, true // nothing ran after it
}

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

// The load of scheduled tasks.
const (
	onceEvery = 300 * time.Millisecond // between two new tasks for one instant
	handEvery = 200 * time.Millisecond // between two tries to run a task by hand
	allRows   = 1 << 20                // of a ledger
)

// A timetable is the scheduled tasks of the crash rig: files that an operator
// writes and changes while the daemon lives and dies.
type timetable struct {
	dir    string // of a daemon, whose console is asked
	files  taskFiles
	tasks  []*timed
	byHand *timed // one of them
}

// A timed task is one TASK.md.
type timed struct {
	job
	uid  string
	when string // the line of its front matter that says when
	rest string // further lines of its front matter
	// every is the distance of its instants; 0 for one that has none, or one.
	every time.Duration
	once  bool     // it has one instant, which must run, however late
	keys  []string // runs by hand that the daemon confirmed
}

// The tasks that are there from the beginning: two that recur, with different
// rules for missed instants, and one that is only run by hand.
func newTimetable(ctx context.Context, dir string, files taskFiles) (*timetable, error) {
	t := &timetable{dir: dir, files: files}
	for _, x := range []timed{
		{job: job{name: "tick"}, when: "every: 1s", every: time.Second, rest: "misfire: skip\n"},
		{job: job{name: "tock"}, when: "every: 2s", every: 2 * time.Second, rest: "misfire: run_once\n"},
		{job: job{name: "byhand"}, when: `schedule: "0 0 29 2 *"`},
	} {
		x.uid = string(claybot.NewID())
		t.tasks = append(t.tasks, &x)
		if err := t.write(ctx, &x, x.rest); err != nil {
			return nil, err
		}
		t.byHand = &x // the last one
	}
	return t, nil
}

// write makes or replaces the file of a task.
func (t *timetable) write(ctx context.Context, x *timed, rest string) error {
	text := fmt.Sprintf("---\nuid: %s\nname: %s\n%s\n%s---\n%s\n", x.uid, x.name, x.when, rest, x.task())
	if err := t.files.put(ctx, x.name, text); err != nil {
		return fmt.Errorf("write the task %s: %w", x.name, err)
	}
	return nil
}

// load makes tasks for one instant, and runs one by hand, until ctx is done.
func (t *timetable) load(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { t.hand(ctx) })
	defer wg.Wait()
	for n := 1; pause(ctx, onceEvery); n++ {
		x := &timed{
			job: job{fmt.Sprint("once", n), n%4 == 0}, uid: string(claybot.NewID()), once: true,
			when: "at: " + time.Now().Add(time.Second).UTC().Format(time.RFC3339), rest: "once: true\n",
		}
		if err := t.write(ctx, x, x.rest); err != nil {
			if ctx.Err() != nil {
				return nil // it may be there, and nothing counts on it
			}
			return err
		}
		t.tasks = append(t.tasks, x)
	}
	return nil
}

// hand runs a task by hand. A call whose answer was lost in a kill is repeated
// with the same key until the daemon confirms it.
func (t *timetable) hand(ctx context.Context) {
	x := t.byHand
	for n := 1; pause(ctx, handEvery); {
		c, err := openConsole(t.dir)
		if err != nil {
			continue // it is dead at the moment
		}
		key := fmt.Sprint("hand", n)
		if c.call(ctx, http.MethodPost, "/cron/"+x.name+"/run?key="+key, nil) == nil {
			x.keys = append(x.keys, key)
			n++
		}
		c.Close()
	}
}

// rest ends what recurs, and returns when the daemon knows.
func (t *timetable) rest(ctx context.Context, c *console) error {
	recurring := make(map[string]bool)
	for _, x := range t.tasks {
		if x.every > 0 {
			recurring[x.uid] = true
			if err := t.write(ctx, x, x.rest+"enabled: false\n"); err != nil {
				return err
			}
		}
	}
	for deadline := time.Now().Add(time.Minute); ; {
		var all struct {
			Tasks    []connectors.Task
			Problems []connectors.Problem
		}
		if err := c.call(ctx, http.MethodGet, "/cron", &all); err != nil {
			return err
		}
		live := slices.ContainsFunc(all.Tasks, func(x connectors.Task) bool { return recurring[x.UID] && x.Enabled })
		last := time.Now().After(deadline) || !pause(ctx, 50*time.Millisecond)
		switch {
		case !live && len(all.Problems) == 0: // a file that is just being moved away is one for a moment
			return nil
		case last && len(all.Problems) > 0:
			return fmt.Errorf("the daemon cannot read its tasks: %+v", all.Problems)
		case last:
			return errors.New("the daemon does not notice that tasks were switched off")
		}
	}
}

// open counts the tasks for one instant that are not over yet.
func (t *timetable) open(ctx context.Context) int {
	names, err := t.files.names(ctx)
	if err != nil {
		return -1
	}
	n := 0
	for _, name := range names {
		if strings.HasPrefix(name, "once") {
			n++
		}
	}
	return n
}

// A punctuality is what became of the instants of scheduled tasks.
type punctuality struct {
	tasks, fired, skipped, failed int
	byHand                        int // runs that the daemon confirmed
	doubled, unexplained          int
	stories                       []string
}

func (p *punctuality) broken() int { return p.doubled + p.unexplained }

func (p *punctuality) String() string {
	return fmt.Sprintf("%d tasks, fired %d (%d by hand), failed %d, skipped %d, doubled %d, unexplained %d",
		p.tasks, p.fired, p.byHand, p.failed, p.skipped, p.doubled, p.unexplained)
}

func (p *punctuality) story(count *int, format string, args ...any) {
	*count++
	if len(p.stories) < 20 {
		p.stories = append(p.stories, fmt.Sprintf(format, args...))
	}
}

// judge reads the ledger of every task.
func (t *timetable) judge(ctx context.Context, a *archive) (*punctuality, error) {
	p := &punctuality{tasks: len(t.tasks)}
	names, err := t.files.names(ctx)
	if err != nil {
		return nil, fmt.Errorf("the folder of the scheduled tasks: %w", err)
	}
	if !slices.Contains(names, t.byHand.name) {
		return nil, errors.New("a scheduled task is gone")
	}
	for _, x := range t.tasks {
		rows, err := a.db.Firings(ctx, x.uid, allRows)
		if err != nil {
			return nil, err
		}
		p.read(a, x, rows)
	}
	return p, nil
}

// read checks the rows of one task: each has an end, an instant runs once and
// is one that the task has.
func (p *punctuality) read(a *archive, x *timed, rows []storage.LedgerRow) {
	ran := make(map[string]int) // by instant
	var planned []time.Time
	for _, r := range rows {
		switch {
		case r.Open() || r.State != "skipped" && r.Run == "" || r.State == "skipped" && r.Reason == "":
			p.story(&p.unexplained, "%s: an instant has no end: %+v", x.name, r)
			continue
		case r.State == "skipped":
			p.skipped++
		default:
			p.fired++
			p.fate(x, r)
		}
		if ran[r.Instant]++; ran[r.Instant] > 1 {
			p.story(&p.doubled, "%s: %s stands twice in the ledger", x.name, r.Instant)
		}
		if !strings.HasPrefix(r.Instant, "manual/") {
			planned = append(planned, r.Planned.Time())
		}
		p.heard(a, x, r)
	}
	p.grid(x, planned)
	p.byHand += len(x.keys)
	for _, key := range x.keys {
		if ran["manual/"+key] == 0 {
			p.story(&p.unexplained, "%s: the run %s was confirmed and is not in the ledger", x.name, key)
		}
	}
}

// fate checks that a run ended as its task's prompt asked.
func (p *punctuality) fate(x *timed, r storage.LedgerRow) {
	code := ""
	if r.Error != nil {
		code = r.Error.Code
	}
	switch {
	case r.State == string(claybot.RunSucceeded) && !x.fails:
	case r.State == string(claybot.RunFailed) && (code == "interrupted" || x.fails && code == "model_refused"):
		p.failed++
	default:
		p.story(&p.unexplained, "%v: %s ended as %s %+v", x.job, r.Instant, r.State, r.Error)
	}
}

// heard checks that the instant reached one agent once, and none when it was
// skipped.
func (p *punctuality) heard(a *archive, x *timed, r storage.LedgerRow) {
	n := 0
	for _, times := range a.told[r.MessageID()] {
		n += times
	}
	switch {
	case n > 1 || n > 0 && r.Run == "":
		p.story(&p.doubled, "%s: %s stands %d times in histories, its row is %+v", x.name, r.MessageID(), n, r)
	case n == 0 && r.Run != "":
		p.story(&p.unexplained, "%s: run %s of %s has no record", x.name, r.Run, r.Instant)
	}
}

// grid checks that the instants are those the task has.
func (p *punctuality) grid(x *timed, planned []time.Time) {
	if x.once && len(planned) != 1 {
		count := &p.unexplained
		if len(planned) > 1 {
			count = &p.doubled
		}
		p.story(count, "%s has one instant (%s) and ran for %v", x.name, x.when, planned)
	}
	if x.every == 0 {
		return
	}
	slices.SortFunc(planned, time.Time.Compare)
	for i := 1; i < len(planned); i++ {
		if d := planned[i].Sub(planned[i-1]); d <= 0 || d%x.every != 0 {
			p.story(&p.doubled, "%s (%s) ran for %v and for %v", x.name, x.when, planned[i-1], planned[i])
		}
	}
}

// pause waits and reports whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool { return rest(ctx, d) == nil }

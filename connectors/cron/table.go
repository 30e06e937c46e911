package cron

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/schedule"
	"github.com/claybot/claybot/storage"
)

// A task is the scheduled state of a definition. The lock of the scheduler
// guards all fields but the definition behind def.
type task struct {
	slug string
	def  *definition
	fact fact // that it was planned with
	job  schedule.Job
	last time.Time // instants up to this one are settled

	gone  bool   // the task was removed
	retry *retry // a failed instant that is tried again
	// spent means that a task that runs once has been posted. After possible retries
	// its folder is moved to .done.
	spent bool
	// unsettled means that the end of its newest run is unknown here, because only the
	// member that ran it is notified.
	unsettled bool
}

// A retry is one more attempt at an instant that failed.
type retry struct {
	planned time.Time
	attempt int
	at      time.Time // not before
}

// decide is the decision of the task's plan at now. It is called with the lock held.
func (t *task) decide(now time.Time) decision {
	if t.spent {
		return decision{}
	}
	return t.def.plan.decide(t.last, now)
}

// A file is the last read state of a TASK.md.
type file struct {
	version int64
	at      time.Time   // when it was written
	facts   int64       // the version of its facts
	agreed  bool        // its facts are up to date
	def     *definition // nil: it cannot be used
	uid     string      // also of an invalid file, if known
	notes   []connectors.Problem
	waits   string // for this connector, which is not configured
}

func (f *file) problem(name string, line int, text string) {
	f.notes = append(f.notes, connectors.Problem{File: name, Line: line, Text: text})
}

// A table holds the tasks in memory, derived from the files and the ledger. The
// lock of the scheduler guards tasks, files, ended and over; the lock of the files
// guards the fields that only scan uses.
type table struct {
	cfg   *Config
	sched *schedule.Scheduler
	facts *facts
	start func(ctx context.Context, t *task) // handles a due task

	seen     <-chan struct{}  // closed: a file has changed since the last scan
	seenZone string           // of that scan
	tasks    map[string]*task // by uid
	files    map[string]file  // by slug
	ended    []ending         // not concluded yet
	over     []*task          // whose folders are to be moved to .done
	restored time.Time        // when the store was last restored: no instant up to then runs
}

// scan reads the files that have changed. rows are the newest scheduled runs of all
// tasks, if known. force updates the tasks even if no file has changed. The caller
// holds the lock of the files.
func (b *table) scan(ctx context.Context, rows map[string]storage.LedgerRow, force bool) error {
	changed := b.cfg.Tree.Changed() // before the files, so that none is missed
	entries, err := b.cfg.Tree.Entries(ctx, folder)
	if err != nil {
		return err
	}
	zone := b.zone()
	select {
	case <-changed: // with this very look
		changed = nil
	default:
		if !force && changed == b.seen && zone.String() == b.seenZone && !b.arrived() {
			return nil
		}
	}
	files, left, err := b.readFiles(ctx, entries, zone)
	twice := twins(files)
	if err == nil {
		err = b.facts.agree(ctx, files, twice)
	}
	isNew := func(f file) bool { return f.def != nil && b.tasks[f.def.uid] == nil } // only written with the files locked
	if err == nil && rows == nil && slices.ContainsFunc(slices.Collect(maps.Values(files)), isNew) {
		rows, err = b.cfg.Ledger.LastFirings(ctx)
	}
	if err == nil {
		err = b.adopt(ctx, files, left, twice, rows)
	}
	if err == nil {
		b.seen, b.seenZone = changed, zone.String()
	}
	return err
}

// arrived reports whether a connector has come for which a file waits.
func (b *table) arrived() bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(b.files)), func(f file) bool { return f.waits != "" && b.cfg.Known(f.waits) })
}

func (b *table) zone() *time.Location {
	if b.cfg.Zone != nil {
		if z := b.cfg.Zone(); z != nil {
			return z
		}
	}
	return time.UTC
}

// slugOf returns the folder of a task's file.
func slugOf(p string) string {
	slug, _, _ := strings.Cut(strings.TrimPrefix(p, folder+"/"), "/")
	return slug
}

// readFiles reads the files of the Tree. left are the folders with facts and without a
// TASK.md.
func (b *table) readFiles(ctx context.Context, entries []storage.TreeFile, zone *time.Location) (files map[string]file, left []string, err error) {
	facts := make(map[string]int64)
	var tasks []storage.TreeFile
	for _, e := range entries {
		switch {
		case inTask(e.Path, factsFile):
			facts[slugOf(e.Path)] = e.Version
		case inTask(e.Path, taskFile), path.Dir(e.Path) == folder && e.Err != nil:
			tasks = append(tasks, e)
		}
	}
	files, err = schedule.Reading[file]{
		Tree: b.cfg.Tree, Name: slugOf, Max: maxTask,
		Keep: func(old file, f storage.TreeFile) bool {
			return old.waits == "" && old.version == f.Version && old.facts == facts[slugOf(f.Path)] && (old.def == nil || old.def.zone == zone.String())
		},
		Parse: func(slug string, x storage.TreeFile) file {
			f := file{version: x.Version, at: x.At.Time(), facts: facts[slug]}
			b.parse(slug, &f, x, zone)
			return f
		},
	}.Read(ctx, tasks, b.files) // which is only written with the files locked
	for _, slug := range slices.Sorted(maps.Keys(facts)) {
		if _, is := files[slug]; !is {
			left = append(left, slug)
		}
	}
	return files, left, err
}

// parse parses the task of a file.
func (b *table) parse(slug string, f *file, x storage.TreeFile, zone *time.Location) {
	name := path.Join(slug, taskFile)
	switch {
	case path.Dir(x.Path) == folder:
		f.problem(slug, 0, "the folder cannot be used: "+schedule.Reason(x.Err))
		return
	case !schedule.ValidName(slug):
		f.problem(slug, 0, "the name of a task's folder has only a-z, 0-9, dots, - and _, and at most 64 of them")
		return
	case x.Err != nil:
		f.notes = []connectors.Problem{schedule.Problem(name, x.Err)}
		return
	}
	d, notes, err := readDefinition(string(x.Body), zone)
	if d.spec.Name == "" {
		d.spec.Name = slug
	}
	f.uid = d.uid
	for _, n := range notes {
		f.problem(name, n.Line, n.Text)
	}
	unknown := b.checkConnector(d)
	switch {
	case unknown != nil: // its output would reach no user
		f.waits = d.route.place.Connector
		f.problem(name, d.agentLine, unknown.Error())
	case err != nil:
		f.notes = append(f.notes, schedule.Problem(name, err))
	default:
		f.def = &d
	}
}

// checkConnector refuses a route over a connector that is not configured.
func (b *table) checkConnector(d definition) error {
	name := d.route.place.Connector
	if name == "" || b.cfg.Known == nil || b.cfg.Known(name) {
		return nil
	}
	return fmt.Errorf("route: no connector %.40q is configured", name)
}

// twins returns tasks with the same uid, each mapped to the other.
func twins(files map[string]file) map[string]string {
	owners, twice := make(map[string]string), make(map[string]string)
	for _, slug := range slices.Sorted(maps.Keys(files)) {
		d := files[slug].def
		if d == nil {
			continue
		}
		if other, ok := owners[d.uid]; ok {
			twice[slug], twice[other] = other, slug
		}
		owners[d.uid] = slug
	}
	return twice
}

// adopt updates the tasks in memory from the files.
func (b *table) adopt(ctx context.Context, files map[string]file, left []string, twice map[string]string, rows map[string]storage.LedgerRow) error {
	now := b.sched.Now()
	var problems []connectors.Problem
	here := make(map[string]bool)
	b.sched.Mu.Lock()
	for _, slug := range slices.Sorted(maps.Keys(files)) {
		f := files[slug]
		problems = append(problems, f.notes...)
		here[f.uid] = true
		if other, is := twice[slug]; is {
			problems = append(problems, connectors.Problem{File: path.Join(slug, taskFile), Text: fmt.Sprintf("uid: %s has the same; neither runs", path.Join(other, taskFile))})
		} else if f.def != nil {
			b.take(slug, f, rows, now)
		}
	}
	for uid, t := range b.tasks {
		if f := files[t.slug]; f.def == nil || f.def.uid != uid || twice[t.slug] != "" {
			t.gone = true
			b.plan(t)
			delete(b.tasks, uid)
		}
	}
	b.files = files
	b.sched.Mu.Unlock()
	b.sched.SetProblems(problems)
	if here[""] { // an unreadable file may belong to any task
		return nil
	}
	return b.facts.miss(ctx, here, left)
}

// take updates the task of one file. The caller holds the lock.
func (b *table) take(slug string, f file, rows map[string]storage.LedgerRow, now time.Time) {
	d, fc := *f.def, b.facts.known[f.def.uid]
	t := b.tasks[d.uid]
	if t != nil && t.def.text == d.text && t.slug == slug && t.def.timing == d.timing && fc == t.fact {
		return
	}
	d.plan.anchor = time.Unix(fc.Anchor, 0)
	restart := t == nil || t.fact.Epoch != fc.Epoch
	if t == nil {
		t = &task{last: time.Unix(fc.Since, 0)}
		t.job.Do = func(ctx context.Context) { b.start(ctx, t) }
		b.tasks[d.uid] = t
		if row, ok := rows[d.uid]; ok {
			t.last = schedule.Later(t.last, row.Planned.Time())
			defer b.resume(t, row)
		}
		t.last = since(t.last, now)
	} else if restart {
		t.retry, t.spent = nil, false
		t.last = schedule.Later(t.last, time.Unix(fc.Since, 0))
		if fc.Since == 0 { // another single instant
			t.last = time.Unix(0, 0)
		}
	}
	if restart {
		t.job.Retry()
	}
	t.slug, t.def, t.fact = slug, &d, fc
	b.plan(t)
}

// plan requeues a task after a change. The caller holds the lock.
func (b *table) plan(t *task) {
	var due time.Time
	if !t.gone && t.def.enabled && b.facts.known[t.def.uid].Paused == "" {
		if !t.spent {
			due = t.def.plan.due(t.last)
		}
		if t.retry != nil && (due.IsZero() || t.retry.at.Before(due)) {
			due = t.retry.at
		}
	}
	b.sched.Plan(&t.job, due)
}

// done replans a task after a run was posted or skipped: instants up to last are
// settled. On an error nothing happened and the instant is retried soon, unless the
// misfire rule skips it by then.
func (b *table) done(ctx context.Context, t *task, last time.Time, err error) {
	b.sched.Mu.Lock()
	defer b.sched.Mu.Unlock()
	if len(b.ended) > 0 {
		b.sched.Kick()
	}
	b.sched.Done(ctx, &t.job, err, "task", t.slug)
	if err == nil {
		if t.retry != nil && !b.sched.Now().Before(t.retry.at) || last.After(t.last) {
			t.retry = nil
		}
		if last.After(t.last) {
			t.last, t.unsettled = last, false
		}
	}
	b.plan(t)
}

// turnBack handles a clock that was set back by more than maxSetBack.
func (b *table) turnBack(now time.Time) {
	b.sched.Mu.Lock()
	defer b.sched.Mu.Unlock()
	for _, t := range b.tasks {
		if s := since(t.last, now); !s.Equal(t.last) {
			t.last, t.retry = s, nil
			t.job.Retry()
			b.plan(t)
		}
	}
}

// find returns a task by its slug or uid.
func (b *table) find(ref string) (*task, error) {
	problems := b.sched.Problems()
	b.sched.Mu.Lock()
	defer b.sched.Mu.Unlock()
	if t := b.tasks[ref]; t != nil {
		return t, nil
	}
	for _, t := range b.tasks {
		if t.slug == ref {
			return t, nil
		}
	}
	for _, p := range problems {
		if name, _, _ := strings.Cut(p.File, "/"); name == ref {
			return nil, fmt.Errorf("task %.80q cannot be used: %s: %s", ref, p.File, p.Text)
		}
	}
	return nil, fmt.Errorf("there is no task %.80q", ref)
}

// checkText validates the text of a file before it is written. Its errors have no
// line numbers.
func (b *table) checkText(ctx context.Context, text string) (definition, error) {
	if len(text) > maxTask {
		return definition{}, fmt.Errorf("the task is longer than %d KiB", maxTask>>10)
	}
	d, _, err := readDefinition(text, b.zone())
	var line *configs.LineError
	if errors.As(err, &line) {
		return d, errors.New(line.Text)
	}
	if err := b.checkConnector(d); err != nil {
		return d, err
	}
	for i, id := range []claybot.AgentID{d.agent, d.route.agent} {
		if id == "" {
			continue
		}
		_, err := b.cfg.Index.IndexedDescriptor(ctx, id)
		if errors.Is(err, storage.ErrNotFound) {
			return d, fmt.Errorf("%s: there is no agent %s", []string{"agent", "route"}[i], id)
		}
		if err != nil {
			return d, fmt.Errorf("look for agent %s: %w", id, err)
		}
	}
	return d, nil
}

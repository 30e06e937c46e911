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

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/schedule"
	"github.com/claybot/claybot/storage"
)

// upkeepTime is how often the facts are brought up to date: the ledger forgets old
// rows, and then only the facts say what is done with.
const upkeepTime = 24 * time.Hour

// A file is a TASK.md as it was last read.
type file struct {
	version int64
	at      time.Time   // when it was written
	facts   int64       // the version of its facts
	agreed  bool        // the facts are up to date with it
	def     *definition // nil: it cannot be used
	uid     string      // also of a file that cannot be used, where it is known
	notes   []connectors.Problem
}

// scan reads the files that have changed. rows are the newest firings of all
// tasks, where they are known; force does all that follows also when no file has
// changed. It is called with edits held.
func (c *Cron) scan(ctx context.Context, rows map[string]storage.LedgerRow, force bool) error {
	changed := c.cfg.Tree.Changed() // before the files, so that none is missed
	entries, err := c.cfg.Tree.Entries(ctx, folder)
	if err != nil {
		return err
	}
	zone := c.zone()
	select {
	case <-changed: // with this very look
		changed = nil
	default:
		if !force && changed == c.seen && zone.String() == c.seenZone {
			return nil
		}
	}
	files, left, err := c.readFiles(ctx, entries, zone)
	twice := twins(files)
	if err == nil {
		err = c.agree(ctx, files, twice)
	}
	var last map[string]storage.LedgerRow
	if err == nil {
		last, err = c.lastRows(ctx, files, rows)
	}
	if err == nil {
		err = c.adopt(ctx, files, left, twice, last)
	}
	if err == nil {
		c.seen, c.seenZone = changed, zone.String()
	}
	return err
}

// readFiles makes files of what the Tree has. left are the folders that have facts and
// no TASK.md.
func (c *Cron) readFiles(ctx context.Context, entries []storage.TreeFile, zone *time.Location) (files map[string]file, left []string, err error) {
	files = make(map[string]file)
	facts := make(map[string]int64)
	for _, e := range entries {
		if inTask(e.Path, factsFile) {
			facts[path.Base(path.Dir(e.Path))] = e.Version
		}
	}
	var paths []string
	for _, e := range entries {
		slug, _, inside := strings.Cut(strings.TrimPrefix(e.Path, folder+"/"), "/")
		old, known := c.files[slug] // only written with edits held
		f := file{version: e.Version, at: e.At.Time()}
		switch {
		case inside && !inTask(e.Path, taskFile), !inside && e.Err == nil:
			continue
		case !inside:
			f.problem(slug, 0, "the folder cannot be used: "+schedule.Reason(e.Err))
		case !schedule.ValidName(slug):
			f.problem(slug, 0, "the name of a task's folder has only a-z, 0-9, dots, - and _, and at most 64 of them")
		case e.Err != nil:
			f.fault(slug, e.Err)
		case known && old.version == e.Version && old.facts == facts[slug] && (old.def == nil || old.def.zone == zone.String()):
			f = old
		default:
			paths = append(paths, e.Path)
		}
		files[slug] = f
	}
	found, err := storage.ReadFiles(ctx, c.cfg.Tree, paths)
	for _, p := range paths {
		slug := path.Base(path.Dir(p))
		x, there := found[p]
		if !there { // gone this moment
			delete(files, slug)
			continue
		}
		f := file{version: x.Version, at: x.At.Time(), facts: facts[slug]}
		c.parse(slug, &f, x, zone)
		files[slug] = f
	}
	for _, slug := range slices.Sorted(maps.Keys(facts)) {
		if _, is := files[slug]; !is {
			left = append(left, slug)
		}
	}
	return files, left, err
}

// twins are tasks with one uid, each with the other.
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

func (c *Cron) zone() *time.Location {
	if c.cfg.Zone != nil {
		if z := c.cfg.Zone(); z != nil {
			return z
		}
	}
	return time.UTC
}

// parse takes the task out of a file.
func (c *Cron) parse(slug string, f *file, x storage.TreeFile, zone *time.Location) {
	name := slug + "/" + taskFile
	if x.Err == nil && len(x.Body) > maxTask {
		x.Err = storage.ErrTooMany
	}
	if x.Err != nil {
		f.fault(slug, x.Err)
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
	if k := c.cfg.Known; k != nil && d.route.place.Connector != "" && !k(d.route.place.Connector) {
		f.problem(name, d.agentLine, unknownConnector(d.route.place.Connector))
		return // nobody would hear what it says
	}
	var line *configs.LineError
	if errors.As(err, &line) {
		f.problem(name, line.Line, line.Text)
		return
	}
	f.def = &d
}

func unknownConnector(name string) string {
	return fmt.Sprintf("route: no connector %.40q is configured", name)
}

func (f *file) problem(name string, line int, text string) {
	f.notes = append(f.notes, connectors.Problem{File: name, Line: line, Text: text})
}

// fault notes why a TASK.md cannot be read.
func (f *file) fault(slug string, err error) {
	text := schedule.Reason(err)
	if errors.Is(err, storage.ErrTooMany) {
		text = "the file is longer than 256 KiB"
	}
	f.problem(slug+"/"+taskFile, 0, text)
}

// lastRows are the newest scheduled firings of the tasks that are new here.
func (c *Cron) lastRows(ctx context.Context, files map[string]file, rows map[string]storage.LedgerRow) (map[string]storage.LedgerRow, error) {
	if rows != nil {
		return rows, nil
	}
	for _, f := range files {
		if f.def != nil && c.tasks[f.def.uid] == nil && rows == nil { // only written with edits held
			return c.cfg.Ledger.LastFirings(ctx)
		}
	}
	return nil, nil
}

// adopt makes the files the tasks in memory.
func (c *Cron) adopt(ctx context.Context, files map[string]file, left []string, twice map[string]string, rows map[string]storage.LedgerRow) error {
	now := c.now()
	var problems []connectors.Problem
	here, unreadable := make(map[string]bool), false
	c.mu.Lock()
	for _, slug := range slices.Sorted(maps.Keys(files)) {
		f := files[slug]
		problems = append(problems, f.notes...)
		here[f.uid] = true
		unreadable = unreadable || f.uid == ""
		if other, is := twice[slug]; is {
			problems = append(problems, connectors.Problem{File: path.Join(slug, taskFile), Text: fmt.Sprintf("uid: %s has the same; neither runs", path.Join(other, taskFile))})
			continue
		}
		if f.def != nil {
			c.take(slug, f, rows, now)
		}
	}
	for uid, t := range c.tasks {
		if f := files[t.slug]; f.def == nil || f.def.uid != uid || twice[t.slug] != "" {
			t.gone = true
			c.queue.drop(t)
			delete(c.tasks, uid)
		}
	}
	c.files = files
	c.mu.Unlock()
	c.base.SetProblems(problems)
	if unreadable { // which may be any
		return nil
	}
	return c.miss(ctx, here, left)
}

// take brings the task of one file up to date. It is called with c.mu held.
func (c *Cron) take(slug string, f file, rows map[string]storage.LedgerRow, now time.Time) {
	d, fc := *f.def, c.facts[f.def.uid]
	t := c.tasks[d.uid]
	if t != nil && t.def.text == d.text && t.slug == slug && t.def.timing == d.timing && fc == t.fact {
		return
	}
	d.plan.anchor = time.Unix(fc.Anchor, 0)
	restart := t == nil || t.fact.Epoch != fc.Epoch
	if t == nil {
		t = &task{at: -1, last: time.Unix(fc.Since, 0)}
		c.tasks[d.uid] = t
		if row, ok := rows[d.uid]; ok {
			t.last = later(t.last, row.Planned.Time())
			defer c.resume(t, row)
		}
		t.last = since(t.last, now)
	} else if restart {
		t.retry, t.spent = nil, false
		t.last = later(t.last, time.Unix(fc.Since, 0))
		if fc.Since == 0 { // another single instant
			t.last = time.Unix(0, 0)
		}
	}
	if restart {
		t.tries = 0
	}
	t.slug, t.def, t.fact, t.steps = slug, &d, fc, [2]step{}
	c.plan(t)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// upkeep brings the facts up to date with what is done, and notices ends that
// nobody told.
func (c *Cron) upkeep(r *running) {
	c.follow(r, true)
	if err := c.base.Locked(r.ctx, func() error { return c.settled(r.ctx) }); err != nil && r.ctx.Err() == nil {
		c.base.Log.Warn("cannot save what is known of the tasks", "err", err)
	}
}

// turnBack is for a clock that had been wrong by more than instants can wait.
func (c *Cron) turnBack(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.tasks {
		if s := since(t.last, now); !s.Equal(t.last) {
			t.last, t.retry, t.tries = s, nil, 0
			c.plan(t)
		}
	}
}

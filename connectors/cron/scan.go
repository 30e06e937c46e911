package cron

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

const (
	// factsMark is the mark that keeps the facts of all tasks.
	factsMark = "cron"
	// keepGone is how long the facts of a task are kept whose folder is gone.
	keepGone = 30 * 24 * time.Hour
	// blink is how long a folder may be away and be taken for the same: an editor
	// or a tool has replaced it.
	blink = 10 * time.Second
	// upkeepTime is how often the facts are brought up to date: the ledger forgets
	// old rows, and then only the facts say what is done with.
	upkeepTime = 24 * time.Hour
)

// A file is a TASK.md as it was last read.
type file struct {
	seen  seen
	facts int64 // the version of what all nodes know of it
	fact  fact
	def   *definition // nil: it cannot be used
	uid   string      // also of a file that cannot be used, where it is known
	notes []connectors.Problem
}

func (c *Cron) loadFacts(ctx context.Context) (map[string]fact, error) {
	facts := make(map[string]fact)
	if c.cfg.Tree != nil {
		return facts, nil // they come with the tasks
	}
	text, err := c.cfg.Marks.Mark(ctx, factsMark)
	if err != nil || text == "" {
		return facts, err
	}
	if err := json.Unmarshal([]byte(text), &facts); err != nil {
		c.log.Warn("what was remembered of the tasks cannot be read; it begins anew", "err", err)
		return make(map[string]fact), nil
	}
	return facts, nil
}

// saveFacts makes the facts durable when they have changed. What cannot be
// saved is tried again with the next look at the files.
func (c *Cron) saveFacts(ctx context.Context) error {
	c.mu.Lock()
	if !c.unsaved || c.cfg.Tree != nil { // each task has its own
		c.mu.Unlock()
		return nil
	}
	c.unsaved = false
	b, err := json.Marshal(c.facts)
	c.mu.Unlock()
	if err == nil {
		err = c.cfg.Marks.SetMark(ctx, factsMark, string(b))
	}
	if err != nil {
		c.mu.Lock()
		c.unsaved = true
		c.mu.Unlock()
		return fmt.Errorf("remember the tasks: %w", err)
	}
	return nil
}

// scan reads the files that have changed. rows are the newest firings of all
// tasks, where they are known; force does all that follows also when no file has
// changed. It is called with edits held.
func (c *Cron) scan(r *running, rows map[string]storage.LedgerRow, force bool) error {
	names, err := r.folder.names(r.ctx)
	if err != nil {
		return err
	}
	now, zone := time.Now(), c.zone()
	files, changed := make(map[string]file, len(names)), force
	if err := c.fetch(r, names, zone); err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasPrefix(name, ".") {
			continue
		}
		old, known := c.files[name] // only written with edits held
		info, err := r.folder.stat(path.Join(name, taskFile))
		if known && err == nil && old.current(info, zone) && old.facts == r.factsOf(name) {
			files[name] = old
			continue
		}
		f, is := c.readFile(r, name, zone, look(info, now))
		if !is {
			continue
		}
		if err := c.agree(r, name, &f); err != nil {
			return err
		}
		files[name] = f
		changed = changed || !known || !sameFile(old, f)
	}
	if !changed && len(files) == len(c.files) {
		for name, f := range files { // read again, and found to be the same
			c.files[name] = f
		}
		return c.saveFacts(r.ctx)
	}
	last, err := c.lastRows(r.ctx, files, rows)
	if err != nil {
		return err
	}
	c.adopt(files, last)
	return c.saveFacts(r.ctx)
}

func (c *Cron) zone() *time.Location {
	if c.cfg.Zone != nil {
		if z := c.cfg.Zone(); z != nil {
			return z
		}
	}
	return time.UTC
}

func sameFile(a, b file) bool {
	if a.def != nil && b.def != nil {
		if a.def.text != b.def.text || a.def.timing != b.def.timing {
			return false
		}
		b.def = a.def
	}
	return a.def == b.def && a.uid == b.uid && a.facts == b.facts && slices.Equal(a.notes, b.notes)
}

// readFile reads the task of a folder; is is false for what is no folder.
func (c *Cron) readFile(r *running, slug string, zone *time.Location, s seen) (f file, is bool) {
	name := path.Join(slug, taskFile)
	f.seen = s
	folder, err := r.folder.isFolder(slug)
	switch {
	case err != nil:
		f.problem(slug, 0, "the folder cannot be used: "+reason(err))
		return f, !errors.Is(err, fs.ErrNotExist)
	case !folder:
		return f, false
	case len(slug) > 64 || !slugForm.MatchString(slug):
		f.problem(slug, 0, "the name of a task's folder has only a-z, 0-9, dots, - and _, and at most 64 of them")
		return f, true
	}
	text, cut, err := r.folder.read(r.ctx, name, maxTask)
	switch {
	case err != nil:
		f.problem(name, 0, reason(err))
		return f, true
	case cut:
		f.problem(name, 0, "the file is longer than 256 KiB")
		return f, true
	}
	d, notes, err := readDefinition(text, zone)
	if d.spec.Name == "" {
		d.spec.Name = slug
	}
	f.uid = d.uid
	for _, n := range notes {
		f.problem(name, n.Line, n.Text)
	}
	if k := c.cfg.Known; k != nil && d.route.place.Connector != "" && !k(d.route.place.Connector) {
		f.problem(name, d.agentLine, unknownConnector(d.route.place.Connector))
		return f, true // nobody would hear what it says
	}
	var line *configs.LineError
	if errors.As(err, &line) {
		f.problem(name, line.Line, line.Text)
		return f, true
	}
	f.def = &d
	return f, true
}

func unknownConnector(name string) string {
	return fmt.Sprintf("route: no connector %.40q is configured", name)
}

func (f *file) problem(name string, line int, text string) {
	f.notes = append(f.notes, connectors.Problem{File: name, Line: line, Text: text})
}

// reason is an error of the disk in words.
func reason(err error) string {
	var p *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such file"
	case errors.Is(err, fs.ErrPermission):
		return "it must not be read"
	case errors.As(err, &p):
		return p.Err.Error()
	}
	return storage.Plain(err)
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
func (c *Cron) adopt(files map[string]file, rows map[string]storage.LedgerRow) {
	now := c.now()
	slugs := slices.Sorted(maps.Keys(files))
	owners := make(map[string]string) // of uids
	twice := make(map[string]string)
	for _, slug := range slugs {
		d := files[slug].def
		if d == nil {
			continue
		}
		if other, ok := owners[d.uid]; ok {
			twice[slug], twice[other] = other, slug
		}
		owners[d.uid] = slug
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var problems []connectors.Problem
	here, unreadable := make(map[string]bool), false
	for _, slug := range slugs {
		f := files[slug]
		problems = append(problems, f.notes...)
		here[f.uid] = true
		unreadable = unreadable || f.uid == ""
		if other, is := twice[slug]; is {
			problems = append(problems, connectors.Problem{File: path.Join(slug, taskFile), Text: fmt.Sprintf("uid: %s has the same; neither runs", path.Join(other, taskFile))})
			continue
		}
		if f.def != nil {
			if f.facts != 0 {
				c.facts[f.def.uid] = f.fact
			}
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
	if !unreadable { // which may be any
		c.miss(here, now)
	}
	c.files = files
	c.warn(problems)
}

// take brings the task of one file up to date. It is called with c.mu held.
func (c *Cron) take(slug string, f file, rows map[string]storage.LedgerRow, now time.Time) {
	d := *f.def
	t, fc := c.tasks[d.uid], c.facts[d.uid]
	was := fc
	restart := c.remember(&fc, &d, f.seen, now)
	if t != nil && t.def.text == d.text && t.slug == slug && t.def.timing == d.timing && fc == was && fc == t.fact {
		return
	}
	restart = restart || t != nil && t.fact.Epoch != fc.Epoch // another node has seen to it
	if fc != was {
		c.facts[d.uid], c.unsaved = fc, true
	}
	d.plan.anchor = time.Unix(fc.Anchor, 0)
	if t == nil {
		t = &task{at: -1, last: time.Unix(fc.Since, 0)}
		c.tasks[d.uid] = t
		restart = true
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

// remember brings the facts of a task up to date, and reports whether its
// instants count anew.
func (c *Cron) remember(fc *fact, d *definition, s seen, now time.Time) bool {
	begin := now.Unix()
	if made := s.info.ModTime(); made.Before(now) && now.Sub(made) < freshness { // an instant may have passed since it was written
		begin = made.Unix()
	}
	renewed := fc.Timing != d.timing
	back := fc.Gone != 0 && now.Sub(time.Unix(fc.Gone, 0)) > blink
	enabled := fc.Off && d.enabled
	lifted := fc.Paused != "" && fc.PausedText != d.text
	if lifted {
		fc.Paused, fc.PausedText, fc.Lifted = "", "", claybot.At(now)
	}
	if renewed || enabled || back || lifted {
		fc.Since = begin
		if !lifted || renewed || enabled {
			fc.Anchor = begin
		}
	}
	if renewed && !d.plan.at.IsZero() {
		fc.Since = 0 // a single instant is not lost, however late its file is seen
	}
	fc.Timing, fc.Off, fc.Gone = d.timing, !d.enabled, 0
	if renewed || enabled || back || lifted {
		fc.Epoch++
	}
	return renewed || enabled || back || lifted
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// miss notes which tasks are not there any more, and forgets those that have
// been away for long. It is called with c.mu held.
func (c *Cron) miss(here map[string]bool, now time.Time) {
	for uid, f := range c.facts {
		switch {
		case here[uid]:
		case c.cfg.Tree != nil: // they went with the folder
			delete(c.facts, uid)
		case f.Gone == 0:
			f.Gone = now.Unix()
			c.facts[uid], c.unsaved = f, true
		case now.Sub(time.Unix(f.Gone, 0)) > keepGone:
			delete(c.facts, uid)
			c.unsaved = true
		}
	}
}

// warn tells the problems that are new, each once. It is called with c.mu held.
func (c *Cron) warn(problems []connectors.Problem) {
	for _, p := range problems {
		if !slices.Contains(c.problems, p) {
			c.log.Warn("a task file has a problem", "file", p.File, "line", p.Line, "problem", p.Text)
		}
	}
	c.problems = problems
}

// upkeep brings the facts up to date with what is done, and notices ends that
// nobody told.
func (c *Cron) upkeep(r *running) {
	rows, err := c.cfg.Ledger.LastFirings(r.ctx)
	if err != nil {
		c.log.Warn("cannot read the ledger", "err", err)
		return
	}
	c.mu.Lock()
	for uid, t := range c.tasks {
		f := c.facts[uid]
		if last := t.last.Unix(); last > f.Since && c.cfg.Tree == nil {
			f.Since = last
			c.facts[uid], c.unsaved = f, true
		}
		if row, ok := rows[uid]; ok && !t.busy {
			c.resume(t, row)
		}
	}
	c.mu.Unlock()
	c.settled(r)
	if err := c.saveFacts(r.ctx); err != nil {
		c.log.Warn("cannot save what is known of the tasks", "err", err)
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

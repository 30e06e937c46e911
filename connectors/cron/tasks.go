package cron

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

// shown is how many coming instants people see.
const shown = 5

var errIdle = errors.New("the tasks cannot be reached: cron is not running yet")

// current is what runs; an error when nothing does.
func (c *Cron) current() (*running, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.live == nil {
		return nil, errIdle
	}
	return c.live, nil
}

// edit does what changes files, and then reads them again.
func (c *Cron) edit(ctx context.Context, do func() error) error {
	return c.base.Locked(ctx, func() error {
		r, err := c.current()
		if err == nil {
			err = do()
		}
		if err != nil {
			return err
		}
		return c.scan(r.ctx, nil, true)
	})
}

// find is a task by its slug or uid.
func (c *Cron) find(ref string) (*task, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.live == nil {
		return nil, errIdle
	}
	if t := c.tasks[ref]; t != nil {
		return t, nil
	}
	for _, t := range c.tasks {
		if t.slug == ref {
			return t, nil
		}
	}
	for _, p := range c.base.Problems() {
		if name, _, _ := strings.Cut(p.File, "/"); name == ref {
			return nil, fmt.Errorf("task %.80q cannot be used: %s: %s", ref, p.File, p.Text)
		}
	}
	return nil, fmt.Errorf("there is no task %.80q", ref)
}

// Tasks lists all tasks, by slug, with the files that could not be read.
func (c *Cron) Tasks(ctx context.Context) ([]connectors.Task, []connectors.Problem, error) {
	c.mu.Lock()
	if c.live == nil {
		c.mu.Unlock()
		return nil, nil, errIdle
	}
	all := make([]*task, 0, len(c.tasks))
	for _, t := range c.tasks {
		all = append(all, t)
	}
	c.mu.Unlock()
	tasks := make([]connectors.Task, 0, len(all))
	for _, t := range all {
		v, err := c.view(ctx, t)
		if err != nil {
			return nil, nil, err
		}
		tasks = append(tasks, v)
	}
	slices.SortFunc(tasks, func(a, b connectors.Task) int { return cmp.Compare(a.Slug, b.Slug) })
	return tasks, c.base.Problems(), nil
}

// view is a task as it stands.
func (c *Cron) view(ctx context.Context, t *task) (connectors.Task, error) {
	c.mu.Lock()
	d, now := t.def, c.now()
	v := connectors.Task{
		TaskSpec: d.spec, Slug: t.slug, UID: d.uid, Enabled: d.enabled, Gate: d.gate,
		Paused: c.facts[d.uid].Paused, Next: []time.Time{},
	}
	if d.enabled && v.Paused == "" && !t.spent {
		v.Next = d.plan.upcoming(later(since(t.last, now), now), d.plan.anchor, shown)
	}
	c.mu.Unlock()
	rows, err := c.cfg.Ledger.Firings(ctx, d.uid, 1)
	if err == nil && len(rows) > 0 {
		f := firing(rows[0], d.plan.zone)
		v.Last = &f
	}
	return v, err
}

// firing is a row of the ledger as people see it.
func firing(r storage.LedgerRow, zone *time.Location) connectors.Firing {
	in := func(t claybot.Time) time.Time {
		if t == 0 {
			return time.Time{}
		}
		return t.Time().In(zone)
	}
	return connectors.Firing{
		Planned: in(r.Planned), Started: in(r.Started), Ended: in(r.Ended), Instant: r.Instant, Attempt: r.Attempt,
		State: r.State, Reason: r.Reason, Run: r.Run, Cost: r.Cost,
	}
}

// check reads a file as it is about to be written. Its errors are for whoever
// asked, who sees no lines.
func (c *Cron) check(ctx context.Context, text string) (definition, error) {
	if len(text) > maxTask {
		return definition{}, fmt.Errorf("the task is longer than %d KiB", maxTask>>10)
	}
	d, _, err := readDefinition(text, c.zone())
	var line *configs.LineError
	if errors.As(err, &line) {
		return d, errors.New(line.Text)
	}
	if k := c.cfg.Known; k != nil && d.route.place.Connector != "" && !k(d.route.place.Connector) {
		return d, errors.New(unknownConnector(d.route.place.Connector))
	}
	for _, x := range [...]struct {
		field string
		id    claybot.AgentID
	}{{"agent", d.agent}, {"route", d.route.agent}} {
		if x.id == "" {
			continue
		}
		_, err := c.cfg.Index.IndexedDescriptor(ctx, x.id)
		if errors.Is(err, storage.ErrNotFound) {
			return d, fmt.Errorf("%s: there is no agent %s", x.field, x.id)
		}
		if err != nil {
			return d, fmt.Errorf("look for agent %s: %w", x.id, err)
		}
	}
	return d, nil
}

// passed refuses a single instant that lies in the past.
func (c *Cron) passed(d definition) error {
	if !d.plan.at.IsZero() && !d.plan.at.After(c.now()) {
		return fmt.Errorf("at: %q is in the past", d.spec.At)
	}
	return nil
}

// checkSpec checks a new task and returns its file.
func (c *Cron) checkSpec(ctx context.Context, t connectors.TaskSpec) (definition, string, error) {
	if t.Retries < 0 || t.Retries > maxRetries {
		return definition{}, "", fmt.Errorf("retries: %d is not a number from 0 to %d", t.Retries, maxRetries)
	}
	text := front(string(claybot.NewID()), t).String()
	d, err := c.check(ctx, text)
	if err == nil && d.spec.Name == "" {
		err = errors.New("name is empty")
	}
	if err == nil {
		err = c.passed(d)
	}
	return d, text, err
}

// Add creates a task, whose slug and uid it chooses; dry checks it alone, and finds
// out its next instants.
func (c *Cron) Add(ctx context.Context, t connectors.TaskSpec, dry bool) (connectors.Task, error) {
	d, text, err := c.checkSpec(ctx, t)
	if err != nil {
		return connectors.Task{}, err
	}
	if dry {
		now := c.now()
		return connectors.Task{TaskSpec: d.spec, Next: d.plan.upcoming(now, now.Truncate(time.Second), shown)}, nil
	}
	if err := c.edit(ctx, func() error { return c.create(ctx, schedule.NameOf(d.spec.Name), text) }); err != nil {
		return connectors.Task{}, fmt.Errorf("add task %q: %w", d.spec.Name, err)
	}
	return c.seenAs(ctx, d.uid)
}

// seenAs is the view of a task that was just written.
func (c *Cron) seenAs(ctx context.Context, ref string) (connectors.Task, error) {
	t, err := c.find(ref)
	if err != nil {
		return connectors.Task{}, err
	}
	return c.view(ctx, t)
}

// Change replaces what is set in ch. The ledger stays. Enabling a task also ends a
// pause.
func (c *Cron) Change(ctx context.Context, ref string, ch connectors.TaskChange) (connectors.Task, error) {
	t, err := c.find(ref)
	if err != nil {
		return connectors.Task{}, err
	}
	uid := ""
	err = c.edit(ctx, func() error {
		c.mu.Lock()
		slug, gone := t.slug, t.gone
		uid = t.def.uid
		c.mu.Unlock()
		if gone {
			return fmt.Errorf("there is no task %.80q any more", ref)
		}
		if err := c.rewrite(ctx, slug, ch); err != nil {
			return err
		}
		if ch.Enabled != nil && *ch.Enabled {
			return c.lift(ctx, slug, uid)
		}
		return nil
	})
	if err != nil {
		return connectors.Task{}, err
	}
	return c.seenAs(ctx, uid)
}

// rewrite changes the file of a task.
func (c *Cron) rewrite(ctx context.Context, slug string, ch connectors.TaskChange) error {
	name := path.Join(slug, taskFile)
	return c.editFile(ctx, taskPath(slug), func(old string, err error) (string, error) {
		if err == nil && len(old) > maxTask {
			err = errors.New("the file is too long")
		}
		if err != nil {
			return "", fmt.Errorf("read %s: %w", name, err)
		}
		f, err := configs.ReadFrontmatter(old)
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		change(&f, ch)
		text := f.String()
		d, err := c.check(ctx, text)
		if err == nil && ch.At != nil {
			err = c.passed(d)
		}
		return text, err
	})
}

// Remove deletes a task; its folder goes to .done.
func (c *Cron) Remove(ctx context.Context, ref string) error {
	t, err := c.find(ref)
	if err != nil {
		return err
	}
	return c.edit(ctx, func() error {
		c.mu.Lock()
		slug, gone := t.slug, t.gone
		c.mu.Unlock()
		if gone {
			return nil
		}
		if err := c.putAway(ctx, slug, 0); err != nil {
			return fmt.Errorf("remove task %s: %w", slug, err)
		}
		return nil
	})
}

// RunNow fires a task once, outside its schedule; key makes repeats of the call
// harmless. The task's gate is asked in the background;
// without one the firing is durable when RunNow returns.
func (c *Cron) RunNow(ctx context.Context, ref, key string) (connectors.Task, error) {
	t, err := c.find(ref)
	if err != nil {
		return connectors.Task{}, err
	}
	if key == "" {
		key = string(claybot.NewID())
	}
	c.mu.Lock()
	r := c.live
	if r == nil {
		c.mu.Unlock()
		return connectors.Task{}, errIdle
	}
	r.work.Add(1) // while live is set, Run does not wait yet
	now := c.now()
	s := shot{
		task: t, def: t.def, slug: t.slug, lifted: c.facts[t.def.uid].Lifted, attempt: 1,
		instant: "manual/" + key, planned: now, now: now, manual: true,
	}
	c.mu.Unlock()
	gated := s.def.gate != "" && c.cfg.Gates
	if gated {
		go func() {
			defer r.work.Done()
			if stop, err := c.gate(r, &s); err == nil && !stop {
				err = c.byHand(r.ctx, r, s)
				if err != nil && r.ctx.Err() == nil {
					c.base.Log.Warn("a task cannot be started by hand", "task", s.slug, "err", err)
				}
			}
		}()
	} else {
		defer r.work.Done()
		c.ungated(&s)
		if err := c.byHand(ctx, r, s); err != nil {
			return connectors.Task{}, fmt.Errorf("run task %s: %w", s.slug, err)
		}
	}
	return c.view(ctx, t)
}

// byHand posts a shot that nobody scheduled.
func (c *Cron) byHand(ctx context.Context, r *running, s shot) (err error) {
	if s.past, err = c.past(ctx, s.def.uid, s.instant, s.lifted); err != nil {
		return err
	}
	sent, err := c.send(ctx, r, s)
	if err == nil && !sent {
		return fmt.Errorf("there is no agent %s", s.def.agent)
	}
	return err
}

// Memory reads MEMORY.md of a task.
func (c *Cron) Memory(ctx context.Context, ref string) (text string, err error) {
	err = c.inFolder(ctx, ref, func(slug string) (err error) {
		text, err = c.memory(ctx, slug)
		return err
	})
	return text, err
}

// Remember replaces MEMORY.md of a task, or adds to it. What is written stays short enough to be
// read as a whole.
func (c *Cron) Remember(ctx context.Context, ref, text string, add bool) error {
	return c.inFolder(ctx, ref, func(slug string) error {
		return c.editFile(ctx, memoryPath(slug), func(old string, err error) (string, error) {
			text := strings.TrimSpace(strings.ToValidUTF8(text, ""))
			if add {
				if old, err = memoryText(old, err); err != nil {
					return "", err
				}
				if old != noMemory {
					text = strings.TrimSpace(old + "\n" + text)
				}
			}
			if len(text) > maxMemory {
				return "", fmt.Errorf("MEMORY.md would have %d bytes; at most %d are kept, so replace it with something shorter", len(text), maxMemory)
			}
			return cmp.Or(text, noMemory) + "\n", nil
		})
	})
}

// inFolder does something with the folder of a task.
func (c *Cron) inFolder(ctx context.Context, ref string, do func(slug string) error) error {
	t, err := c.find(ref)
	if err != nil {
		return err
	}
	return c.base.Locked(ctx, func() error {
		if _, err := c.current(); err != nil {
			return err
		}
		c.mu.Lock()
		slug := t.slug
		c.mu.Unlock()
		if err := do(slug); err != nil {
			return fmt.Errorf("memory of task %s: %w", slug, err)
		}
		return nil
	})
}

// Ledger returns the newest limit firings of a task.
func (c *Cron) Ledger(ctx context.Context, ref string, limit int) ([]connectors.Firing, error) {
	t, err := c.find(ref)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	d := t.def
	c.mu.Unlock()
	rows, err := c.cfg.Ledger.Firings(ctx, d.uid, limit)
	all := make([]connectors.Firing, 0, len(rows))
	for _, r := range rows {
		all = append(all, firing(r, d.plan.zone))
	}
	return all, err
}

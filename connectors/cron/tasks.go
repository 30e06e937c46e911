package cron

import (
	"cmp"
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

// shown is the number of next instants in a view.
const shown = 5

// find returns a task by its slug or uid. It fails while neither Run nor Idle is running.
func (c *Cron) find(ref string) (*task, error) {
	_, leave, err := c.sched.Enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	return c.table.find(ref)
}

// in calls do with the folder of a task. gone reports that the task was removed. It
// rereads a changed TASK.md, even if ctx is done.
func (c *Cron) in(ctx context.Context, ref string, scan bool, do func(t *task, slug string, gone bool) error) error {
	t, err := c.find(ref)
	if err != nil {
		return err
	}
	return c.sched.Edit(ctx, func(run context.Context) error {
		c.sched.Mu.Lock()
		slug, gone := t.slug, t.gone
		c.sched.Mu.Unlock()
		if err := do(t, slug, gone); err != nil || !scan {
			return err
		}
		return c.table.scan(run, nil, true)
	})
}

// Tasks lists all tasks, by slug, with the files that could not be read.
func (c *Cron) Tasks(ctx context.Context) ([]connectors.Task, []connectors.Problem, error) {
	_, leave, err := c.sched.Enter()
	if err != nil {
		return nil, nil, err
	}
	defer leave()
	c.sched.Mu.Lock()
	all := slices.Collect(maps.Values(c.table.tasks))
	c.sched.Mu.Unlock()
	tasks := make([]connectors.Task, len(all))
	for i, t := range all {
		if tasks[i], err = c.view(ctx, t); err != nil {
			return nil, nil, err
		}
	}
	slices.SortFunc(tasks, func(a, b connectors.Task) int { return cmp.Compare(a.Slug, b.Slug) })
	return tasks, c.sched.Problems(), nil
}

// view returns the current state of a task.
func (c *Cron) view(ctx context.Context, t *task) (connectors.Task, error) {
	c.sched.Mu.Lock()
	d, now := t.def, c.sched.Now()
	v := connectors.Task{
		TaskSpec: d.spec, Slug: t.slug, UID: d.uid, Enabled: d.enabled, Gate: d.gate,
		Paused: c.table.facts.known[d.uid].Paused, Next: []time.Time{},
	}
	if d.enabled && v.Paused == "" && !t.spent {
		v.Next = d.plan.upcoming(schedule.Later(since(t.last, now), now), d.plan.anchor, shown)
	}
	c.sched.Mu.Unlock()
	rows, err := c.cfg.Ledger.Firings(ctx, d.uid, 1)
	if err == nil && len(rows) > 0 {
		f := firing(rows[0], d.plan.zone)
		v.Last = &f
	}
	return v, err
}

// firing converts a ledger row for display.
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

// passed refuses a single instant that lies in the past.
func (c *Cron) passed(d definition) error {
	if !d.plan.at.IsZero() && !d.plan.at.After(c.sched.Now()) {
		return fmt.Errorf("at: %q is in the past", d.spec.At)
	}
	return nil
}

// Add creates a task and chooses its slug and uid. With dry it only validates the
// task and computes its next instants. It refuses a Limited task above the limits of its
// owner, however many are added at once, here and on other members.
func (c *Cron) Add(ctx context.Context, t connectors.TaskSpec, dry bool) (connectors.Task, error) {
	if t.Retries < 0 || t.Retries > maxRetries {
		return connectors.Task{}, fmt.Errorf("retries: %d is not a number from 0 to %d", t.Retries, maxRetries)
	}
	text := front(string(claybot.NewID()), t).String()
	d, err := c.table.checkText(ctx, text)
	if err == nil && d.spec.Name == "" {
		err = errors.New("name is empty")
	}
	if err == nil {
		err = c.passed(d)
	}
	if err != nil {
		return connectors.Task{}, err
	}
	if dry {
		now := c.sched.Now()
		return connectors.Task{TaskSpec: d.spec, Next: d.plan.upcoming(now, now.Truncate(time.Second), shown)}, nil
	}
	err = c.sched.Edit(ctx, func(run context.Context) error {
		if t.Limited {
			if err := c.quota.take(ctx, t, d.uid); err != nil {
				return err
			}
		}
		if err := c.folder.create(ctx, schedule.NameOf(d.spec.Name), text); err != nil {
			if t.Limited {
				err = errors.Join(err, c.quota.giveBack(run, t, d.uid))
			}
			return err
		}
		return c.table.scan(run, nil, true)
	})
	if err != nil {
		return connectors.Task{}, fmt.Errorf("add task %q: %w", d.spec.Name, err)
	}
	return c.get(ctx, d.uid)
}

// get returns the view of a task.
func (c *Cron) get(ctx context.Context, ref string) (connectors.Task, error) {
	t, err := c.find(ref)
	if err != nil {
		return connectors.Task{}, err
	}
	return c.view(ctx, t)
}

// Change replaces the fields that are set in ch. The ledger stays. Enabling a task
// also ends a pause.
func (c *Cron) Change(ctx context.Context, ref string, ch connectors.TaskChange) (connectors.Task, error) {
	uid := ""
	err := c.in(ctx, ref, true, func(t *task, slug string, gone bool) error {
		if gone {
			return fmt.Errorf("there is no task %.80q any more", ref)
		}
		uid = t.def.uid
		if err := c.rewrite(ctx, slug, ch); err != nil {
			return err
		}
		if ch.Enabled != nil && *ch.Enabled {
			return c.table.facts.mark(ctx, slug, uid, func(f *fact) {
				if f.Paused != "" {
					f.PausedText = "" // the next look at the file ends the pause
				}
			})
		}
		return nil
	})
	if err != nil {
		return connectors.Task{}, err
	}
	return c.get(ctx, uid)
}

// rewrite changes the file of a task.
func (c *Cron) rewrite(ctx context.Context, slug string, ch connectors.TaskChange) error {
	name := path.Join(slug, taskFile)
	return c.folder.edit(ctx, taskPath(slug), func(old string, err error) (string, error) {
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
		d, err := c.table.checkText(ctx, text)
		if err == nil && ch.At != nil {
			err = c.passed(d)
		}
		return text, err
	})
}

// Remove deletes a task; its folder goes to .done.
func (c *Cron) Remove(ctx context.Context, ref string) error {
	return c.in(ctx, ref, true, func(_ *task, slug string, gone bool) error {
		if gone {
			return nil
		}
		if err := c.folder.putAway(ctx, slug, 0); err != nil {
			return fmt.Errorf("remove task %s: %w", slug, err)
		}
		return nil
	})
}

// RunNow runs a task once, outside its schedule. It is idempotent for equal
// keys. A gate runs in the background; without one, the run is durable when
// RunNow returns.
func (c *Cron) RunNow(ctx context.Context, ref, key string) (connectors.Task, error) {
	t, err := c.find(ref)
	if err != nil {
		return connectors.Task{}, err
	}
	run, leave, err := c.sched.EnterJob()
	if err != nil {
		return connectors.Task{}, err
	}
	if key == "" {
		key = string(claybot.NewID())
	}
	c.sched.Mu.Lock()
	now := c.sched.Now()
	s := shot{
		task: t, def: t.def, slug: t.slug, lifted: c.table.facts.known[t.def.uid].Lifted, attempt: 1,
		instant: manual + key, planned: now, now: now, manual: true,
	}
	c.sched.Mu.Unlock()
	if s.def.gate != "" && c.cfg.Gates {
		go func() {
			defer leave()
			stop, err := c.runner.gate(run, &s)
			if err == nil && !stop {
				err = c.runner.byHand(run, s)
			}
			if err != nil && run.Err() == nil {
				c.sched.Log.Warn("failed to run a task manually", "task", s.slug, "err", err)
			}
		}()
		return c.view(ctx, t)
	}
	defer leave()
	if err := c.runner.byHand(ctx, s); err != nil {
		return connectors.Task{}, fmt.Errorf("run task %s: %w", s.slug, err)
	}
	return c.view(ctx, t)
}

// byHand posts a shot that is not on the schedule.
func (r *runner) byHand(ctx context.Context, s shot) (err error) {
	if s.past, err = readPast(ctx, r.cfg.Ledger, s.def.uid, s.instant, s.lifted, r.sched.Now()); err != nil {
		return err
	}
	sent, err := r.send(ctx, s)
	if err == nil && !sent {
		return fmt.Errorf("there is no agent %s", s.def.agent)
	}
	return err
}

// Memory reads MEMORY.md of a task.
func (c *Cron) Memory(ctx context.Context, ref string) (text string, err error) {
	err = c.in(ctx, ref, false, func(_ *task, slug string, _ bool) (err error) {
		if text, err = c.folder.memory(ctx, slug); err != nil {
			return fmt.Errorf("memory of task %s: %w", slug, err)
		}
		return nil
	})
	return text, err
}

// Remember replaces MEMORY.md of a task, or appends to it, up to the size limit of reads.
func (c *Cron) Remember(ctx context.Context, ref, text string, add bool) error {
	return c.in(ctx, ref, false, func(_ *task, slug string, _ bool) error {
		if err := c.folder.remember(ctx, slug, strings.TrimSpace(strings.ToValidUTF8(text, "")), add); err != nil {
			return fmt.Errorf("memory of task %s: %w", slug, err)
		}
		return nil
	})
}

// Ledger returns the newest limit runs of a task.
func (c *Cron) Ledger(ctx context.Context, ref string, limit int) ([]connectors.Firing, error) {
	t, err := c.find(ref)
	if err != nil {
		return nil, err
	}
	c.sched.Mu.Lock()
	d := t.def
	c.sched.Mu.Unlock()
	rows, err := c.cfg.Ledger.Firings(ctx, d.uid, limit)
	all := make([]connectors.Firing, 0, len(rows))
	for _, r := range rows {
		all = append(all, firing(r, d.plan.zone))
	}
	return all, err
}

package cron

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/claybot/claybot/storage"
)

const (
	// followEvery is how often a node asks what became of runs that others may
	// have done.
	followEvery = 15 * time.Second
	// gateAgain is how often a node asks whether another one is done with a gate.
	gateAgain = 2 * time.Second
	// keepFacts is how long the ledger alone knows what is done with. It keeps its
	// rows for much longer.
	keepFacts = 12 * time.Hour
)

// taskDir is the directory of the tasks that agents are told of: none where each
// node has another.
func (c *Cron) taskDir() string {
	if c.cfg.Tree != nil {
		return ""
	}
	return c.cfg.Dir
}

// current reports whether a file is as it was read.
func (f file) current(info fs.FileInfo, zone *time.Location) bool {
	return f.seen.same(info) && (f.def == nil || f.def.zone == zone.String())
}

// factsOf is the version of what all nodes know of a task.
func (r *running) factsOf(slug string) int64 {
	if !r.folder.shared() {
		return 0
	}
	info, err := r.folder.stat(path.Join(slug, factsFile))
	if err != nil {
		return 0
	}
	return info.(versioned).Version()
}

// fetch makes ready what a scan is going to read.
func (c *Cron) fetch(r *running, names []string, zone *time.Location) error {
	if !r.folder.shared() {
		return nil
	}
	var want []string
	for _, slug := range names {
		name := path.Join(slug, taskFile)
		info, err := r.folder.stat(name)
		if old, known := c.files[slug]; known && err == nil && old.current(info, zone) && old.facts == r.factsOf(slug) {
			continue
		}
		want = append(want, name, path.Join(slug, factsFile))
	}
	return r.folder.fetch(r.ctx, want)
}

// agree brings what all nodes know of a task up to date with its file. The first
// node that sees a change decides since when its instants count, and the others
// take that over: else each would have instants of its own.
func (c *Cron) agree(r *running, slug string, f *file) (err error) {
	t, shared := r.folder.(*treeShelf)
	if !shared || f.def == nil {
		return nil
	}
	remember := func(fc *fact) { c.remember(fc, f.def, f.seen, c.now()) }
	if fc, version, ok := t.agreed(slug, f.def.uid); ok {
		was := fc
		if remember(&fc); fc == was {
			f.fact, f.facts = fc, version
			return nil
		}
	}
	f.fact, f.facts, err = t.facts(r.ctx, slug, f.def.uid, remember)
	return err
}

// mark changes what must survive of a task.
func (c *Cron) mark(ctx context.Context, r *running, slug, uid string, change func(*fact)) error {
	t, shared := r.folder.(*treeShelf)
	if !shared {
		c.mu.Lock()
		defer c.mu.Unlock()
		f := c.facts[uid]
		change(&f)
		c.facts[uid], c.unsaved = f, true
		return nil
	}
	f, _, err := t.facts(ctx, slug, uid, change)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.facts[uid] = f
	return nil
}

// lift ends the pause of a task with the next look at its file.
func (c *Cron) lift(ctx context.Context, r *running, slug, uid string) error {
	return c.mark(ctx, r, slug, uid, func(f *fact) {
		if f.Paused != "" {
			f.PausedText = ""
		}
	})
}

// settled notes up to when instants are done with, for tasks that nodes share. One
// of them does it and the others see it.
func (c *Cron) settled(r *running) {
	if c.cfg.Tree == nil {
		return
	}
	type due struct{ slug, uid string }
	var all []due
	c.mu.Lock()
	for uid, t := range c.tasks {
		if t.last.Sub(time.Unix(c.facts[uid].Since, 0)) > keepFacts {
			all = append(all, due{t.slug, uid})
		}
	}
	c.mu.Unlock()
	for _, x := range all {
		c.mu.Lock()
		t := c.tasks[x.uid]
		last := int64(0)
		if t != nil {
			last = t.last.Unix()
		}
		c.mu.Unlock()
		if t == nil {
			continue
		}
		err := c.mark(r.ctx, r, x.slug, x.uid, func(f *fact) {
			if time.Unix(last, 0).Sub(time.Unix(f.Since, 0)) > keepFacts {
				f.Since = last
			}
		})
		if err != nil {
			c.log.Warn("cannot save what is known of the tasks", "err", err)
			return
		}
	}
}

// refresh reads from the ledger what other nodes have done with a task, which is
// behind: this node was asleep, or has just begun. wait: another node asks the
// task's gate and may still fire what seems to be missed.
func (c *Cron) refresh(r *running, t *task) (wait bool, err error) {
	c.mu.Lock()
	d := t.def
	c.mu.Unlock()
	if d.gate != "" && c.cfg.Gates && c.cfg.Claims != nil {
		node, err := c.cfg.Claims.Holder(r.ctx, gateClaim(d.uid))
		if err != nil {
			return false, err
		}
		if wait = node != "" && node != c.cfg.Node(); wait {
			return true, nil
		}
	}
	row, err := c.newestRow(r.ctx, d.uid)
	if err != nil || row == nil {
		return false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if planned := row.Planned.Time(); planned.After(t.last) {
		t.last, t.retry = since(planned, c.now()), nil
		c.resume(t, *row)
	}
	return false, nil
}

// newestRow is the newest scheduled firing of a task; nil for none.
func (c *Cron) newestRow(ctx context.Context, uid string) (*storage.LedgerRow, error) {
	for n := rowsFirst; ; n *= 4 {
		rows, err := c.cfg.Ledger.Firings(ctx, uid, n)
		if err != nil {
			return nil, err
		}
		for i := range rows {
			if !strings.HasPrefix(rows[i].Instant, "manual/") {
				return &rows[i], nil
			}
		}
		if len(rows) < n || n >= rowsMost {
			return nil, nil
		}
	}
}

// wait gives a task back that is looked at again soon, without an error because
// another node is at it.
func (c *Cron) wait(r *running, t *task, last time.Time, err error) {
	if err != nil {
		c.done(r, t, last, err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t.busy = false
	t.tries, t.again = max(t.tries, 1), c.now().Add(gateAgain)
	c.plan(t)
}

// taken gives a task back whose instant another node has entered into the ledger.
func (c *Cron) taken(r *running, s shot, last time.Time, row storage.LedgerRow) {
	c.done(r, s.task, later(last, s.planned), nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.task.def == s.def && !s.task.gone && !s.task.busy {
		c.resume(s.task, row)
	}
}

// follow finds out about the ends of runs that other nodes did, where something
// comes of them. Nothing is asked while there is no such task.
func (c *Cron) follow(r *running) {
	if c.cfg.Tree == nil || !c.waits() {
		return
	}
	rows, err := c.cfg.Ledger.LastFirings(r.ctx)
	if err != nil {
		if r.ctx.Err() == nil {
			c.log.Warn("cannot read the ledger", "err", err)
		}
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for uid, t := range c.tasks {
		if row, ok := rows[uid]; ok && t.unsettled && !t.busy {
			c.resume(t, row)
		}
	}
}

// waits reports whether the end of a run would change anything.
func (c *Cron) waits() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.tasks {
		if t.unsettled && !t.busy && (t.def.spec.Once || t.def.spec.Retries > 0) {
			return true
		}
	}
	return false
}

// gateClaim is what the node has that asks a gate.
func gateClaim(uid string) string { return "cron/gate/" + uid }

// gated asks the gate of a task and goes on with what it says. Of several nodes
// one asks; the others wait until the ledger has the instant, or until that one
// is gone.
func (c *Cron) gated(r *running, s shot, last time.Time) {
	yield, row, err := c.claimGate(r, s)
	if err != nil {
		c.done(r, s.task, last, err)
		return
	}
	if row != nil {
		c.taken(r, s, last, *row)
		return
	}
	defer yield()
	stop, err := c.gate(r, &s)
	if err == nil && !stop {
		c.shoot(r, s, last)
		return
	}
	c.done(r, s.task, later(last, s.planned), err)
}

// claimGate waits until this node is the one that asks a gate, or until another
// has seen to the instant; then row is its row.
func (c *Cron) claimGate(r *running, s shot) (yield func(), row *storage.LedgerRow, err error) {
	if c.cfg.Tree == nil || c.cfg.Claims == nil {
		return func() {}, nil, nil
	}
	for {
		claim, err := c.cfg.Claims.Claim(r.ctx, c.cfg.Node(), gateClaim(s.def.uid))
		if err != nil && !errors.Is(err, storage.ErrHeld) {
			return nil, nil, err
		}
		yield = func() { c.yield(r, claim) }
		held := err != nil
		p, err := c.past(r.ctx, s.def.uid, s.instant, s.lifted)
		if err == nil && p.taken != nil && p.taken.Attempt >= s.attempt {
			row = p.taken
		}
		if !held {
			if err != nil || row != nil {
				yield()
			}
			return yield, row, err
		}
		if err != nil || row != nil {
			return nil, row, err
		}
		select {
		case <-r.ctx.Done():
			return nil, nil, context.Cause(r.ctx)
		case <-time.After(gateAgain):
		}
	}
}

func (c *Cron) yield(r *running, claim storage.Claim) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), 5*time.Second)
	defer cancel()
	if err := c.cfg.Claims.Yield(ctx, claim); err != nil {
		c.log.Warn("a gate is not given back; nobody asks it until this node ends", "err", err)
	}
}

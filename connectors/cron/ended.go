package cron

import (
	"strconv"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// An ending is how the run of a scheduled instant ended.
type ending struct {
	uid     string
	instant string
	attempt int
	state   claybot.RunState
	at      time.Time
}

// Ended implements connectors.Follower.
func (c *Cron) Ended(_ claybot.Descriptor, run claybot.Run) {
	var all []ending
	for _, id := range run.Messages {
		if e, ok := endingOf(id); ok {
			e.state, e.at = run.State, run.Ended.Time()
			all = append(all, e)
		}
	}
	if len(all) == 0 {
		return
	}
	c.mu.Lock()
	c.ended = append(c.ended, all...)
	c.mu.Unlock()
	c.base.Kick()
}

// endingOf reads the id of a message that a scheduled firing is. See
// claybot.Firing.MessageID.
func endingOf(id claybot.MessageID) (e ending, ok bool) {
	parts := strings.Split(string(id), "/")
	if len(parts) < 3 || len(parts) > 4 || parts[0] != "cron" || parts[2] == "manual" {
		return e, false
	}
	e = ending{uid: parts[1], instant: parts[2], attempt: 1}
	if len(parts) == 4 {
		n, err := strconv.Atoi(parts[3])
		if err != nil || n < 2 {
			return e, false
		}
		e.attempt = n
	}
	return e, true
}

// settle does what follows from the ends of runs, and puts the folders of tasks
// aside that are over.
func (c *Cron) settle(r *running) {
	c.mu.Lock()
	ended := c.ended
	c.ended = nil
	for _, e := range ended {
		t := c.tasks[e.uid]
		switch {
		case t == nil:
		case t.busy: // its firing is not noted yet; done wakes the loop
			c.ended = append(c.ended, e)
		case e.instant == instantOf(t.last): // else it was changed, or has fired again
			c.conclude(t, e)
		}
	}
	over := c.over
	c.over = nil
	c.mu.Unlock()
	for _, t := range over {
		c.putAside(r, t)
	}
}

// conclude does what follows from the end of the task's newest instant: another
// attempt, or for a task that runs once, nothing any more. It is called with c.mu
// held.
func (c *Cron) conclude(t *task, e ending) {
	t.unsettled = false
	switch {
	case e.state == claybot.RunFailed && e.attempt <= t.def.spec.Retries && t.last.After(c.restored):
		t.retry = &retry{planned: t.last, attempt: e.attempt + 1, at: e.at.Add(backoff(e.attempt))}
	case t.def.spec.Once && e.state.Ended():
		t.spent = true
		c.over = append(c.over, t)
	}
	c.plan(t)
}

// resume goes on after the newest scheduled row of a task, which a process that
// died may have left at any point. It is called with c.mu held.
func (c *Cron) resume(t *task, row storage.LedgerRow) {
	f := c.facts[t.def.uid]
	at := t.def.plan.at
	switch {
	case row.State == stateSkipped && row.Instant == instantOf(t.last): // by another node
		t.spent, t.unsettled = false, false
	case row.State == stateSkipped, row.Planned.Time().Unix() < f.Since, row.Instant != instantOf(t.last):
	case !at.IsZero() && row.Instant != instantOf(at): // of another instant, before a change
	case row.Open():
		t.spent = t.def.spec.Once
		t.unsettled = true
	default:
		t.spent = t.def.spec.Once
		c.conclude(t, ending{attempt: max(row.Attempt, 1), state: claybot.RunState(row.State), at: row.Ended.Time()})
	}
	c.plan(t)
}

// putAside puts the folder of a task away. What cannot be moved now is moved
// after the next start.
func (c *Cron) putAside(r *running, t *task) {
	err := c.base.Locked(r.ctx, func() error {
		c.mu.Lock()
		slug, gone := t.slug, t.gone || !t.spent
		version := c.files[slug].version
		c.mu.Unlock()
		if gone {
			return nil
		}
		if err := c.putAway(r.ctx, slug, version); err != nil {
			return err
		}
		err := c.scan(r.ctx, nil, true)
		c.mu.Lock()
		defer c.mu.Unlock()
		if !t.gone && t.spent { // its file had changed, and is known now
			c.over = append(c.over, t)
		}
		return err
	})
	if err != nil && r.ctx.Err() == nil {
		c.base.Log.Warn("the folder of a task that is over cannot be put aside", "task", t.slug, "err", err)
	}
}

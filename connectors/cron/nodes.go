package cron

import (
	"context"
	"errors"
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
)

// refresh reads from the ledger what other nodes have done with a task, which is
// behind: this node was asleep, or has just begun. wait: another node asks the
// task's gate and may still fire what seems to be missed.
func (c *Cron) refresh(r *running, t *task) (wait bool, err error) {
	c.mu.Lock()
	d := t.def
	c.mu.Unlock()
	if d.gate != "" && c.cfg.Gates {
		if wait, err := c.base.Elsewhere(r.ctx, gateClaim(d.uid)); err != nil || wait {
			return wait, err
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

// follow finds out about the ends of runs that other nodes did: of those from which
// something follows, while there are some, or of all.
func (c *Cron) follow(r *running, all bool) {
	var rows map[string]storage.LedgerRow
	var err error
	if all {
		rows, err = c.cfg.Ledger.LastFirings(r.ctx)
	} else {
		rows, err = c.waited(r.ctx)
	}
	if err != nil {
		if r.ctx.Err() == nil {
			c.base.Log.Warn("cannot read the ledger", "err", err)
		}
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for uid, t := range c.tasks {
		if row, ok := rows[uid]; ok && (all || t.unsettled) && !t.busy {
			c.resume(t, row)
		}
	}
}

// waited are the newest scheduled firings of the tasks for which the end of a run would
// change anything.
func (c *Cron) waited(ctx context.Context) (map[string]storage.LedgerRow, error) {
	var uids []string
	c.mu.Lock()
	for uid, t := range c.tasks {
		if t.unsettled && !t.busy && (t.def.spec.Once || t.def.spec.Retries > 0) {
			uids = append(uids, uid)
		}
	}
	c.mu.Unlock()
	rows := make(map[string]storage.LedgerRow, len(uids))
	for _, uid := range uids {
		row, err := c.newestRow(ctx, uid)
		if err != nil {
			return nil, err
		}
		if row != nil {
			rows[uid] = *row
		}
	}
	return rows, nil
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
	for {
		yield, err := c.base.Claim(r.ctx, gateClaim(s.def.uid))
		if err != nil && !errors.Is(err, storage.ErrHeld) {
			return nil, nil, err
		}
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

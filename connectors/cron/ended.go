package cron

import (
	"strconv"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// An ending is the end of the run of a scheduled instant.
type ending struct {
	uid     string
	instant string
	attempt int
	state   claybot.RunState
	at      time.Time
}

// runEnded records the end of a run for the next step.
func (b *table) runEnded(run claybot.Run) {
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
	b.sched.Mu.Lock()
	b.ended = append(b.ended, all...)
	b.sched.Mu.Unlock()
	b.sched.Kick()
}

// endingOf parses the message id of a scheduled run. See
// claybot.Firing.MessageID.
func endingOf(id claybot.MessageID) (e ending, ok bool) {
	parts := strings.Split(string(id), "/")
	if len(parts) < 3 || len(parts) > 4 || parts[0] != Name || parts[2]+"/" == manual {
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

// settle handles the ends of runs and returns the tasks that are finished.
func (b *table) settle() []*task {
	b.sched.Mu.Lock()
	defer b.sched.Mu.Unlock()
	ended := b.ended
	b.ended = nil
	for _, e := range ended {
		t := b.tasks[e.uid]
		switch {
		case t == nil:
		case t.job.Busy: // its run is not recorded yet; done wakes the loop
			b.ended = append(b.ended, e)
		case e.instant == instantOf(t.last): // otherwise it was changed or has run again
			b.conclude(t, e)
		}
	}
	over := b.over
	b.over = nil
	return over
}

// conclude handles the end of the task's newest instant: it plans another attempt, or
// finishes a task that runs once. The caller holds the lock.
func (b *table) conclude(t *task, e ending) {
	t.unsettled = false
	switch {
	case e.state == claybot.RunFailed && e.attempt <= t.def.spec.Retries && t.last.After(b.restored):
		t.retry = &retry{planned: t.last, attempt: e.attempt + 1, at: e.at.Add(backoff(e.attempt))}
	case t.def.spec.Once && e.state.Ended():
		t.spent = true
		b.over = append(b.over, t)
	}
	b.plan(t)
}

// resume continues after the newest scheduled row of a task, which a crash may
// have left in any state. The caller holds the lock.
func (b *table) resume(t *task, row storage.LedgerRow) {
	f := b.facts.known[t.def.uid]
	at := t.def.plan.at
	switch {
	case row.State == stateSkipped && row.Instant == instantOf(t.last): // by another member
		t.spent, t.unsettled = false, false
	case row.State == stateSkipped, row.Planned.Time().Unix() < f.Since, row.Instant != instantOf(t.last):
	case !at.IsZero() && row.Instant != instantOf(at): // of another instant, before a change
	case row.Open():
		t.spent = t.def.spec.Once
		t.unsettled = true
	default:
		t.spent = t.def.spec.Once
		b.conclude(t, ending{attempt: max(row.Attempt, 1), state: claybot.RunState(row.State), at: row.Ended.Time()})
	}
	b.plan(t)
}

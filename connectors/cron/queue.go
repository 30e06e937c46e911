package cron

import (
	"container/heap"
	"time"
)

// A task is a definition at work. All but the definition behind def is
// guarded by Cron.mu.
type task struct {
	slug string
	def  *definition
	last time.Time // instants up to this one are done with
	due  time.Time // when there is something to do; zero: never
	at   int       // position in the queue; -1: not in it

	busy  bool // it is being fired
	gone  bool // there is no such task any more
	tries int  // firings in a row that could not be posted
	again time.Time
	retry *retry // a failed instant that is tried again
	// spent: a task that runs once has fired. What may come is another attempt,
	// and then its folder is put aside.
	spent bool

	// unsettled: the end of its newest run is not known here. On a node that did
	// not run it nobody tells.
	unsettled bool
	fact      fact // that it was planned with

	steps [2]step
}

// A step is an instant after another, remembered because it is asked for at
// least twice: when the earlier one fires, and when it has fired.
type step struct{ from, to time.Time }

// after is the first instant after one. It is called with c.mu held.
func (t *task) after(from time.Time) time.Time {
	for _, s := range t.steps {
		if s.from.Equal(from) {
			return s.to
		}
	}
	to := t.def.plan.due(from)
	t.steps = [2]step{t.steps[1], {from, to}}
	return to
}

// decide is the decision of the task's plan at now. It is called with c.mu held.
func (t *task) decide(now time.Time) decision {
	if t.spent {
		return decision{}
	}
	first := t.after(t.last)
	if first.IsZero() || t.last.After(now) {
		return t.def.plan.decide(t.last, now)
	}
	if first.After(now) {
		return decision{}
	}
	if second := t.after(first); second.IsZero() || second.After(now) { // the usual case
		return t.def.plan.judge(first, time.Time{}, 1, now)
	}
	return t.def.plan.decide(t.last, now)
}

// A retry is one more attempt at an instant that failed.
type retry struct {
	planned time.Time
	attempt int
	at      time.Time // not before
}

// A queue is a heap of tasks by when they are due.
type queue []*task

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i]; q[i].at, q[j].at = i, j }

// Push implements heap.Interface.
func (q *queue) Push(x any) { t := x.(*task); t.at = len(*q); *q = append(*q, t) }

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	old := *q
	t := old[len(old)-1]
	t.at = -1
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return t
}

// first is the task that is due next; nil for none.
func (q queue) first() *task {
	if len(q) == 0 {
		return nil
	}
	return q[0]
}

// pop takes out a task that is due at now, and marks it busy; nil for none.
func (q *queue) pop(now time.Time) *task {
	t := q.first()
	if t == nil || t.due.After(now) {
		return nil
	}
	heap.Pop(q)
	t.busy = true
	return t
}

// put gives a task its place, or takes it out when it is never due.
func (q *queue) put(t *task) {
	switch {
	case t.due.IsZero() || t.busy:
		q.drop(t)
	case t.at >= 0:
		heap.Fix(q, t.at)
	default:
		heap.Push(q, t)
	}
}

func (q *queue) drop(t *task) {
	if t.at >= 0 {
		heap.Remove(q, t.at)
	}
}

// plan puts a task where it belongs after a change of anything it depends on. It
// is called with c.mu held.
func (c *Cron) plan(t *task) {
	t.due = time.Time{}
	if f := c.facts[t.def.uid]; !t.gone && t.def.enabled && f.Paused == "" {
		if !t.spent {
			t.due = t.after(t.last)
		}
		if t.retry != nil && (t.due.IsZero() || t.retry.at.Before(t.due)) {
			t.due = t.retry.at
		}
		if !t.due.IsZero() && t.tries > 0 && t.again.After(t.due) {
			t.due = t.again
		}
	}
	c.queue.put(t)
	if t.at >= 0 && t.due.Before(c.wake) {
		c.base.Kick()
	}
}

package schedule

import (
	"container/heap"
	"context"
	"time"
)

// A Job is recurring work. It is not in the queue while it runs, so it never runs
// concurrently with itself. Scheduler.Mu guards all fields but Do.
type Job struct {
	Do   func(ctx context.Context) // calls Scheduler.Done
	Busy bool                      // it is running

	due      time.Time // zero: never
	at       int       // position in the queue, from 1; 0: not in it
	failures int       // in a row
	again    time.Time // earliest next run, by the monotonic clock
}

// Pause delays the job by at least d.
func (j *Job) Pause(d time.Duration) { j.again = time.Now().Add(d) }

// Retry ends a pause.
func (j *Job) Retry() { j.failures, j.again = 0, time.Time{} }

// A queue is a heap of jobs, ordered by due time.
type queue []*Job

// Len implements heap.Interface.
func (q queue) Len() int { return len(q) }

// Less implements heap.Interface.
func (q queue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }

// Swap implements heap.Interface.
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i]; q[i].at, q[j].at = i+1, j+1 }

// Push implements heap.Interface.
func (q *queue) Push(x any) { *q = append(*q, x.(*Job)); (*q)[len(*q)-1].at = len(*q) }

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := len(*q) - 1
	j := (*q)[last]
	j.at, (*q)[last] = 0, nil
	*q = (*q)[:last]
	return j
}

// pop removes a job that is due at now and marks it busy; nil for none.
func (q *queue) pop(now time.Time) *Job {
	if len(*q) == 0 || (*q)[0].due.After(now) {
		return nil
	}
	j := heap.Pop(q).(*Job)
	j.Busy = true
	return j
}

// put enqueues a job or updates its position, and removes it if it is never due
// or running.
func (q *queue) put(j *Job) {
	switch out := j.due.IsZero() || j.Busy; {
	case j.at > 0 && out:
		heap.Remove(q, j.at-1)
	case j.at > 0:
		heap.Fix(q, j.at-1)
	case !out:
		heap.Push(q, j)
	}
}

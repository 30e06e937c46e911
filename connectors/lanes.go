package connectors

import (
	"context"
	"sync"
)

// Lanes run jobs: those of one key in sequence, those of different keys
// concurrently. If a job fails, the waiting jobs of its key are dropped, so
// that none overtakes it: the platform redelivers them all.
type Lanes struct {
	slots chan struct{} // one for each job inside

	mu      sync.Mutex
	closed  bool
	waiting map[string][]func() error // an entry exists while the lane is busy
	busy    sync.WaitGroup
}

// NewLanes returns lanes that hold at most limit jobs, running and waiting.
func NewLanes(limit int) *Lanes {
	return &Lanes{slots: make(chan struct{}, limit), waiting: make(map[string][]func() error)}
}

// Do enqueues a job. It blocks while the lanes are full, and drops the job if
// ctx is done or the lanes are closed.
func (l *Lanes) Do(ctx context.Context, key string, job func() error) {
	select {
	case l.slots <- struct{}{}:
	case <-ctx.Done():
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		<-l.slots // never blocks: the slot is ours
		return
	}
	if jobs, busy := l.waiting[key]; busy {
		l.waiting[key] = append(jobs, job)
		return
	}
	l.waiting[key] = nil
	l.busy.Go(func() { l.work(key, job) })
}

func (l *Lanes) work(key string, job func() error) {
	for job != nil {
		err := job()
		<-l.slots
		job = l.next(key, err != nil)
	}
}

// next takes the next job of a lane, or ends the lane.
func (l *Lanes) next(key string, failed bool) func() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	jobs := l.waiting[key]
	if failed || l.closed {
		for range jobs {
			<-l.slots
		}
		jobs = nil
	}
	if len(jobs) == 0 {
		delete(l.waiting, key)
		return nil
	}
	l.waiting[key] = jobs[1:]
	return jobs[0]
}

// Close drops waiting jobs and returns when the running ones have ended.
func (l *Lanes) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.busy.Wait()
}

package cron

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/schedule"
	"github.com/claybot/claybot/storage"
)

const (
	// upkeepTime is how often the facts are updated: the ledger prunes old rows, and
	// then only the facts record which instants are settled.
	upkeepTime = 24 * time.Hour
	// followEvery is how often a member reads the state of runs on other
	// members.
	followEvery = 15 * time.Second
	// asideAtOnce is how many folders of finished tasks are moved while the files are
	// locked, before others get their turn.
	asideAtOnce = 100
)

// A loop implements schedule.Work.
type loop struct {
	cfg    *Config
	sched  *schedule.Scheduler
	table  *table
	folder *dir

	upkept, followed time.Time // by the monotonic clock
	last             time.Time // on the wall
}

var _ schedule.Work = (*loop)(nil)

// Open implements schedule.Work: it reads the ledger and the files.
func (l *loop) Open(ctx context.Context) error {
	l.upkept, l.followed, l.last = time.Now(), time.Now(), l.sched.Now()
	b := l.table
	var err error
	if b.restored, err = connectors.Restored(ctx, l.cfg.Ledger, l.last); err != nil {
		return err
	}
	rows, err := l.cfg.Ledger.LastFirings(ctx)
	if err != nil {
		return err
	}
	if rows == nil {
		rows = make(map[string]storage.LedgerRow)
	}
	l.sched.Mu.Lock()
	b.tasks, b.files = make(map[string]*task), make(map[string]file)
	b.over, b.seen = nil, nil
	l.sched.Mu.Unlock()
	if err := b.facts.load(ctx); err != nil {
		return err
	}
	return b.scan(ctx, rows, true)
}

// Step implements schedule.Work.
func (l *loop) Step(ctx context.Context, look bool) (err error) {
	if look {
		err = l.sched.Locked(ctx, func() error {
			return errors.Join(l.table.scan(ctx, nil, false), l.table.wake(ctx))
		})
	}
	if time.Since(l.upkept) >= upkeepTime {
		l.upkept = time.Now()
		l.try(ctx, "cannot save what is known of the tasks", func() error { return l.table.facts.settled(ctx, l.table.tasks) })
	}
	if time.Since(l.followed) >= followEvery {
		l.followed = time.Now()
		l.follow(ctx)
	}
	for over := range slices.Chunk(l.table.settle(), asideAtOnce) {
		l.try(ctx, "cannot put the folders of finished tasks aside", func() error { return l.putAside(ctx, over) })
	}
	now := l.sched.Now()
	if l.last.Sub(now) > maxSetBack {
		l.table.turnBack(now)
	}
	l.last = now
	return err
}

// try calls do with the files locked, and logs its error.
func (l *loop) try(ctx context.Context, what string, do func() error) {
	if err := l.sched.Locked(ctx, do); err != nil && ctx.Err() == nil {
		l.sched.Log.Warn("failed to save task files", "what", what, "err", err)
	}
}

// putAside moves the folders of tasks to .done, or leaves that to the next
// start if it fails. The caller holds the lock of the files.
func (l *loop) putAside(ctx context.Context, tasks []*task) error {
	var moved []*task
	var failed []error
	for _, t := range tasks {
		l.sched.Mu.Lock()
		slug, gone := t.slug, t.gone || !t.spent
		version := l.table.files[slug].version
		l.sched.Mu.Unlock()
		if gone {
			continue
		}
		if err := l.folder.putAway(ctx, slug, version); err != nil {
			failed = append(failed, fmt.Errorf("task %s: %w", slug, err))
			continue
		}
		moved = append(moved, t)
	}
	if len(moved) > 0 {
		failed = append(failed, l.table.scan(ctx, nil, true))
	}
	l.sched.Mu.Lock()
	defer l.sched.Mu.Unlock()
	for _, t := range moved {
		if !t.gone && t.spent { // its file has changed
			l.table.over = append(l.table.over, t)
		}
	}
	return errors.Join(failed...)
}

// follow reads the ends of runs on other members, for tasks to which the end
// matters.
func (l *loop) follow(ctx context.Context) {
	waits := func(t *task) bool {
		return t.unsettled && !t.job.Busy && (t.def.spec.Once || t.def.spec.Retries > 0)
	}
	waiting := make(map[string]*task)
	l.sched.Mu.Lock()
	for uid, t := range l.table.tasks {
		if waits(t) {
			waiting[uid] = t
		}
	}
	l.sched.Mu.Unlock()
	for uid, t := range waiting {
		row, err := newestRow(ctx, l.cfg.Ledger, uid)
		if err != nil {
			if ctx.Err() == nil {
				l.sched.Log.Warn("failed to read the ledger", "err", err)
			}
			return
		}
		l.sched.Mu.Lock()
		if row != nil && !t.gone && waits(t) {
			l.table.resume(t, *row)
		}
		l.sched.Mu.Unlock()
	}
}

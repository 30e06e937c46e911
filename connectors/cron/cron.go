package cron

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/schedule"
	"github.com/claybot/claybot/storage"
)

// Name is what the connector is called.
const Name = "cron"

const (
	usualPoll = 2 * time.Second
	// posters is how many firings are posted at once.
	posters = 32
	// lanes keep posts to one agent in order.
	lanes = 64
)

// Config is what a Cron works with. Dir, Tree, Claims, Node, Ledger, Marks and Index
// are needed.
type Config struct {
	// Dir is where gate commands run: in the folder files of the task's folder.
	Dir string
	// Tree has the tasks. All members of a cluster share it; one that needs to Run
	// somebody else runs.
	Tree *storage.Mirror
	// TaskDir is the directory of the tasks that agents are told of; empty: each node
	// has another.
	TaskDir string
	// Claims keep several nodes from asking one gate at once, with Node as the id
	// of this one at the moment.
	Claims storage.Claims
	Node   func() string

	Zone   func() *time.Location // of tasks without one; nil: UTC
	Ledger storage.Ledger
	Marks  storage.Checkpoints // says when the store was restored
	// Index finds the agents that tasks name; storage.Index has it.
	Index interface {
		IndexedDescriptor(ctx context.Context, id claybot.AgentID) (claybot.Descriptor, error)
	}
	// Gates says that gate commands may run on this machine.
	Gates bool
	// Known reports whether a connector is configured; nil: all are.
	Known func(connector string) bool
	// Notice tells a sentence to the person who owns a task, or to the one who
	// wrote last when nobody does; once for each key. nil: only the log is told.
	Notice func(ctx context.Context, owner, key, text string) error
	// Unusable reports whether the agent of a descriptor cannot be used at present, so
	// that the ledger says why its run is still under way; nil: that is not known.
	Unusable func(claybot.Descriptor) bool
	Log      *slog.Logger // nil: no log

	// Poll is the time between two looks at the files; 0 means 2 s.
	Poll time.Duration
	// Now is the wall clock, for tests of a clock that jumps; nil: time.Now.
	Now func() time.Time
}

// A Cron fires tasks. It is safe for concurrent use.
type Cron struct {
	cfg  Config
	base *schedule.Base
	now  func() time.Time
	// Of whoever holds the lock of base.
	seen     <-chan struct{}      // closed: a file has changed since the last scan
	seenZone string               // of that scan
	order    [lanes]chan struct{} // each held while a message is posted

	mu       sync.Mutex
	live     *running // nil: Run is not running
	tasks    map[string]*task
	queue    queue
	files    map[string]file // by slug
	facts    map[string]fact // by uid
	aside    map[string]bool // uids whose facts are in goneFolder
	failing  string          // why the last firing could not be posted
	failedAt time.Time
	ended    []ending  // that the loop has not seen yet
	over     []*task   // whose folders are to be put aside
	wake     time.Time // until when the loop sleeps
	// restored is when the store was last put back to an earlier state, which Run finds
	// out before all else: no instant up to then fires.
	restored time.Time
}

var (
	_ connectors.Connector = (*Cron)(nil)
	_ connectors.Follower  = (*Cron)(nil)
)

// running is what exists while Run runs.
type running struct {
	ctx     context.Context
	handler connectors.Handler
	jobs    chan *task
	work    sync.WaitGroup // of workers and gates
}

// New makes a Cron; nothing happens before Run.
func New(cfg Config) *Cron {
	c := &Cron{cfg: cfg, base: schedule.New(Name, "task", cfg.Claims, cfg.Node, cfg.Log)}
	clock := cfg.Now
	if clock == nil {
		clock = time.Now
	}
	c.now = func() time.Time { return clock().Round(0) } // what the wall shows, also when it is set
	if c.cfg.Poll == 0 {
		c.cfg.Poll = usualPoll
	}
	for i := range c.order {
		c.order[i] = make(chan struct{}, 1)
	}
	return c
}

// Name implements connectors.Connector.
func (c *Cron) Name() string { return Name }

// Health implements connectors.Connector.
func (c *Cron) Health() connectors.Health { return c.base.Health() }

// Run implements connectors.Connector. It may be called again after it has
// returned.
func (c *Cron) Run(ctx context.Context, h connectors.Handler) error {
	ctx, cancel := context.WithCancel(ctx)
	r, err := c.start(ctx, h)
	if err != nil {
		cancel()
		if context.Cause(ctx) == nil || !errors.Is(err, context.Cause(ctx)) {
			c.base.Pulse.Fail("the tasks cannot be read: " + storage.Plain(err))
		}
		return fmt.Errorf("start cron: %w", err)
	}
	c.base.Pulse.OK()
	for range posters {
		r.work.Go(func() { c.post(r) })
	}
	err = c.loop(r)
	c.mu.Lock()
	c.live = nil
	c.mu.Unlock()
	cancel()
	r.work.Wait()
	return err
}

// start reads what survived: the ledger and the files.
func (c *Cron) start(ctx context.Context, h connectors.Handler) (*running, error) {
	r := &running{ctx: ctx, handler: h, jobs: make(chan *task, 8*posters)}
	var err error
	if c.restored, err = connectors.Restored(ctx, c.cfg.Marks, c.now()); err != nil {
		return nil, err
	}
	rows, err := c.cfg.Ledger.LastFirings(ctx)
	if err != nil {
		return nil, err
	}
	if rows == nil {
		rows = make(map[string]storage.LedgerRow)
	}
	err = c.base.Locked(ctx, func() error {
		c.mu.Lock()
		c.tasks, c.files = make(map[string]*task), make(map[string]file)
		c.queue, c.over, c.seen = nil, nil, nil
		c.mu.Unlock()
		c.base.SetProblems(nil)
		err := c.loadFacts(ctx)
		if err == nil {
			err = c.scan(ctx, rows, true)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.live = r
	c.mu.Unlock()
	return r, nil
}

// loop hands out what is due until ctx is done.
func (c *Cron) loop(r *running) error {
	scanned, upkept, followed := time.Now(), time.Now(), time.Now() // not c.now: a clock that is set must not keep files from being seen
	last := c.now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return context.Cause(r.ctx)
		case <-timer.C:
		case <-c.base.Kicked():
		}
		if time.Since(scanned) >= c.cfg.Poll {
			scanned = time.Now()
			c.look(r)
		}
		if time.Since(upkept) >= upkeepTime {
			upkept = time.Now()
			c.upkeep(r)
		}
		if time.Since(followed) >= followEvery {
			followed = time.Now()
			c.follow(r, false)
		}
		c.settle(r)
		now := c.now()
		if last.Sub(now) > maxSetBack {
			c.turnBack(now)
		}
		last = now
		if err := c.handOut(r, now); err != nil {
			return err
		}
		timer.Reset(c.pause(scanned))
	}
}

// look reads changed files. An error of the disk is told and tried again.
func (c *Cron) look(r *running) {
	err := c.base.Locked(r.ctx, func() error { return c.scan(r.ctx, nil, false) })
	c.mu.Lock()
	failing := c.failing
	if time.Since(c.failedAt) > 2*mostPause { // its task is gone, or it was given up
		failing = ""
	}
	c.mu.Unlock()
	switch {
	case r.ctx.Err() != nil:
	case err != nil:
		c.base.Log.Warn("cannot read the tasks", "err", err)
		c.base.Pulse.Fail("the tasks cannot be read: " + storage.Plain(err))
	case failing != "":
		c.base.Pulse.Fail("a task cannot be started: " + failing)
	default:
		c.base.Pulse.OK()
	}
}

// handOut gives the tasks that are due at now to the workers.
func (c *Cron) handOut(r *running, now time.Time) error {
	for {
		c.mu.Lock()
		t := c.queue.pop(now)
		c.mu.Unlock()
		if t == nil {
			return nil
		}
		select {
		case r.jobs <- t:
		case <-r.ctx.Done():
			return context.Cause(r.ctx)
		}
	}
}

// pause is how long nothing is to be done, and makes known until when.
func (c *Cron) pause(scanned time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	wait := time.Until(scanned.Add(c.cfg.Poll))
	if t := c.queue.first(); t != nil {
		wait = min(wait, t.due.Sub(now))
	}
	wait = max(wait, 0)
	c.wake = now.Add(wait)
	return wait
}

// post is a worker: it fires one task after another.
func (c *Cron) post(r *running) {
	for {
		select {
		case <-r.ctx.Done():
			return
		case t := <-r.jobs:
			c.fire(r, t)
		}
	}
}

// lane waits until nobody else posts to the agent and returns how to let others.
func (c *Cron) lane(ctx context.Context, d claybot.Descriptor) (func(), error) {
	h := uint32(2166136261) // FNV-1a
	for _, part := range [...]string{d.UID, d.Connector, d.ChannelID, d.UserID} {
		for i := range len(part) {
			h = (h ^ uint32(part[i])) * 16777619
		}
	}
	l := c.order[h%lanes]
	select {
	case l <- struct{}{}:
		return func() { <-l }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

package agentsystem

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/cluster"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/profiles"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/worker"
)

// A dispatcher gives every due agent to a worker, at most limits.MaxRuns at a time.
type dispatcher struct {
	inboxes  *inbox.Inboxes
	store    storage.Inbox
	worker   *worker.Worker
	profiles *profiles.Profiles
	members  *cluster.Membership
	limits   Limits
	log      *slog.Logger
	slots    chan struct{} // one of each worker that does not only wait
	queue    *queue
	workers  sync.WaitGroup

	mu      sync.Mutex
	running bool // workers may start
}

// post stores a message. If it finds its agent idle and there is room here, its run begins
// in the same commit, and begin starts the worker; call it once the message is accepted.
func (d *dispatcher) post(ctx context.Context, agent claybot.Agent, p storage.Posting) (done storage.Posted, begin func(), err error) {
	began := time.Now()
	slot := d.reserve(agent, &p)
	done, err = d.inboxes.Post(ctx, p)
	if err == nil && done.Added && done.Skipped == "" && done.Started == nil {
		d.queue.enter(ctx, agent, p.Message)
	}
	if slot == nil {
		return done, func() {}, err
	}
	if err != nil || done.Started == nil {
		slot()
		d.workers.Done()
		return done, func() {}, err
	}
	box := d.inboxes.Opened(ctx, *done.Started, began)
	d.queue.leave(agent.ID)
	return done, func() {
		go func() { // reserve has added it to the workers
			defer d.workers.Done()
			defer slot()
			defer box.Close()
			defer d.queue.end(agent.ID)
			d.worker.Work(box, slot)
		}()
	}, nil
}

// atOnce is up to how many runs a message begins its run where it was posted although there
// are other members: more are shared with them.
const atOnce = 8

// reserve reserves a worker for the run that a message may begin, and says so in its
// posting. slot gives its slot back; nil: the message waits for Next.
func (d *dispatcher) reserve(agent claybot.Agent, p *storage.Posting) (slot func()) {
	if p.Skip != "" || p.Message.Type != claybot.MessageUser || d.members.Others() > 0 && len(d.slots) >= atOnce {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.running || d.full() {
		return nil
	}
	if p.Start = d.worker.Starting(agent, p.Message); p.Start == nil {
		return nil
	}
	select {
	case d.slots <- struct{}{}:
	default:
		p.Start = nil
		return nil
	}
	d.workers.Add(1)
	return sync.OnceFunc(func() { <-d.slots })
}

// full reports whether no worker may start now.
func (d *dispatcher) full() bool {
	return d.worker.Health.Room(cap(d.slots)-len(d.slots), len(d.slots)) == 0
}

// work says whether workers may start.
func (d *dispatcher) work(running bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.running = running
}

// run returns when ctx is done and all workers have ended, or with the store's error
// after three in a row of a store that no other process can repair.
func (d *dispatcher) run(ctx context.Context) error {
	defer d.end()
	d.work(true)
	d.queue.works(true)
	failures := 0
	for {
		free, err := d.room(ctx)
		if err != nil {
			return err
		}
		if free == 0 {
			claybot.Sleep(ctx, worker.HealthCheckEvery)
			continue
		}
		due, err := d.inboxes.Next(ctx, min(free, 64), d.limits.MaxBatch)
		if err != nil || len(due) > 0 { // else nothing was written
			d.worker.Health.Stored(err)
		}
		switch {
		case ctx.Err() != nil:
			d.start(ctx, due)
			return context.Cause(ctx)
		case err != nil:
			if d.members.Final(err) {
				if failures++; failures == 3 {
					return fmt.Errorf("the store fails: %w", err)
				}
			}
			if storage.ClassOf(err) == storage.ClassMember {
				d.worker.Health.Met("", err)
			}
			d.log.Error("failed to look for work, retrying", "err", err)
			claybot.Sleep(ctx, time.Second)
			continue
		}
		failures = 0
		d.worker.Queue(ctx, due)
		d.start(ctx, due)
	}
}

// room blocks until at least one worker may start and returns how many may; 0: ask again
// in a moment.
func (d *dispatcher) room(ctx context.Context) (int, error) {
	select {
	case d.slots <- struct{}{}:
		<-d.slots
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	free := cap(d.slots) - len(d.slots)
	if d.members.Others() > 0 { // which may take what would only wait here
		var err error
		if free, err = d.worker.Recovery.RoomFor(ctx, free); err != nil {
			return 0, err
		}
	}
	return d.worker.Health.Room(free, len(d.slots)), nil
}

// start gives each agent to a worker. The worker may call leave to give its slot to
// another one while it only waits. Once ctx is done, it waits for no slot: the grace ends all workers.
func (d *dispatcher) start(ctx context.Context, due []*inbox.AgentInbox) {
	for _, b := range due {
		leave := func() {}
		select {
		case d.slots <- struct{}{}:
			leave = sync.OnceFunc(func() { <-d.slots })
		case <-ctx.Done():
		}
		d.queue.leave(b.Lease.Agent)
		d.workers.Go(func() {
			defer leave()
			defer b.Close()
			defer d.queue.end(b.Lease.Agent)
			d.worker.Work(b, leave)
		})
	}
}

// end gives the workers their grace, then ends them. The grace is short when other
// members are there, which resume at once what is cut here.
func (d *dispatcher) end() {
	d.work(false)
	d.queue.works(false)
	d.worker.Drain()
	grace := d.limits.Grace
	if d.members.Others() > 0 {
		grace = min(grace, d.limits.HandOver)
	}
	late := time.AfterFunc(grace, func() { d.inboxes.End(inbox.ErrShutdown) })
	defer late.Stop()
	d.workers.Wait()
	d.queue.signs.Wait()
}

// reschedule recomputes the due times of what waits for an agent; of all when id is
// empty.
func (d *dispatcher) reschedule(ctx context.Context, id claybot.AgentID) error {
	if err := d.store.Reschedule(ctx, id, d.profiles.WaitOf); err != nil {
		return fmt.Errorf("reschedule waiting messages: %w", err)
	}
	d.inboxes.Wake()
	return nil
}

// resume is a loop that runs once: what makes the agents that are due now others than those that the last
// process left, such as the start of one that was stopped, may have come when that died.
func (d *dispatcher) resume(ctx context.Context) {
	if err := d.reschedule(ctx, ""); err != nil && ctx.Err() == nil {
		d.log.Error("failed to look at waiting messages; those of agents that were stopped are taken in a while", "err", err)
	}
}

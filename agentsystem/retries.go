package agentsystem

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/worker"
)

const (
	// parkingClaim is the claim of the member that retries parked messages.
	parkingClaim = "parking"
	// lookParked is how often a member looks for messages that others have parked.
	lookParked = 5 * time.Second
	// retriesAtOnce is how many agents are tried concurrently.
	retriesAtOnce = 32
)

// retryAll posts parked messages as soon as their agents can be used, until ctx is done.
// One member at a time does so, for as long as there are any.
func (p *parking) retryAll(ctx context.Context) {
	for ctx.Err() == nil {
		woken := p.counts.parked.Next()
		_, err := p.counts.Count(ctx)
		var some []storage.ParkedAgent // the totals count no messages of unknown users
		if err == nil {
			some, err = p.store.ParkedAgents(ctx, 1)
		}
		if err == nil && len(some) > 0 {
			if err = p.retryClaimed(ctx); err == nil {
				continue
			}
		}
		if err == nil {
			select {
			case <-ctx.Done():
			case <-woken:
			case <-p.members.Elsewhere(lookParked):
			}
			continue
		}
		if ctx.Err() == nil && !errors.Is(err, storage.ErrHeld) {
			p.log.Debug("failed to retry parked messages, retrying", "err", err)
		}
		select {
		case <-ctx.Done():
		case <-woken:
			claybot.Sleep(ctx, time.Second)
		case <-time.After(lookParked):
		}
	}
}

// retryClaimed retries parked messages until none is left, while this member has the
// claim.
func (p *parking) retryClaimed(ctx context.Context) error {
	hold, err := p.members.Claim(ctx, parkingClaim)
	if err != nil {
		return err
	}
	mine, free := hold.Context(ctx)
	defer free()
	r := retries{parking: p, next: make(map[string]time.Time), slots: make(chan struct{}, retriesAtOnce)}
	err = r.run(mine)
	r.wg.Wait()
	if yieldErr := hold.Yield(ctx, true); yieldErr != nil {
		p.log.Warn("failed to release the claim of parked messages; it expires with the lease", "err", yieldErr)
	}
	return err
}

// retries are the tries of the member that has the claim.
type retries struct {
	parking *parking
	wg      sync.WaitGroup
	slots   chan struct{}

	mu   sync.Mutex
	next map[string]time.Time // when an agent is tried again; the zero time: it is being tried
}

// run tries each agent with parked messages when its time has come, until there is none.
// An agent whose try takes long holds up no other.
func (r *retries) run(ctx context.Context) error {
	for ctx.Err() == nil {
		woken := r.parking.counts.parked.Next()
		if _, err := r.parking.counts.Count(ctx); err != nil {
			return err
		}
		agents, err := r.parking.store.ParkedAgents(ctx, storage.MaxParked)
		if err != nil || len(agents) == 0 {
			return err
		}
		look := time.Now().Add(lookParked)
		for _, a := range agents {
			if at := r.try(ctx, a.Key); at.Before(look) {
				look = at
			}
		}
		select {
		case <-ctx.Done():
		case <-woken:
			claybot.Sleep(ctx, worker.HealthCheckEvery)
		case <-time.After(time.Until(look)):
		}
	}
	return context.Cause(ctx)
}

// try starts a try for the agent with a key when its time has come, and returns when to
// look again.
func (r *retries) try(ctx context.Context, key string) time.Time {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	at, known := r.next[key]
	switch {
	case known && at.IsZero():
		return now.Add(lookParked) // its end wakes the loop
	case known && at.After(now):
		return at
	}
	select {
	case r.slots <- struct{}{}:
	default:
		return now.Add(worker.HealthCheckEvery)
	}
	r.next[key] = time.Time{}
	r.wg.Go(func() {
		defer func() { <-r.slots }()
		wait := r.attempt(ctx, key)
		r.mu.Lock()
		r.next[key] = time.Now().Add(wait)
		r.mu.Unlock()
		r.parking.counts.parked.Raise()
	})
	return now.Add(lookParked)
}

// attempt tries to post what is parked for the agent with a key, and returns how long to
// wait before the next try.
func (r *retries) attempt(ctx context.Context, key string) (wait time.Duration) {
	w, log := r.parking.worker, r.parking.log
	x, err := r.unpark(ctx, key)
	if err == nil {
		log.Info("no parked messages left for the agent", "connector", claybot.DescriptorOf(key).Connector, "last", x.Message.ID)
		w.Faults.Over(key)
		r.parking.inboxes.Wake()
		return 0
	}
	if ctx.Err() != nil {
		return time.Second
	}
	if errors.Is(err, errUnapproved) { // no fault
		return lookUnapproved
	}
	if storage.ClassOf(err) == storage.ClassMember {
		w.Health.Met(key, err)
	}
	wait, notify, _ := w.Faults.Met(key, "", err)
	log.Debug("failed to post parked messages", "connector", x.To.Connector, "err", connectors.OneLine(err.Error(), 500), "in", wait)
	if x.Message.ID == "" { // not even that can be read
		x = storage.Parked{To: claybot.DescriptorOf(key), Episode: claybot.MessageID(fmt.Sprintf("%s/%d", key, time.Now().Unix()/3600))}
	}
	if !notify || x.Damaged != nil || storage.ClassOf(err) == storage.ClassStore {
		return wait
	}
	if err := w.NotifyFault(ctx, key, x.To, x.Message, x.Episode); err != nil {
		log.Warn("failed to notify the user of a parked message, retrying", "err", err)
		return min(wait, time.Second)
	}
	return wait
}

// unpark is parking.unpark; a panic becomes an error.
func (r *retries) unpark(ctx context.Context, key string) (x storage.Parked, err error) {
	defer func() {
		if v := recover(); v != nil {
			r.parking.meter.Panicked("parking")
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	return r.parking.unpark(ctx, key)
}

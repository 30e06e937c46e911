package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// kills starts the daemon and kills it, again and again. The first life lasts until all platforms keep
// what people write: what they do not keep, nothing can promise.
func (r *crashRig) kills(ctx context.Context) error {
	for k := 1; k <= r.crash && ctx.Err() == nil; k++ {
		p, err := start(ctx, r.bin, r.dir, r.env...)
		if err != nil {
			return err
		}
		err = p.waitReady(slowReady)
		if err == nil && k == 1 {
			err = r.begin(ctx, p)
		}
		if err != nil {
			return fmt.Errorf("start after %d kills: %w", k-1, errors.Join(err, p.kill()))
		}
		r.live(ctx, k)
		r.actor.moments.kill(time.Now())
		if err := p.kill(); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// begin waits until all platforms keep what people write. Nothing is said meanwhile: however long it
// takes, no more messages wait for their answers.
func (r *crashRig) begin(ctx context.Context, p *process) error {
	r.hush.Lock()
	defer r.hush.Unlock()
	ctx, stop := p.guard(ctx)
	defer stop()
	return r.meet(ctx)
}

// live returns when the k-th kill is due. Half of them come at any time, a
// quarter while a subagent works, and a quarter when one has just failed.
func (r *crashRig) live(ctx context.Context, k int) {
	live := 2*time.Millisecond + time.Duration(r.rng.Int64N(int64(killAfter)))
	miss := time.Duration(r.rng.Int64N(int64(aimMiss)))
	switch {
	case k%breatheEach == 0:
		fmt.Printf("crash: %d kills\n", k)
		live += breathe
	case k%4 == 1:
		live = aim(ctx, r.actor.begun, aimFor, nil) + miss
	case k%4 == 3:
		live = aim(ctx, r.actor.refused, aimFor, nil) + miss/4
	}
	pause(ctx, live)
}

// aim waits for a moment to come and returns how far away it is; not at all when
// there is none for so long. What is done first, if anything, is done when moments
// that have been are forgotten.
func aim(ctx context.Context, moments <-chan time.Time, limit time.Duration, first func()) time.Duration {
	select {
	case <-moments: // of an earlier life
	default:
	}
	if first != nil {
		first()
	}
	select {
	case at := <-moments:
		return time.Until(at)
	case <-time.After(limit):
	case <-ctx.Done():
	}
	return 0
}

// await waits until the platform keeps what is said, and reports whether it does: ctx may end before.
func (c *chat) await(ctx context.Context) bool {
	if c.met == nil {
		return true
	}
	select {
	case <-c.met:
		return true
	case <-ctx.Done():
		return false
	}
}

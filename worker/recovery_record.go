package worker

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// admit records who is on probation, and only then lets them begin.
func (r *Recovery) admit(in []*ticket) {
	if len(in) == 0 {
		return
	}
	r.save()
	for _, t := range in {
		close(t.ready)
		if t.alone {
			r.recordAlive(t)
		}
	}
}

// recordAlive records now and then that the process lives with a run that is alone, so
// that the next one knows how long it did.
func (r *Recovery) recordAlive(t *ticket) {
	r.after(max(aliveEvery, time.Since(t.since)/10), func() {
		r.mu.Lock()
		on := r.line.testing[t]
		r.mu.Unlock()
		if on {
			r.save()
			r.recordAlive(t)
		}
	})
}

// save records the runs on probation.
func (r *Recovery) save() {
	r.boot.Record(false, func(b *storage.Boot) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.closed || !r.active {
			return
		}
		b.Testing, b.Parked, b.Alone, b.Since, b.Peak, b.LastAlive = nil, nil, false, 0, r.limits.peak, claybot.Now()
		for _, t := range r.line.waiting {
			if !t.charges.clear() && !t.charges.GivenUp() {
				b.Parked = append(b.Parked, t.agent)
			}
		}
		for t := range r.line.testing {
			if t.alone {
				b.Alone, b.Since = true, claybot.At(t.since)
				b.Testing = slices.Insert(b.Testing, 0, t.agent)
			} else {
				b.Testing = append(b.Testing, t.agent)
			}
		}
	})
}

// A BootRecord is what a process leaves about itself for the next one.
type BootRecord struct {
	boots storage.Boots // nil: no record is kept
	log   *slog.Logger
}

// Record changes the record, if one is kept.
func (b *BootRecord) Record(sync bool, change func(*storage.Boot)) {
	if b.boots == nil {
		return
	}
	if err := b.boots.Update(sync, change); err != nil {
		b.log.Warn("failed to write the boot record", "err", err)
	}
}

// after calls f once d has passed, unless the recovery is closed by then.
func (r *Recovery) after(d time.Duration, f func()) *time.Timer {
	return time.AfterFunc(d, func() {
		r.mu.Lock()
		if r.closed {
			r.mu.Unlock()
			return
		}
		r.calls.Add(1)
		r.mu.Unlock()
		defer r.calls.Done()
		f()
	})
}

// prove notifies the waiters that the process survives.
func (r *Recovery) prove() {
	select {
	case <-r.Proven:
	default:
		close(r.Proven)
	}
}

// release admits every run.
func (r *Recovery) release() {
	for _, t := range r.line.waiting {
		close(t.ready)
	}
	r.line.waiting = nil
}

// Run ends the recovery once the process has lived long enough and no suspect is left.
// Then, and once no run is at work any more that was at work when the process before
// died, the unclean starts are no longer counted. At the end of ctx it closes the
// recovery and empties the boot record: what dies later was not on trial.
func (r *Recovery) Run(ctx context.Context) {
	counts := true
	for wait := cleanAfter; ctx.Err() == nil; {
		claybot.Sleep(ctx, wait)
		if ctx.Err() != nil {
			break
		}
		unclean, calm := r.settle()
		if !calm {
			wait, counts = probationMin, true
			continue
		}
		wait = lateAliveEvery
		if counts {
			counts = unclean > 0
			r.boot.Record(!counts, func(b *storage.Boot) {
				*b = storage.Boot{Unclean: b.Unclean, Started: b.Started, Store: b.Store, Filled: b.Filled, Full: b.Full, LastAlive: claybot.Now()}
				if !counts {
					b.Unclean = 0
				}
			})
		}
	}
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.calls.Wait()
	r.boot.Record(true, func(b *storage.Boot) {
		*b = storage.Boot{Unclean: b.Unclean, Started: b.Started, Store: b.Store, Filled: b.Filled, Full: b.Full}
	})
}

// settle ends the recovery where nothing is left to find out, which is calm, and returns
// how many unclean starts count from now on.
func (r *Recovery) settle() (unclean int, calm bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	suspect := func(t *ticket) bool { return t.suspect }
	if r.active && (time.Since(r.crash.began) < cleanAfter || slices.ContainsFunc(r.line.waiting, suspect) || slices.ContainsFunc(slices.Collect(maps.Keys(r.line.testing)), suspect)) {
		return r.crash.unclean, false
	}
	r.active, r.limits.total = false, 0
	r.prove()
	r.release()
	r.changed.Raise()
	for _, t := range r.line.tickets {
		if t.resumed {
			return r.crash.unclean, true
		}
	}
	r.crash.unclean = 0
	clear(r.crash.lost)
	return 0, true
}

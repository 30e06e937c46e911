package worker

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// admit records who is on probation, and only then lets them begin.
func (r *Ramp) admit(in []*ticket) {
	if len(in) == 0 {
		return
	}
	r.save()
	for _, t := range in {
		close(t.ready)
		if t.alone {
			r.beat(t)
		}
	}
}

// beat records now and then that the process lives with a run that is alone, so
// that the next one knows how long it did.
func (r *Ramp) beat(t *ticket) {
	r.after(max(beatEvery, time.Since(t.since)/10), func() {
		r.mu.Lock()
		on := r.testing[t]
		r.mu.Unlock()
		if on {
			r.save()
			r.beat(t)
		}
	})
}

// save records the runs on probation.
func (r *Ramp) save() {
	r.Record(false, func(b *storage.Boot) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.closed || !r.active {
			return
		}
		b.Testing, b.Parked, b.Alone, b.Since, b.Peak, b.Beat = nil, nil, false, 0, r.peak, claybot.Now()
		for _, t := range r.waiting {
			if !t.tries.clear() && !t.tries.GivenUp() {
				b.Parked = append(b.Parked, t.agent)
			}
		}
		for t := range r.testing {
			if t.alone {
				b.Alone, b.Since = true, claybot.At(t.since)
				b.Testing = slices.Insert(b.Testing, 0, t.agent)
			} else {
				b.Testing = append(b.Testing, t.agent)
			}
		}
	})
}

// Record changes the boot record, if one is kept.
func (r *Ramp) Record(sync bool, change func(*storage.Boot)) {
	if r.boots == nil {
		return
	}
	if err := r.boots.Update(sync, change); err != nil {
		r.log.Warn("failed to write the boot record", "err", err)
	}
}

// after calls f once d has passed, unless the ramp is closed by then.
func (r *Ramp) after(d time.Duration, f func()) *time.Timer {
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
func (r *Ramp) prove() {
	select {
	case <-r.Proven:
	default:
		close(r.Proven)
	}
}

// release lets everybody in.
func (r *Ramp) release() {
	for _, t := range r.waiting {
		close(t.ready)
	}
	r.waiting = nil
}

// Run ends the ramp once the process has lived long enough and no suspect is left.
// Then, and once no run is at work any more that was at work when the process before
// died, the unclean starts are no longer counted. At the end of ctx it closes the
// ramp and empties the boot record: what dies later was not on trial.
func (r *Ramp) Run(ctx context.Context) {
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
		wait = lateBeat
		if counts {
			counts = unclean > 0
			r.forget(counts)
		}
	}
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.calls.Wait()
	r.Record(true, func(b *storage.Boot) { *b = storage.Boot{Unclean: b.Unclean, Started: b.Started, Store: b.Store} })
}

// forget empties the boot record, but for the unclean starts if they count on.
func (r *Ramp) forget(counts bool) {
	r.Record(!counts, func(b *storage.Boot) {
		*b = storage.Boot{Unclean: b.Unclean, Started: b.Started, Store: b.Store, Beat: claybot.Now()}
		if !counts {
			b.Unclean = 0
		}
	})
}

// settle ends the ramp where nothing is left to find out, which is calm, and returns
// how many unclean starts count from now on.
func (r *Ramp) settle() (unclean int, calm bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	suspect := func(t *ticket) bool { return t.suspect }
	if r.active && (time.Since(r.began) < cleanAfter || slices.ContainsFunc(r.waiting, suspect) || slices.ContainsFunc(slices.Collect(maps.Keys(r.testing)), suspect)) {
		return r.unclean, false
	}
	r.active, r.total = false, 0
	r.prove()
	r.release()
	r.changed.Raise()
	for _, t := range r.tickets {
		if t.resumed {
			return r.unclean, true
		}
	}
	r.unclean = 0
	clear(r.lost)
	return 0, true
}

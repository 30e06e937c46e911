package worker

import (
	"cmp"
	"slices"
	"time"

	"github.com/claybot/claybot/inbox"
)

// schedule takes out of the queue whose turn it is. The caller admits them once it
// has let go of the lock.
func (r *Ramp) schedule() (in []*ticket) {
	if !r.active || r.closed {
		return nil
	}
	for now := time.Now(); ; {
		t := r.next(now)
		if t == nil || !r.fits(t, now) {
			return in
		}
		r.waiting = slices.DeleteFunc(r.waiting, func(w *ticket) bool { return w == t })
		t.admitted, t.since, t.alone = true, now, r.needsAlone(t)
		r.testing[t] = true
		r.working++
		r.peak = max(r.peak, r.working)
		t.timer = r.after(r.period, func() { r.clear(t, true) })
		if r.period > probationFirst {
			r.after(probationFirst, r.look) // for runs that wait for its first minute only
		}
		in = append(in, t)
	}
}

// needsAlone reports whether a run must be resumed alone.
func (r *Ramp) needsAlone(t *ticket) bool {
	return !t.tries.clear() || r.window < 2 && (t.suspect || r.elder() == nil)
}

// elder is the run that started alone and keeps only suspects waiting by now;
// nil when there is none.
func (r *Ramp) elder() *ticket {
	for x := range r.testing {
		if x.alone && time.Since(x.since) >= probationFirst {
			return x
		}
	}
	return nil
}

// width is how many runs in their first minute of probation there may be at once.
func (r *Ramp) width() int {
	if r.elder() != nil {
		return max(int(r.window), openWindow)
	}
	return int(r.window)
}

// fits reports whether one more run may resume.
func (r *Ramp) fits(t *ticket, now time.Time) bool {
	if r.total > 0 && float64(r.working) >= r.total {
		return false
	}
	young, alone := 0, false
	for x := range r.testing {
		if now.Sub(x.since) < probationFirst {
			young++
			alone = alone || x.alone
		}
	}
	if r.needsAlone(t) {
		return young == 0 && r.elder() == nil
	}
	return !alone && young < r.width()
}

// next is whose turn it is: the suspects before the others, and of these who took
// part in more crashes. It is nil when everybody has to wait.
func (r *Ramp) next(now time.Time) (best *ticket) {
	unseen, elder := len(r.suspects), r.elder() != nil
	for t := range r.testing {
		if t.suspect {
			unseen--
		}
	}
	for _, t := range r.waiting {
		if t.suspect {
			unseen--
		}
		if !r.due(t, now) {
			r.wake(r.began.Add(t.tries.Control()).Sub(now))
			continue
		}
		if elder && r.needsAlone(t) {
			continue
		}
		if best == nil || less(t, best) {
			best = t
		}
	}
	if best != nil && !best.suspect && unseen > 0 && r.unclean > 1 && now.Sub(r.began) < unseenLimit {
		r.wake(unseenLimit - now.Sub(r.began))
		return nil
	}
	return best
}

// less reports whether a goes before b.
func less(a, b *ticket) bool {
	if a.suspect != b.suspect {
		return a.suspect
	}
	return cmp.Compare(attempts(a.box), attempts(b.box)) > 0
}

func attempts(b *inbox.AgentInbox) int {
	if b.Run == nil {
		return 0
	}
	return b.Run.Attempts
}

// wake looks at the queue again after d, or sooner.
func (r *Ramp) wake(d time.Duration) {
	at := time.Now().Add(max(d, time.Millisecond))
	if r.wakes.After(time.Now()) {
		if !at.Before(r.wakes) {
			return
		}
		r.timer.Stop()
	}
	r.wakes, r.timer = at, r.after(time.Until(at), r.look)
}

// look lets in whose turn has come.
func (r *Ramp) look() {
	r.mu.Lock()
	in := r.schedule()
	r.mu.Unlock()
	r.admit(in)
}

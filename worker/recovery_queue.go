package worker

import (
	"cmp"
	"slices"
	"time"

	"github.com/claybot/claybot/inbox"
)

// schedule takes out of the queue whose turn it is. The caller admits them once it
// has let go of the lock.
func (r *Recovery) schedule() (in []*ticket) {
	if !r.active || r.closed {
		return nil
	}
	for now := time.Now(); ; {
		t := r.next(now)
		if t == nil || !r.fits(t, now) {
			return in
		}
		r.line.waiting = slices.DeleteFunc(r.line.waiting, func(w *ticket) bool { return w == t })
		t.admitted, t.since, t.alone = true, now, r.needsAlone(t)
		r.line.testing[t] = true
		r.limits.working++
		r.limits.peak = max(r.limits.peak, r.limits.working)
		t.timer = r.after(r.limits.period, func() { r.clear(t, true) })
		if r.limits.period > probationFirst {
			r.after(probationFirst, r.look) // for runs that wait for its first minute only
		}
		in = append(in, t)
	}
}

// needsAlone reports whether a run must be resumed alone.
func (r *Recovery) needsAlone(t *ticket) bool {
	return !t.charges.clear() || r.limits.window < 2 && (t.suspect || r.elder() == nil)
}

// elder is the run that started alone and keeps only suspects waiting by now;
// nil when there is none.
func (r *Recovery) elder() *ticket {
	for x := range r.line.testing {
		if x.alone && time.Since(x.since) >= probationFirst {
			return x
		}
	}
	return nil
}

// width is how many runs in their first minute of probation there may be at once.
func (r *Recovery) width() int {
	if r.elder() != nil {
		return max(int(r.limits.window), openWindow)
	}
	return int(r.limits.window)
}

// fits reports whether one more run may resume.
func (r *Recovery) fits(t *ticket, now time.Time) bool {
	if r.limits.total > 0 && float64(r.limits.working) >= r.limits.total {
		return false
	}
	young, alone := 0, false
	for x := range r.line.testing {
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
// part in more crashes. It is nil when every run has to wait.
func (r *Recovery) next(now time.Time) (best *ticket) {
	unseen, elder := len(r.line.suspects), r.elder() != nil
	for t := range r.line.testing {
		if t.suspect {
			unseen--
		}
	}
	for _, t := range r.line.waiting {
		if t.suspect {
			unseen--
		}
		if !t.due(r.crash.began, now) {
			r.wake(r.crash.began.Add(t.charges.Control()).Sub(now))
			continue
		}
		if elder && r.needsAlone(t) {
			continue
		}
		if best == nil || less(t, best) {
			best = t
		}
	}
	if best != nil && !best.suspect && unseen > 0 && r.crash.unclean > 1 && now.Sub(r.crash.began) < unseenLimit {
		r.wake(unseenLimit - now.Sub(r.crash.began))
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
func (r *Recovery) wake(d time.Duration) {
	at := time.Now().Add(max(d, time.Millisecond))
	if r.alarmed.at.After(time.Now()) {
		if !at.Before(r.alarmed.at) {
			return
		}
		r.alarmed.timer.Stop()
	}
	r.alarmed.at, r.alarmed.timer = at, r.after(time.Until(at), r.look)
}

// look lets in whose turn has come.
func (r *Recovery) look() {
	r.mu.Lock()
	in := r.schedule()
	r.mu.Unlock()
	r.admit(in)
}

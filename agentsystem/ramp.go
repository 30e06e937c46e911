package agentsystem

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/storage"
)

// How work is let in after an unclean start.
const (
	cleanAfter   = 5 * time.Minute // of life, after which a process counts as one that ended in order
	probationMin = 2 * time.Second
	probationMax = time.Minute
	firstWindow  = 64              // runs on probation at once to begin with, at most
	openWindow   = 16              // the same, once no suspect is left
	leastTotal   = 16              // runs at work at once, however often the process died
	unseenLimit  = 5 * time.Second // that others wait for suspects that do not show up
	beatEvery    = 100 * time.Millisecond
	controlMin   = 2 * time.Second
	controlMax   = 30 * time.Second
)

// A ramp decides how many runs may be at work after the process died, so that the
// run that killed it, if one did, is found without harm to the others.
//
// A run is on probation from the moment when it is let in until its pass ends or it
// has lived for a while: as long as the process before lived at most, because what
// killed it had begun and done its harm by then. The ramp lets in a few runs at
// once, those first that were on probation when the process died. The number
// doubles with the passes that survive. From the second unclean start in a row on it
// begins with a sixteenth of the suspects and lets it grow eight times slower, so that
// the suspects of one crash are less than a quarter of those of the crash before: of
// 4,000 runs the one that kills the process is alone at the fifth or sixth crash.
//
// A run that was alone on probation when the process died is tried with a control:
// the ramp lets the process live without that run for ten times as long as the run
// had lived, and then lets it in alone again. A process that is killed from outside
// most likely dies during the control, which makes the next one twice as long and
// charges nothing; one that dies at the same age of the run as before is charged to
// the run. Each charge doubles the next control. A run with maxAttempts charges is
// given up, so three times in a row the process must have lived well without it and
// died soon after it began. See tries.
//
// Without an unclean start a ramp lets everything in at once.
type ramp struct {
	boots    storage.Boots // nil: no record is kept
	log      *slog.Logger
	survived func(*ticket) // called once for each run that outlived its probation

	calls    sync.WaitGroup // of timers; added to while it is not closed
	changed  signal         // somebody was let in, or has left
	mu       sync.Mutex
	active   bool
	closed   bool
	unclean  int
	running  int // runs that were interrupted
	began    time.Time
	period   time.Duration // of a probation
	window   float64       // runs on probation at once
	step     float64       // by which one that survives widens it while suspects are left
	total    float64       // runs at work at once; 0: no limit
	suspects map[claybot.AgentID]bool
	fresh    bool            // nothing is known of suspects: all interrupted runs are
	lost     map[string]bool // members that died
	waiting  []*ticket       // in the order in which they came
	tickets  map[*inbox.Box]*ticket
	testing  map[*ticket]bool
	working  int
	peak     int
	timer    *time.Timer // for the next one whose control ends
	proven   chan struct{}
}

// A ticket is the way of one held agent through the ramp.
type ticket struct {
	box      *inbox.Box
	agent    claybot.AgentID
	tries    tries
	suspect  bool
	ready    chan struct{} // closed when it is let in
	admitted bool
	alone    bool
	since    time.Time
	timer    *time.Timer
}

func newRamp(boots storage.Boots, log *slog.Logger, survived func(*ticket)) *ramp {
	return &ramp{
		boots: boots, log: log, survived: survived, proven: make(chan struct{}), lost: make(map[string]bool),
		tickets: make(map[*inbox.Box]*ticket), testing: make(map[*ticket]bool), suspects: make(map[claybot.AgentID]bool),
	}
}

// start begins a ramp after unclean starts in a row: last is what the process before
// left, running how many runs are unfinished, and suspects which of the agents that
// were on probation still have one.
func (r *ramp) start(unclean, running int, last storage.Boot, suspects []claybot.AgentID) {
	if unclean == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.active, r.unclean, r.running, r.began = true, unclean, running, time.Now()
	lived := time.Duration(claybot.Now()-last.Started) * time.Millisecond
	r.period = min(max(2*lived, probationMin), probationMax)
	r.fresh = unclean == 1
	for _, id := range suspects {
		r.suspects[id] = true
	}
	if len(suspects) > 0 {
		running = len(suspects)
	}
	r.window, r.step = float64(running/4), 1
	if unclean > 1 {
		r.window, r.step = float64(running/16), 1.0/8
		if r.window < 1 {
			r.step = 0
		}
	}
	r.window = max(1, min(r.window, firstWindow))
	if unclean > 1 && last.Peak > 0 {
		r.total = max(leastTotal, float64(last.Peak/2))
	}
	if running == 0 {
		r.prove()
	}
	r.log.Warn("the process before did not end in order; runs are resumed a few at a time",
		"uncleanStarts", unclean, "suspects", running, "atOnce", int(r.window), "probation", r.period)
}

// windowAfter is how many runs may be on probation at once after members died, and by
// how much one that survives widens that.
func windowAfter(deaths int) (w, step float64) {
	w, step = firstWindow, 1
	for ; deaths > 1 && w > 1; deaths-- {
		w, step = w/4, step/4
	}
	if w <= 1 {
		return 1, 0
	}
	return w, step
}

// alarm begins a ramp, or narrows one, because another member died and its runs come
// here.
func (r *ramp) alarm(member string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lost[member] || r.closed {
		return
	}
	r.lost[member] = true
	r.unclean++
	w, step := windowAfter(r.unclean)
	if !r.active {
		r.active, r.period, r.window, r.step, r.total, r.fresh = true, probationMax/2, w, step, 0, true
	}
	r.began, r.window, r.step = time.Now(), min(r.window, w), min(r.step, step)
	r.log.Warn("another member did not end in order; its runs are resumed a few at a time", "member", member, "atOnce", int(r.window))
}

// isActive reports whether agents need a ticket.
func (r *ramp) isActive() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.active
}

// isTesting reports whether the run of an agent is on probation.
func (r *ramp) isTesting(b *inbox.Box) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tickets[b]
	return t != nil && r.testing[t]
}

// roomFor is how many of up to n agents are worth holding, where members share the
// store: what waits here could run elsewhere. It blocks until there is one, and fails
// with the cause of ctx.
func (r *ramp) roomFor(ctx context.Context, n int) (int, error) {
	for {
		changed := r.changed.next()
		r.mu.Lock()
		room := n
		if r.active {
			room = min(n, int(r.window)-len(r.waiting))
		}
		r.mu.Unlock()
		if room > 0 {
			return room, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// queue gives agents tickets, in an order that counts, and lets in who may begin.
// Without a ramp it does nothing.
func (r *ramp) queue(ts ...*ticket) {
	r.mu.Lock()
	for _, t := range ts {
		t.agent, t.ready = t.box.Lease.Agent, make(chan struct{})
		t.suspect = r.suspects[t.agent] || r.fresh && interrupted(t.box)
		if t.suspect {
			r.suspects[t.agent] = true
		}
		r.tickets[t.box] = t
		r.waiting = append(r.waiting, t)
	}
	if !r.active { // it ended a moment ago
		r.release()
	}
	parked := slices.ContainsFunc(r.waiting, func(t *ticket) bool { return !t.tries.clear() })
	in := r.schedule()
	r.mu.Unlock()
	if parked && len(in) == 0 {
		r.save()
	}
	r.admit(in)
}

// interrupted reports whether the run of an agent was begun and is not paused.
func interrupted(b *inbox.Box) bool { return b.Run != nil && b.Run.State == claybot.RunRunning }

// wait blocks until the agent of a box is let in: nil, also when the ramp does not
// know it. Else it is why the work on the agent is to end.
func (r *ramp) wait(b *inbox.Box, draining <-chan struct{}) error {
	r.mu.Lock()
	t := r.tickets[b]
	r.mu.Unlock()
	if t == nil {
		return nil
	}
	select {
	case <-t.ready:
		return nil
	case <-b.Context().Done():
		return context.Cause(b.Context())
	case <-draining:
		return ErrShutdown
	}
}

// leave says that the work on an agent has ended, in whatever way: the process
// lives. well says that nothing was wrong with it.
func (r *ramp) leave(b *inbox.Box, well bool) {
	r.mu.Lock()
	t := r.tickets[b]
	if t == nil {
		r.mu.Unlock()
		return
	}
	delete(r.tickets, b)
	r.waiting = slices.DeleteFunc(r.waiting, func(w *ticket) bool { return w == t })
	if t.admitted {
		r.working--
	}
	r.mu.Unlock()
	r.clear(t, well)
}

// clear ends the probation of a run that has survived it. well says that nothing
// was wrong with the run itself.
func (r *ramp) clear(t *ticket, well bool) {
	r.mu.Lock()
	known := r.testing[t]
	if known {
		delete(r.testing, t)
		delete(r.suspects, t.agent)
		t.timer.Stop()
		r.window += r.growth()
		if !r.open() {
			r.window = max(r.window, openWindow)
		}
		if r.total > 0 {
			r.total += 1.0 / 8
		}
		r.prove()
	}
	in := r.schedule()
	r.mu.Unlock()
	if known && well {
		r.survived(t)
	}
	if known && len(in) == 0 {
		r.save()
	}
	r.admit(in)
	r.changed.raise()
}

// growth is by how much one that survives widens the window.
func (r *ramp) growth() float64 {
	if !r.open() {
		return 1
	}
	return r.step
}

// open reports whether a suspect is left that could be found now; one that has been
// charged waits for its control.
func (r *ramp) open() bool {
	parked := 0
	for _, t := range r.waiting {
		if t.suspect && !r.due(t, time.Now()) {
			parked++
		}
	}
	return len(r.suspects) > parked
}

// due reports whether the control of a run is over.
func (r *ramp) due(t *ticket, now time.Time) bool { return !now.Before(r.began.Add(t.tries.control())) }

// schedule takes out of the queue whose turn it is. The caller admits them once it
// has let go of the lock.
func (r *ramp) schedule() (in []*ticket) {
	if !r.active || r.closed {
		return nil
	}
	for now := time.Now(); ; {
		t := r.next(now)
		if t == nil || !r.fits(t) {
			return in
		}
		r.waiting = slices.DeleteFunc(r.waiting, func(w *ticket) bool { return w == t })
		t.admitted, t.since = true, now
		t.alone = !t.tries.clear() || r.window < 2
		r.testing[t] = true
		r.working++
		r.peak = max(r.peak, r.working)
		t.timer = r.after(r.period, func() { r.clear(t, true) })
		in = append(in, t)
	}
}

// fits reports whether one more run may be let in.
func (r *ramp) fits(t *ticket) bool {
	if r.total > 0 && float64(r.working) >= r.total {
		return false
	}
	if !t.tries.clear() || r.window < 2 {
		return len(r.testing) == 0
	}
	for x := range r.testing {
		if x.alone {
			return false
		}
	}
	return len(r.testing) < int(r.window)
}

// next is whose turn it is: the suspects before the others, and of these who took
// part in more crashes. It is nil when everybody has to wait.
func (r *ramp) next(now time.Time) (best *ticket) {
	unseen := len(r.suspects)
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
			r.wake(r.began.Add(t.tries.control()).Sub(now))
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

func attempts(b *inbox.Box) int {
	if b.Run == nil {
		return 0
	}
	return b.Run.Attempts
}

// wake looks at the queue again after d, or sooner.
func (r *ramp) wake(d time.Duration) {
	if r.timer != nil {
		r.timer.Stop()
	}
	r.timer = r.after(max(d, time.Millisecond), func() {
		r.mu.Lock()
		in := r.schedule()
		r.mu.Unlock()
		r.admit(in)
	})
}

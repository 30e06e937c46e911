package worker

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/storage"
)

// The limits of resuming work after an unclean shutdown.
const (
	cleanAfter     = 5 * time.Minute // of life, after which unclean starts are no longer in a row
	probationMin   = 2 * time.Second
	probationFirst = time.Minute      // at most, after the first two unclean starts in a row
	probationMost  = 10 * time.Minute // at most, however often the process died
	firstWindow    = 64               // runs on probation at once to begin with, at most
	smallWindow    = 8                // the same after one unclean start, at least
	openWindow     = 16               // the same, once no suspect is left
	leastTotal     = 16               // runs at work at once, however often the process died
	unseenLimit    = 5 * time.Second  // that others wait for suspects that do not show up
	beatEvery      = 100 * time.Millisecond
	lateBeat       = time.Minute // the same, once the ramp has ended
	lateFrom       = 6           // unclean starts in a row, after which a probation no longer grows
)

// A Ramp decides how many runs may be at work after the process died, so that the
// run that killed it, if one did, is found without harm to the others.
//
// A run is on probation from the moment when it is let in until its pass ends or it
// has lived for a while: as long as the process before lived at most, because what
// killed it had begun and done its harm by then. That is a minute at most after two
// unclean starts in a row, twice as long after each further one, up to ten minutes: a
// run that kills late is on probation at one of the next deaths. The ramp lets in a
// few runs at once, those first that were on probation when the process died. The
// number doubles with the passes that survive. From the second unclean start in a row on it
// begins with a sixteenth of the suspects and lets it grow eight times slower, so that
// the suspects of one crash are less than a quarter of those of the crash before: of
// 4,000 runs the one that kills the process is alone at the fifth or sixth crash.
//
// Once a run has been on probation for a minute, only suspects that have to be alone
// still wait for it. Other runs begin beside it.
//
// A run that started alone and was on probation when the process died is tried with
// a control: the ramp lets the process live without that run for longer than the run
// had lived, and then lets it in alone again. A process that is killed from outside
// most likely dies during the control, which makes the next one twice as long and
// charges nothing; one that dies at the same age of the run as before is charged to
// the run. Each charge doubles the next control. A run with maxAttempts charges is
// given up, so three times in a row the process must have lived well without it and
// died at that age of the run. See tries.
//
// Without an unclean start a ramp lets everything in at once.
type Ramp struct {
	boots    storage.Boots // nil: no record is kept
	log      *slog.Logger
	survived func(*ticket) // called once for each run that outlived its probation

	calls    sync.WaitGroup // of timers; added to while it is not closed
	changed  inbox.Signal   // a run was resumed, or has left
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
	late     bool            // unclean starts in a row no longer lengthen a probation, and the process before outlived it
	lost     map[string]bool // members that died
	waiting  []*ticket       // in the order in which they came
	tickets  map[*inbox.AgentInbox]*ticket
	testing  map[*ticket]bool
	working  int
	peak     int
	timer    *time.Timer // for the next one whose control ends, at
	wakes    time.Time
	Proven   chan struct{}
}

// A ticket is the way of one held agent through the ramp.
type ticket struct {
	box      *inbox.AgentInbox
	agent    claybot.AgentID
	tries    Tries
	suspect  bool
	resumed  bool          // its run was at work when the process died
	ready    chan struct{} // closed when it is let in
	admitted bool
	alone    bool
	since    time.Time
	timer    *time.Timer
}

func newRamp(boots storage.Boots, log *slog.Logger, survived func(*ticket)) *Ramp {
	return &Ramp{
		boots: boots, log: log, survived: survived, Proven: make(chan struct{}), lost: make(map[string]bool),
		tickets: make(map[*inbox.AgentInbox]*ticket), testing: make(map[*ticket]bool), suspects: make(map[claybot.AgentID]bool),
	}
}

// start begins a ramp after unclean starts in a row: last is what the process before
// left, running how many runs are unfinished, and suspects which of the agents that
// were on probation still have one.
func (r *Ramp) start(unclean, running int, last storage.Boot, suspects []claybot.AgentID) {
	if unclean == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.active, r.unclean, r.running, r.began = true, unclean, running, time.Now()
	lived := time.Duration(claybot.Now()-last.Started) * time.Millisecond
	r.period = min(max(2*lived, probationMin), longest(unclean))
	r.fresh = unclean == 1 || len(last.Testing) == 0
	r.late = unclean > lateFrom && last.Beat.Time().Sub(last.Started.Time()) > probationMost
	for _, id := range suspects {
		r.suspects[id] = true
	}
	if len(suspects) > 0 {
		running = len(suspects)
	}
	r.window, r.step = max(float64(running/4), smallWindow), 1
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
	r.log.Warn("previous process did not shut down cleanly; resuming runs gradually",
		"uncleanStarts", unclean, "suspects", running, "atOnce", int(r.window), "probation", r.period)
}

// longest is how long a probation lasts at most after unclean starts in a row.
func longest(unclean int) time.Duration {
	return min(probationFirst<<min(max(unclean-2, 0), lateFrom), probationMost)
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
func (r *Ramp) alarm(member string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lost[member] || r.closed {
		return
	}
	r.lost[member] = true
	r.unclean++
	w, step := windowAfter(r.unclean)
	if !r.active {
		r.active, r.period, r.window, r.step, r.total, r.fresh = true, probationFirst/2, w, step, 0, true
	}
	r.began, r.window, r.step = time.Now(), min(r.window, w), min(r.step, step)
	r.log.Warn("another member did not shut down cleanly; resuming its runs gradually", "member", member, "atOnce", int(r.window))
}

// isActive reports whether agents need a ticket.
func (r *Ramp) isActive() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.active
}

// isTesting reports whether the run of an agent is on probation.
func (r *Ramp) isTesting(b *inbox.AgentInbox) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tickets[b]
	return t != nil && r.testing[t]
}

// RoomFor is how many of up to n agents are worth holding, where members share the
// store: what waits here could run elsewhere. It blocks until there is one, and fails
// with the cause of ctx.
func (r *Ramp) RoomFor(ctx context.Context, n int) (int, error) {
	for {
		changed := r.changed.Next()
		r.mu.Lock()
		room := n
		if r.active {
			room = min(n, r.width()-r.queued())
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
func (r *Ramp) queue(ts ...*ticket) {
	r.mu.Lock()
	for _, t := range ts {
		t.agent, t.ready = t.box.Lease.Agent, make(chan struct{})
		t.resumed = interrupted(t.box)
		t.suspect = r.suspects[t.agent] || r.fresh && t.resumed
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
func interrupted(b *inbox.AgentInbox) bool { return b.Run != nil && b.Run.State == claybot.RunRunning }

// wait blocks until the agent of a box is let in: nil, also when the ramp does not
// know it. Else it is why the work on the agent is to end.
func (r *Ramp) wait(b *inbox.AgentInbox, draining <-chan struct{}) error {
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
		return inbox.ErrShutdown
	}
}

// leave says that the work on an agent has ended, in whatever way: the process
// lives. well says that nothing was wrong with it.
func (r *Ramp) leave(b *inbox.AgentInbox, well bool) {
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
func (r *Ramp) clear(t *ticket, well bool) {
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
	r.changed.Raise()
}

// growth is by how much one that survives widens the window.
func (r *Ramp) growth() float64 {
	if !r.open() {
		return 1
	}
	return r.step
}

// open reports whether a suspect is left that could be found now; one that has been
// charged waits for its control.
func (r *Ramp) open() bool {
	parked := 0
	for _, t := range r.waiting {
		if t.suspect && !r.due(t, time.Now()) {
			parked++
		}
	}
	return len(r.suspects) > parked
}

// queued is how many wait for their turn, and not for the end of a control.
func (r *Ramp) queued() (n int) {
	for _, t := range r.waiting {
		if r.due(t, time.Now()) {
			n++
		}
	}
	return n
}

// due reports whether the control of a run is over.
func (r *Ramp) due(t *ticket, now time.Time) bool { return !now.Before(r.began.Add(t.tries.Control())) }

// Status is how far the ramp has come: the unclean starts in a row, how many runs may go
// on at once, and how many wait for that; active is false once it is over.
func (r *Ramp) Status() (unclean, atOnce, waiting int, active bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unclean, int(r.window), len(r.waiting), r.active
}

// Crashes are the unclean starts in a row, and how many runs were interrupted.
func (r *Ramp) Crashes() (unclean, running int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unclean, r.running
}

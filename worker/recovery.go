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
	aliveEvery     = 100 * time.Millisecond
	lateAliveEvery = time.Minute // the same, once the recovery has ended
	lateFrom       = 6           // unclean starts in a row, after which a probation no longer grows
)

// A Recovery decides how many runs may be at work after the process died, so that the
// run that killed it, if one did, is found without harm to the others.
//
// A run is on probation from the moment when it is let in until its pass ends or it
// has lived for a while: as long as the process before lived at most, because what
// killed it had begun and done its harm by then. That is a minute at most after two
// unclean starts in a row, twice as long after each further one, up to ten minutes: a
// run that kills late is on probation at one of the next deaths. The recovery lets in a
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
// a control: the recovery lets the process live without that run for longer than the run
// had lived, and then lets it in alone again. A process that is killed from outside
// most likely dies during the control, which makes the next one twice as long and
// charges nothing; one that dies at the same age of the run as before is charged to
// the run. Each charge doubles the next control. A run with maxAttempts charges is
// given up, so three times in a row the process must have lived well without it and
// died at that age of the run. See Charges.
//
// Without an unclean start a recovery lets everything in at once.
type Recovery struct {
	boot     *BootRecord
	log      *slog.Logger
	survived func(*ticket) // called once for each run that outlived its probation
	// Proven is closed once the process has survived a run that was interrupted.
	Proven chan struct{}

	calls   sync.WaitGroup // of timers; added to while it is not closed
	changed inbox.Signal   // a run was resumed, or has left
	mu      sync.Mutex     // over all below
	active  bool
	closed  bool
	crash   crash
	limits  limits
	line    line
	alarmed struct { // the look for the next one whose control ends
		timer *time.Timer
		at    time.Time
	}
}

// A crash is what is known of the end of the process before, and of other members.
type crash struct {
	unclean int // starts in a row
	running int // runs that were interrupted
	began   time.Time
	fresh   bool            // nothing is known of suspects: all interrupted runs are
	late    bool            // unclean starts in a row no longer lengthen a probation, and the process before outlived it
	lost    map[string]bool // members that died
}

// limits are how many runs may be at work, and how long a probation lasts.
type limits struct {
	period  time.Duration // of a probation
	window  float64       // runs on probation at once
	step    float64       // by which one that survives widens it while suspects are left
	total   float64       // runs at work at once; 0: no limit
	working int
	peak    int
}

// A line is the agents that are held, on their way through the recovery.
type line struct {
	suspects map[claybot.AgentID]bool
	waiting  []*ticket // in the order in which they came
	tickets  map[*inbox.AgentInbox]*ticket
	testing  map[*ticket]bool
}

// A ticket is the way of one held agent through the recovery.
type ticket struct {
	box      *inbox.AgentInbox
	agent    claybot.AgentID
	charges  Charges
	suspect  bool
	resumed  bool          // its run was at work when the process died
	ready    chan struct{} // closed when it is let in
	admitted bool
	alone    bool
	since    time.Time
	timer    *time.Timer
}

func newRecovery(boot *BootRecord, log *slog.Logger, survived func(*ticket)) *Recovery {
	return &Recovery{
		boot: boot, log: log, survived: survived, Proven: make(chan struct{}), crash: crash{lost: make(map[string]bool)},
		line: line{suspects: make(map[claybot.AgentID]bool), tickets: make(map[*inbox.AgentInbox]*ticket), testing: make(map[*ticket]bool)},
	}
}

// start begins a recovery after unclean starts in a row: last is what the process before
// left, running how many runs are unfinished, and suspects which of the agents that
// were on probation still have one.
func (r *Recovery) start(unclean, running int, last storage.Boot, suspects []claybot.AgentID) {
	if unclean == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.active, r.crash.unclean, r.crash.running, r.crash.began = true, unclean, running, time.Now()
	lived := time.Duration(claybot.Now()-last.Started) * time.Millisecond
	r.limits.period = min(max(2*lived, probationMin), longest(unclean))
	r.crash.fresh = unclean == 1 || len(last.Testing) == 0
	r.crash.late = unclean > lateFrom && last.LastAlive.Time().Sub(last.Started.Time()) > probationMost
	for _, id := range suspects {
		r.line.suspects[id] = true
	}
	if len(suspects) > 0 {
		running = len(suspects)
	}
	r.limits.window, r.limits.step = max(float64(running/4), smallWindow), 1
	if unclean > 1 {
		r.limits.window, r.limits.step = float64(running/16), 1.0/8
		if r.limits.window < 1 {
			r.limits.step = 0
		}
	}
	r.limits.window = max(1, min(r.limits.window, firstWindow))
	if unclean > 1 && last.Peak > 0 {
		r.limits.total = max(leastTotal, float64(last.Peak/2))
	}
	if running == 0 {
		r.prove()
	}
	r.log.Warn("previous process did not shut down cleanly; resuming runs gradually",
		"uncleanStarts", unclean, "suspects", running, "atOnce", int(r.limits.window), "probation", r.limits.period)
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

// alarm begins a recovery, or narrows one, because another member died and its runs come
// here.
func (r *Recovery) alarm(member string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.crash.lost[member] || r.closed {
		return
	}
	r.crash.lost[member] = true
	r.crash.unclean++
	w, step := windowAfter(r.crash.unclean)
	if !r.active {
		r.active, r.limits.period, r.limits.window, r.limits.step, r.limits.total, r.crash.fresh = true, probationFirst/2, w, step, 0, true
	}
	r.crash.began, r.limits.window, r.limits.step = time.Now(), min(r.limits.window, w), min(r.limits.step, step)
	r.log.Warn("another member did not shut down cleanly; resuming its runs gradually", "member", member, "atOnce", int(r.limits.window))
}

// isActive reports whether agents need a ticket.
func (r *Recovery) isActive() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.active
}

// isTesting reports whether the run of an agent is on probation.
func (r *Recovery) isTesting(b *inbox.AgentInbox) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.line.tickets[b]
	return t != nil && r.line.testing[t]
}

// RoomFor is how many of up to n agents are worth holding, where members share the
// store: what waits here could run elsewhere. It blocks until there is one, and fails
// with the cause of ctx.
func (r *Recovery) RoomFor(ctx context.Context, n int) (int, error) {
	for {
		changed := r.changed.Next()
		r.mu.Lock()
		room := n
		if r.active {
			room = r.width()
			for _, t := range r.line.waiting {
				if t.due(r.crash.began, time.Now()) { // it waits for its turn, not for the end of a control
					room--
				}
			}
			room = min(n, room)
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
// Without a recovery it does nothing.
func (r *Recovery) queue(ts ...*ticket) {
	r.mu.Lock()
	for _, t := range ts {
		t.agent, t.ready = t.box.Lease.Agent, make(chan struct{})
		t.resumed = interrupted(t.box)
		t.suspect = r.line.suspects[t.agent] || r.crash.fresh && t.resumed
		if t.suspect {
			r.line.suspects[t.agent] = true
		}
		r.line.tickets[t.box] = t
		r.line.waiting = append(r.line.waiting, t)
	}
	if !r.active { // it ended a moment ago
		r.release()
	}
	parked := slices.ContainsFunc(r.line.waiting, func(t *ticket) bool { return !t.charges.clear() })
	in := r.schedule()
	r.mu.Unlock()
	if parked && len(in) == 0 {
		r.save()
	}
	r.admit(in)
}

// interrupted reports whether the run of an agent was begun and is not paused.
func interrupted(b *inbox.AgentInbox) bool {
	return b.Run != nil && !b.Started && b.Run.State == claybot.RunRunning
}

// wait blocks until the agent of a box is let in: nil, also when the recovery does not
// know it. Else it is why the work on the agent is to end.
func (r *Recovery) wait(b *inbox.AgentInbox, draining <-chan struct{}) error {
	r.mu.Lock()
	t := r.line.tickets[b]
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
func (r *Recovery) leave(b *inbox.AgentInbox, well bool) {
	r.mu.Lock()
	t := r.line.tickets[b]
	if t == nil {
		r.mu.Unlock()
		return
	}
	delete(r.line.tickets, b)
	r.line.waiting = slices.DeleteFunc(r.line.waiting, func(w *ticket) bool { return w == t })
	if t.admitted {
		r.limits.working--
	}
	r.mu.Unlock()
	r.clear(t, well)
}

// clear ends the probation of a run that has survived it. well says that nothing
// was wrong with the run itself.
func (r *Recovery) clear(t *ticket, well bool) {
	r.mu.Lock()
	known := r.line.testing[t]
	if known {
		delete(r.line.testing, t)
		delete(r.line.suspects, t.agent)
		t.timer.Stop()
		if r.open() {
			r.limits.window += r.limits.step
		} else {
			r.limits.window = max(r.limits.window+1, openWindow)
		}
		if r.limits.total > 0 {
			r.limits.total += 1.0 / 8
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

// open reports whether a suspect is left that could be found now; one that has been
// charged waits for its control.
func (r *Recovery) open() bool {
	parked := 0
	for _, t := range r.line.waiting {
		if t.suspect && !t.due(r.crash.began, time.Now()) {
			parked++
		}
	}
	return len(r.line.suspects) > parked
}

// due reports whether the control of a run is over, in a recovery that began at a time.
func (t *ticket) due(began, now time.Time) bool { return !now.Before(began.Add(t.charges.Control())) }

// Status is how far the recovery has come: the unclean starts in a row, how many runs may go
// on at once, and how many wait for that; active is false once it is over.
func (r *Recovery) Status() (unclean, atOnce, waiting int, active bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.crash.unclean, int(r.limits.window), len(r.line.waiting), r.active
}

// Crashes are the unclean starts in a row, and how many runs were interrupted.
func (r *Recovery) Crashes() (unclean, running int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.crash.unclean, r.crash.running
}

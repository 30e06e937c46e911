package cron

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors/schedule"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// Reasons of ledger rows that did not run.
const (
	reasonMissed   = "missed"   // and how many in parentheses
	reasonRestored = "restored" // the same; the ledger has lost whether they ran
	reasonOverlap  = "overlap"
	reasonGate     = "gate"
	// reasonUnusable is an overlap with a run whose agent cannot be used.
	reasonUnusable = "agent cannot be used"
)

const (
	firstRetry = 30 * time.Second // after a failed run, doubling
	mostRetry  = time.Hour
	// gateAgain is how often a member checks whether another one has finished a
	// gate.
	gateAgain = 2 * time.Second
)

// A shot is one run of a task that is being posted. It is a snapshot of the task and
// does not see later changes.
type shot struct {
	task    *task
	def     *definition
	slug    string
	lifted  claybot.Time
	instant string
	planned time.Time
	now     time.Time
	attempt int // from 1
	manual  bool
	late    bool
	missed  int // instants skipped in favour of this one
	past    past
	verdict schedule.Verdict
}

func instantOf(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// firing returns the ledger entry of s.
func (s shot) firing() claybot.Firing {
	return claybot.Firing{Task: s.def.uid, Instant: s.instant, Planned: claybot.At(s.planned), Attempt: s.attempt}
}

// A runner decides about due instants and posts them.
type runner struct {
	cfg    *Config
	sched  *schedule.Scheduler
	table  *table
	folder *dir
}

// run handles a due task.
func (r *runner) run(ctx context.Context, t *task) {
	now := r.sched.Now()
	r.sched.Mu.Lock()
	def, last, again := t.def, t.last, t.retry
	known := r.table.facts.known[def.uid]
	s := shot{task: t, def: def, slug: t.slug, lifted: known.Lifted, now: now, attempt: 1}
	d := t.decide(now)
	pauses := t.gone || !def.enabled || known.Paused != "" // may have changed since it was due
	r.sched.Mu.Unlock()
	if pauses {
		r.table.done(ctx, t, last, nil)
		return
	}
	restored := now
	if r.table.restored.Before(now) {
		restored = r.table.restored
	}
	if newest, _, n := def.plan.newest(last, restored); n > 0 {
		r.table.done(ctx, t, newest, r.skip(ctx, def.uid, newest, fmt.Sprintf("%s (%d)", reasonRestored, n)))
		return
	}
	if d.missed > 0 || d.late || !d.skip.IsZero() {
		if wait, err := r.refresh(ctx, t); err != nil || wait {
			r.wait(ctx, t, last, err)
			return
		}
		r.sched.Mu.Lock()
		last, again, d = t.last, t.retry, t.decide(now)
		r.sched.Mu.Unlock()
	}
	if !d.skip.IsZero() {
		if err := r.skip(ctx, def.uid, d.skip, fmt.Sprintf("%s (%d)", reasonMissed, min(d.missed, maxCount))); err != nil {
			r.table.done(ctx, t, last, err)
			return
		}
		last, again, d.missed = d.skip, nil, 0
	}
	switch {
	case !d.fire.IsZero():
		s.planned, s.late, s.missed = d.fire, d.late, d.missed
	case again != nil && !again.at.After(s.now):
		s.planned, s.attempt = again.planned, again.attempt
	default:
		r.table.done(ctx, t, last, nil)
		return
	}
	r.judged(ctx, s, last)
}

// refresh reads from the ledger what other members have done with a task that is
// behind, after a suspend or a start of this member. wait reports that another
// member runs the task's gate and may still run an apparently missed instant.
func (r *runner) refresh(ctx context.Context, t *task) (wait bool, err error) {
	r.sched.Mu.Lock()
	d := t.def
	r.sched.Mu.Unlock()
	if d.gate != "" && r.cfg.Gates {
		if wait, err := r.sched.Elsewhere(ctx, gateClaim(d.uid)); err != nil || wait {
			return wait, err
		}
	}
	row, err := newestRow(ctx, r.cfg.Ledger, d.uid)
	if err != nil || row == nil {
		return false, err
	}
	r.sched.Mu.Lock()
	defer r.sched.Mu.Unlock()
	if planned := row.Planned.Time(); planned.After(t.last) {
		t.last, t.retry = since(planned, r.sched.Now()), nil
		r.table.resume(t, *row)
	}
	return false, nil
}

// wait releases a task to be checked again soon; err is nil if another member
// runs its gate.
func (r *runner) wait(ctx context.Context, t *task, last time.Time, err error) {
	if err != nil {
		r.table.done(ctx, t, last, err)
		return
	}
	r.sched.Mu.Lock()
	defer r.sched.Mu.Unlock()
	t.job.Busy = false
	t.job.Pause(gateAgain)
	r.table.plan(t)
}

// judged skips a shot, runs its gate, or posts it, depending on its past.
func (r *runner) judged(ctx context.Context, s shot, last time.Time) {
	s.instant = instantOf(s.planned)
	var err error
	if s.past, err = readPast(ctx, r.cfg.Ledger, s.def.uid, s.instant, s.lifted, r.sched.Now()); err != nil {
		r.table.done(ctx, s.task, last, err)
		return
	}
	paused := false
	if s.past.taken == nil || s.past.taken.Attempt < s.attempt {
		paused, err = r.rest(ctx, s)
	}
	switch {
	case err != nil || paused:
		r.table.done(ctx, s.task, last, err)
	case s.past.taken != nil && s.past.taken.Attempt >= s.attempt:
		r.taken(ctx, s, last, *s.past.taken)
	case s.past.dead != "":
		r.table.done(ctx, s.task, last, r.pause(ctx, s))
	case s.past.open && s.attempt == 1:
		r.table.done(ctx, s.task, schedule.Later(last, s.planned), r.skip(ctx, s.def.uid, s.planned, r.whyOpen(ctx, s)))
	case s.def.gate != "" && r.cfg.Gates:
		_, leave, err := r.sched.EnterJob()
		if err != nil {
			return // the connector stops; the next start finds the instant
		}
		go func() { // a gate may take long, and must not hold up other tasks
			defer leave()
			r.gated(ctx, s, last)
		}()
	default:
		r.post(ctx, s, last)
	}
}

// taken releases a task whose instant another member has entered into the ledger.
func (r *runner) taken(ctx context.Context, s shot, last time.Time, row storage.LedgerRow) {
	r.table.done(ctx, s.task, schedule.Later(last, s.planned), nil)
	r.sched.Mu.Lock()
	defer r.sched.Mu.Unlock()
	if s.task.def == s.def && !s.task.gone && !s.task.job.Busy {
		r.table.resume(s.task, row)
	}
}

// whyOpen returns the reason to skip an instant whose earlier run has not ended.
func (r *runner) whyOpen(ctx context.Context, s shot) string {
	d := claybot.Descriptor{Type: claybot.AgentCron, UID: s.def.uid}
	var err error
	if s.def.agent != "" {
		d, err = r.cfg.Index.IndexedDescriptor(ctx, s.def.agent)
	}
	if err == nil && r.cfg.Unusable != nil && r.cfg.Unusable(d) {
		return reasonUnusable
	}
	return reasonOverlap
}

// skip enters an instant that does not run.
func (r *runner) skip(ctx context.Context, uid string, planned time.Time, reason string) error {
	f := claybot.Firing{Task: uid, Instant: instantOf(planned), Planned: claybot.At(planned), Attempt: 1}
	return r.cfg.Ledger.Skip(ctx, f, reason)
}

// post posts a shot and releases its task.
func (r *runner) post(ctx context.Context, s shot, last time.Time) {
	sent, err := r.send(ctx, s)
	if sent && s.def.spec.Once {
		r.sched.Mu.Lock()
		s.task.spent = s.task.def == s.def // unless it was changed meanwhile
		r.sched.Mu.Unlock()
	}
	r.table.done(ctx, s.task, schedule.Later(last, s.planned), err)
	if sent {
		r.sched.Mu.Lock()
		s.task.unsettled = true
		r.sched.Mu.Unlock()
	}
}

// gateClaim returns the name of the claim of the member that runs a gate.
func gateClaim(uid string) string { return "cron/gate/" + uid }

// gated runs the gate of a task and acts on its verdict. One member runs it; the
// others wait until the ledger has the instant, or that member is gone.
func (r *runner) gated(ctx context.Context, s shot, last time.Time) {
	release, row, err := r.claimGate(ctx, s)
	switch {
	case err != nil:
		r.table.done(ctx, s.task, last, err)
		return
	case row != nil:
		r.taken(ctx, s, last, *row)
		return
	}
	defer release()
	stop, err := r.gate(ctx, &s)
	if err == nil && !stop {
		r.post(ctx, s, last)
		return
	}
	r.table.done(ctx, s.task, schedule.Later(last, s.planned), err)
}

// claimGate waits until this member has the claim of a gate, or another one has
// settled the instant; then row is its row.
func (r *runner) claimGate(ctx context.Context, s shot) (release func(), row *storage.LedgerRow, err error) {
	for {
		release, err := r.sched.Claim(ctx, gateClaim(s.def.uid))
		held := errors.Is(err, storage.ErrHeld)
		if err != nil && !held {
			return nil, nil, err
		}
		p, err := readPast(ctx, r.cfg.Ledger, s.def.uid, s.instant, s.lifted, r.sched.Now())
		if err == nil && p.taken != nil && p.taken.Attempt >= s.attempt {
			row = p.taken
		}
		over := err != nil || row != nil
		if over && !held {
			release()
		}
		if over || !held {
			return release, row, err
		}
		select {
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		case <-time.After(gateAgain):
		}
	}
}

// gate runs the gate of a task. stop reports that the gate stopped the run and
// that the ledger records it.
func (r *runner) gate(ctx context.Context, s *shot) (stop bool, err error) {
	workDir := ""
	if err := r.sched.Locked(ctx, func() (err error) { workDir, err = r.folder.workspace(s.slug); return err }); err != nil {
		s.verdict.Note = "The gate command has no folder to run in, so claybot did not check whether there is anything to do."
		r.sched.Log.Warn("failed to run gate command", "task", s.slug, "err", err)
		return false, context.Cause(ctx)
	}
	g := schedule.Gate{Command: s.def.gate, Timeout: s.def.gateTime, Dir: workDir, Task: s.slug, Zone: s.def.plan.zone}
	if s.verdict, err = r.sched.Ask(ctx, g); err != nil || !s.verdict.Stop {
		return false, err
	}
	r.sched.Log.Info("task skipped by its gate", "task", s.slug)
	return true, r.cfg.Ledger.Skip(ctx, s.firing(), reasonGate)
}

// send posts the message of a shot. It is idempotent. sent is false if the agent
// does not exist.
func (r *runner) send(ctx context.Context, s shot) (sent bool, err error) {
	to, found, err := r.agent(ctx, s)
	if err != nil || !found {
		return false, err
	}
	m := r.message(ctx, s)
	if m.Flow != nil && r.cfg.Flow != nil {
		to, m = r.cfg.Flow(to, m)
	}
	err = r.sched.Post(ctx, to, m)
	return err == nil, err
}

// message returns the message of a shot.
func (r *runner) message(ctx context.Context, s shot) claybot.AgentMessage {
	if s.def.gate != "" && !r.cfg.Gates {
		s.verdict.Note = schedule.NoteForbidden
	}
	memory, err := r.folder.memory(ctx, s.slug)
	if err != nil { // run the task without its memory
		r.sched.Log.Warn("failed to read task memory", "task", s.slug, "err", err)
	}
	f := s.firing()
	f.Quiet = !s.manual && (s.retries() || !s.past.tells(s.planned))
	f.Recovered = s.past.fails > 0 && s.past.told
	if s.late {
		f.Late = s.lateness()
	}
	m := claybot.AgentMessage{
		ID: f.MessageID(), Type: claybot.MessageSystem, Kind: claybot.KindCron, From: claybot.Sender{Name: Name},
		Text: s.text(r.cfg.TaskDir, memory), At: claybot.At(s.now), Report: s.def.route.agent, Firing: &f,
		Private: memory != "",
	}
	if m.Flow = s.def.flowStart(); m.Flow != nil {
		m.Kind, m.Text = claybot.KindTrigger, s.def.spec.Prompt
	}
	switch {
	case s.def.route.place.Connector != "":
		place := s.def.route.place
		m.Route = &place
	case s.def.route.nowhere && s.def.agent != "":
		m.Route = &claybot.Route{} // not the agent's own chat
	}
	return m
}

// retries reports whether a failure of s is followed by another attempt before
// the task is due again anyway.
func (s shot) retries() bool {
	if s.attempt > s.def.spec.Retries {
		return false
	}
	next := s.def.plan.due(s.planned)
	return s.def.spec.Once || next.IsZero() || s.now.Add(backoff(s.attempt)).Before(next)
}

// backoff returns the wait before the next attempt of a failed run.
func backoff(attempt int) time.Duration {
	return min(firstRetry<<min(max(attempt-1, 0), 10), mostRetry)
}

// agent returns the agent of a shot. If it does not exist, agent records that
// in the ledger and the log, and found is false.
func (r *runner) agent(ctx context.Context, s shot) (d claybot.Descriptor, found bool, err error) {
	if flow := s.def.flowStart(); flow != nil {
		return claybot.Descriptor{Type: claybot.AgentFlow, UID: s.def.uid, Name: flow.Name, Owner: s.def.spec.Owner}, true, nil
	}
	if s.def.agent == "" {
		return claybot.Descriptor{Type: claybot.AgentCron, UID: s.def.uid, Name: s.def.spec.Name, Owner: s.def.spec.Owner}, true, nil
	}
	d, err = r.cfg.Index.IndexedDescriptor(ctx, s.def.agent)
	if !errors.Is(err, storage.ErrNotFound) {
		return d, err == nil, err
	}
	r.sched.Log.Warn("agent of task not found", "file", s.slug+"/"+taskFile, "line", s.def.agentLine, "agent", s.def.agent)
	return d, false, r.cfg.Ledger.Skip(ctx, s.firing(), "unknown agent "+string(s.def.agent))
}

// pause pauses a task whose output does not arrive, and notifies its owner. All
// members use the same key for the notice.
func (r *runner) pause(ctx context.Context, s shot) error {
	err := r.sched.Locked(ctx, func() error {
		return r.table.facts.mark(ctx, s.slug, s.def.uid, func(f *fact) {
			f.Paused, f.PausedText = "the output of its last two runs did not arrive: "+s.past.dead, s.def.text
		})
	})
	if err != nil {
		return err
	}
	r.sched.Log.Warn("task paused: its output is not delivered; change the task or enable it again", "task", s.slug, "owner", s.def.spec.Owner, "cause", s.past.dead)
	if r.cfg.Notice == nil {
		return nil
	}
	key := fmt.Sprintf("cron/rest/%s/%d", s.def.uid, s.planned.Unix())
	say := func(v texts.Voice) string { return v.TaskPaused(s.def.spec.Name) }
	if err := r.cfg.Notice(ctx, s.def.spec.Owner, key, say); err != nil {
		r.sched.Log.Warn("failed to notify the owner of a paused task", "task", s.slug, "err", err)
	}
	return nil
}

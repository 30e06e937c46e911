package cron

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/schedule"
	"github.com/claybot/claybot/storage"
)

// The reasons of rows in the ledger that did not run.
const (
	reasonMissed   = "missed"   // and how many in parentheses
	reasonRestored = "restored" // the same; the ledger has lost whether they ran
	reasonOverlap  = "overlap"
	reasonGate     = "gate"
	// reasonUnusable is an overlap with a firing whose agent cannot be used.
	reasonUnusable = "agent cannot be used"
)

const (
	firstPause = time.Second // after a firing that could not be posted, doubling
	mostPause  = time.Minute
	firstRetry = 30 * time.Second // after a failed run, doubling
	mostRetry  = time.Hour
)

// A shot is one firing on its way. It is made from a task at one moment and does
// not see later changes.
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
	missed  int
	past    past
	verdict schedule.Verdict
}

func instantOf(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// fire does what is to be done for a task that is due.
func (c *Cron) fire(r *running, t *task) {
	now := c.now()
	c.mu.Lock()
	def, last, again := t.def, t.last, t.retry
	s := shot{task: t, def: def, slug: t.slug, lifted: c.facts[def.uid].Lifted, now: now, attempt: 1}
	d := t.decide(now)
	rests := t.gone || !def.enabled || c.facts[def.uid].Paused != "" // since it was found due
	c.mu.Unlock()
	if rests {
		c.done(r, t, last, nil)
		return
	}
	if newest, _, n := def.plan.newest(last, sooner(c.restored, now)); n > 0 {
		c.done(r, t, newest, c.skip(r.ctx, def.uid, newest, fmt.Sprintf("%s (%d)", reasonRestored, n)))
		return
	}
	if d.missed > 0 || d.late || !d.skip.IsZero() {
		if wait, err := c.refresh(r, t); err != nil || wait {
			c.wait(r, t, last, err)
			return
		}
		c.mu.Lock()
		last, again, d = t.last, t.retry, t.decide(now)
		c.mu.Unlock()
	}
	if !d.skip.IsZero() {
		if err := c.skip(r.ctx, def.uid, d.skip, fmt.Sprintf("%s (%d)", reasonMissed, min(d.missed, maxCount))); err != nil {
			c.done(r, t, last, err)
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
		c.done(r, t, last, nil)
		return
	}
	s.instant = instantOf(s.planned)
	var err error
	if s.past, err = c.past(r.ctx, def.uid, s.instant, s.lifted); err != nil {
		c.done(r, t, last, err)
		return
	}
	c.judged(r, s, last)
}

func sooner(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// judged goes on with a shot whose past is known: it is given up, or goes
// through its gate, or is posted.
func (c *Cron) judged(r *running, s shot, last time.Time) {
	switch {
	case s.past.taken != nil && s.past.taken.Attempt >= s.attempt:
		c.taken(r, s, last, *s.past.taken)
	case s.past.dead != "":
		c.done(r, s.task, last, c.rest(r, s))
	case s.past.open && s.attempt == 1:
		c.done(r, s.task, later(last, s.planned), c.skip(r.ctx, s.def.uid, s.planned, c.whyOpen(r.ctx, s)))
	case s.def.gate != "" && c.cfg.Gates:
		r.work.Go(func() { c.gated(r, s, last) })
	default:
		c.ungated(&s)
		c.shoot(r, s, last)
	}
}

// whyOpen is the reason with which an instant is skipped whose earlier firing has not
// come to its end.
func (c *Cron) whyOpen(ctx context.Context, s shot) string {
	d := claybot.Descriptor{Type: claybot.AgentCron, UID: s.def.uid}
	var err error
	if s.def.agent != "" {
		d, err = c.cfg.Index.IndexedDescriptor(ctx, s.def.agent)
	}
	if err == nil && c.cfg.Unusable != nil && c.cfg.Unusable(d) {
		return reasonUnusable
	}
	return reasonOverlap
}

// shoot posts a shot, and gives its task back.
func (c *Cron) shoot(r *running, s shot, last time.Time) {
	sent, err := c.send(r.ctx, r, s)
	if sent && s.def.spec.Once {
		c.mu.Lock()
		s.task.spent = s.task.def == s.def // unless it was changed meanwhile
		c.mu.Unlock()
	}
	c.done(r, s.task, later(last, s.planned), err)
	if sent {
		c.mu.Lock()
		s.task.unsettled = true
		c.mu.Unlock()
	}
}

// ungated notes that a gate was not asked.
func (c *Cron) ungated(s *shot) {
	if s.def.gate != "" {
		s.verdict.Note = schedule.NoteForbidden
	}
}

// skip enters an instant that does not run.
func (c *Cron) skip(ctx context.Context, uid string, planned time.Time, reason string) error {
	f := claybot.Firing{Task: uid, Instant: instantOf(planned), Planned: claybot.At(planned), Attempt: 1}
	return c.cfg.Ledger.Skip(ctx, f, reason)
}

// gate asks the gate of a task, when there is room for one more. stop: it said
// no, and the ledger knows.
func (c *Cron) gate(r *running, s *shot) (stop bool, err error) {
	dir := ""
	if err := c.base.Locked(r.ctx, func() (err error) { dir, err = c.workspace(s.slug); return err }); err != nil {
		s.verdict.Note = "The gate command has no folder to run in, so claybot did not check whether there is anything to do."
		c.base.Log.Warn("a gate cannot run", "task", s.slug, "err", err)
		return false, context.Cause(r.ctx)
	}
	g := schedule.Gate{Command: s.def.gate, Timeout: s.def.gateTime, Dir: dir, Task: s.slug, Zone: s.def.plan.zone}
	if s.verdict, err = c.base.Ask(r.ctx, g); err != nil || !s.verdict.Stop {
		return false, err
	}
	c.base.Log.Info("a gate keeps a task from running", "task", s.slug)
	f := claybot.Firing{Task: s.def.uid, Instant: s.instant, Planned: claybot.At(s.planned), Attempt: s.attempt}
	return true, c.cfg.Ledger.Skip(r.ctx, f, reasonGate)
}

// send posts the message of a shot. Posting one twice is harmless. sent is false
// when there is nobody to post it to.
func (c *Cron) send(ctx context.Context, r *running, s shot) (sent bool, err error) {
	to, found, err := c.agent(ctx, s)
	if err != nil || !found {
		return false, err
	}
	m := c.message(ctx, s)
	release, err := c.lane(ctx, to)
	if err != nil {
		return false, err
	}
	defer release()
	if err := r.handler.Post(ctx, to, m); err != nil {
		return false, err
	}
	return true, nil
}

// message is what a shot posts.
func (c *Cron) message(ctx context.Context, s shot) claybot.AgentMessage {
	b := briefing{
		def: s.def, slug: s.slug, dir: c.cfg.TaskDir, planned: s.planned, now: s.now, manual: s.manual,
		late: s.late, attempt: s.attempt, missed: s.missed, verdict: s.verdict,
	}
	if s.def.agent != "" || s.def.route.agent != "" || s.def.route.place.Connector != "" {
		b.skipped = s.past.missed
	}
	var err error
	if b.memory, err = c.memory(ctx, s.slug); err != nil {
		// The task is worth more than its memory.
		c.base.Log.Warn("the memory of a task cannot be read", "task", s.slug, "err", err)
	}
	m := claybot.AgentMessage{
		Type: claybot.MessageSystem, Kind: claybot.KindCron, From: claybot.Sender{Name: Name},
		Text: b.text(), At: claybot.At(s.now), Report: s.def.route.agent,
		Firing: &claybot.Firing{
			Task: s.def.uid, Instant: s.instant, Planned: claybot.At(s.planned), Attempt: s.attempt,
			Quiet:     !s.manual && (s.retries() || !s.past.tells(s.planned)),
			Recovered: s.past.fails > 0 && s.past.told,
		},
	}
	if s.late {
		m.Firing.Late = b.lateness()
	}
	m.ID = m.Firing.MessageID()
	switch {
	case s.def.route.place.Connector != "":
		place := s.def.route.place
		m.Route = &place
	case s.def.route.nowhere && s.def.agent != "":
		m.Route = &claybot.Route{} // not the agent's own place
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

// agent is whom a shot wakes. When there is no such agent, the ledger and the
// log know, and found is false.
func (c *Cron) agent(ctx context.Context, s shot) (d claybot.Descriptor, found bool, err error) {
	if s.def.agent == "" {
		return claybot.Descriptor{
			Type: claybot.AgentCron, UID: s.def.uid,
			Name: s.def.spec.Name, Owner: s.def.spec.Owner,
		}, true, nil
	}
	d, err = c.cfg.Index.IndexedDescriptor(ctx, s.def.agent)
	if !errors.Is(err, storage.ErrNotFound) {
		return d, err == nil, err
	}
	c.base.Log.Warn("a task names an agent that does not exist", "file", s.slug+"/"+taskFile, "line", s.def.agentLine, "agent", s.def.agent)
	f := claybot.Firing{Task: s.def.uid, Instant: s.instant, Planned: claybot.At(s.planned), Attempt: s.attempt}
	return d, false, c.cfg.Ledger.Skip(ctx, f, "unknown agent "+string(s.def.agent))
}

// rest pauses a task whose output does not arrive, and tells its owner so. All
// nodes that find it tell it with one key.
func (c *Cron) rest(r *running, s shot) error {
	if err := c.markResting(r, s); err != nil || c.cfg.Notice == nil {
		return err
	}
	ctx := r.ctx
	key := fmt.Sprintf("cron/rest/%s/%d", s.def.uid, s.planned.Unix())
	text := fmt.Sprintf("The scheduled task “%s” rests: what it said last did not arrive at %s. Change it or enable it again when that works.",
		connectors.OneLine(s.def.spec.Name, 80), s.def.spec.Route)
	if err := c.cfg.Notice(ctx, s.def.spec.Owner, key, text); err != nil {
		c.base.Log.Warn("cannot tell the owner that a task rests", "task", s.slug, "err", err)
	}
	return nil
}

func (c *Cron) markResting(r *running, s shot) error {
	if err := c.base.Locked(r.ctx, func() error {
		return c.mark(r.ctx, s.slug, s.def.uid, func(f *fact) {
			f.Paused, f.PausedText = "the output of its last two runs did not arrive: "+s.past.dead, s.def.text
		})
	}); err != nil {
		return err
	}
	c.base.Log.Warn("a task is paused because its output does not arrive; change it or enable it again", "task", s.slug, "owner", s.def.spec.Owner, "cause", s.past.dead)
	return nil
}

// done gives a task back after firing. With an error nothing happened, and it is
// tried again soon; until then the misfire policy may have given it up.
func (c *Cron) done(r *running, t *task, last time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t.busy = false
	if len(c.ended) > 0 {
		c.base.Kick()
	}
	if err != nil {
		if r.ctx.Err() != nil {
			return
		}
		c.base.Log.Warn("a task cannot be started", "task", t.slug, "err", err)
		c.failing, c.failedAt = storage.Plain(err), time.Now()
		pause := min(firstPause<<min(t.tries, 10), mostPause)
		t.tries++
		t.again = c.now().Add(pause)
		c.plan(t)
		return
	}
	c.failing, t.tries = "", 0
	if t.retry != nil && !c.now().Before(t.retry.at) || last.After(t.last) {
		t.retry = nil
	}
	if last.After(t.last) {
		t.last, t.unsettled = last, false
	}
	c.plan(t)
}

// backoff is how long a failed run waits for its next attempt.
func backoff(attempt int) time.Duration {
	return min(firstRetry<<min(max(attempt-1, 0), 10), mostRetry)
}

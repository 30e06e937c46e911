package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/storage"
)

const (
	maxAttempts = 3  // charges with which a run is given up
	maxEnds     = 24 // late ends of a process in a row, the same
	controlMin  = 2 * time.Second
	controlMax  = 30 * time.Second // for a run that kills early
	lateControl = 4                // times as long as the process lived with a run that kills later
	maxMissed   = 6                // deaths during a control in a row that lift a suspicion
)

// A Tries is what is charged to an unfinished run: how often in a row its pass failed,
// or the process died of it, without progress in between. A shutdown, a lost lease, a
// store that asks to wait, and a death of the process while other runs were on
// probation charge nothing. It is a mark of the store, one for each agent that ever
// was charged, so that all members see it.
type Tries struct {
	Run claybot.RunID `json:"run"`
	N   int           `json:"n"`
	// Suspect is set once the process has died with the run alone. That alone charges
	// nothing: it makes the run one to be tried with a control.
	Suspect bool `json:"suspect,omitempty"`
	// Lived is how long the process lived with the run at most, in milliseconds, when
	// it died of it, and Missed how often in a row it died during the control.
	Lived  int64 `json:"lived,omitempty"`
	Missed int   `json:"missed,omitempty"`
	// Ends is at how many ends of a process in a row the run was at work, each later
	// than a probation lasts, and Seen when the process began that counted last.
	Ends int          `json:"ends,omitempty"`
	Seen claybot.Time `json:"seen,omitempty"`
}

// clear reports whether the run needs no probation.
func (t Tries) clear() bool { return t.N == 0 && !t.Suspect }

// GivenUp reports whether the run is no longer retried.
func (t Tries) GivenUp() bool { return t.N >= maxAttempts }

// Deadly reports whether even the end of the run, which reads what the agent
// remembers, kills the process.
func (t Tries) Deadly() bool { return t.N > maxAttempts }

// lived is how long the process lived with the run at most, and late whether that is so
// long that kills from outside may well fall into it.
func (t Tries) lived() (lived time.Duration, late bool) {
	lived = time.Duration(t.Lived) * time.Millisecond
	return lived, lateControl*lived > controlMax
}

// Control is how long the process has to live without the run before that is let in
// again: ten times as long as it lived with it, twice as long after each charge and each
// death during a control, up to half a minute. For a run that kills late it is four times
// as long, twice as long after each charge and once after deaths during a control.
func (t Tries) Control() time.Duration {
	if !t.Suspect || t.GivenUp() {
		return 0
	}
	if lived, late := t.lived(); late {
		return lateControl * lived << (t.N + min(t.Missed, 1))
	}
	c := max(10*time.Duration(t.Lived)*time.Millisecond, controlMin)
	return min(c<<min(t.N+t.Missed, 10), controlMax)
}

// ended counts one more late end of a process at which the run was at work, once for
// the process that began at a time.
func (t Tries) ended(began claybot.Time) Tries {
	if t.Seen == began {
		return t
	}
	t.Ends, t.Seen = t.Ends+1, began
	if t.Ends >= maxEnds {
		t.N = max(t.N, maxAttempts)
	}
	return t
}

// After is what is charged once the process has died and had lived so long with the
// run alone. What kills a process does so at about the same age each time: a death at
// a greater age is the first of its kind.
func (t Tries) After(lived time.Duration) Tries {
	known, late := t.lived()
	alike := 2*known + controlMin/4
	if late {
		alike = known + known/4
	}
	switch {
	case t.GivenUp():
		t.N++
	case t.Suspect && lived <= alike:
		t.N++
	default:
		t.N, t.Suspect = 0, true
	}
	t.Lived, t.Missed = max(t.Lived, lived.Milliseconds()), 0
	return t
}

func triesKey(id claybot.AgentID) string { return "tries/" + string(id) }

// triesOf reads what is charged to a run of an agent.
func (s *Worker) triesOf(ctx context.Context, id claybot.AgentID, run claybot.RunID) (Tries, error) {
	t := Tries{Run: run}
	if s.Marks == nil {
		return t, nil
	}
	text, err := s.Marks.Checkpoint(ctx, triesKey(id))
	if err != nil || text == "" {
		return t, err
	}
	var known Tries
	if err := json.Unmarshal([]byte(text), &known); err != nil || known.Run != run {
		return t, nil //nolint:nilerr // what cannot be read charges nothing
	}
	return known, nil
}

// interruptedTries is triesOf for the run of a box, if it was interrupted; others
// are not charged.
func (s *Worker) interruptedTries(ctx context.Context, b *inbox.AgentInbox) (Tries, error) {
	if !interrupted(b) {
		return Tries{}, nil
	}
	return s.triesOf(ctx, b.Lease.Agent, b.Run.ID)
}

// chargeRun keeps what is charged to a run.
func (s *Worker) chargeRun(ctx context.Context, id claybot.AgentID, t Tries) error {
	if s.Marks == nil {
		return nil
	}
	text := ""
	if !t.clear() || t.Ends > 0 {
		b, err := json.Marshal(t)
		if err != nil {
			return err
		}
		text = string(b)
	}
	if err := s.Marks.SetCheckpoint(ctx, triesKey(id), text); err != nil {
		return fmt.Errorf("charge run %s: %w", t.Run, err)
	}
	return nil
}

// chargeFailure charges a pass that failed to the run of a box.
func (s *Worker) chargeFailure(b *inbox.AgentInbox) {
	run := b.Working()
	if run == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	t, err := s.triesOf(ctx, b.Lease.Agent, run)
	if err == nil {
		t.N++
		err = s.chargeRun(ctx, b.Lease.Agent, t)
	}
	if err != nil {
		s.Log.Warn("failed to count a failed pass", "agent", b.Lease.Agent, "run", run, "err", err)
	}
}

// absolve takes back what is charged to a run that has outlived its probation. What
// comes later than that still counts.
func (s *Worker) absolve(t *ticket) {
	if t.tries.clear() || t.tries.GivenUp() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	left := Tries{Run: t.tries.Run, Ends: t.tries.Ends, Seen: t.tries.Seen}
	if err := s.chargeRun(ctx, t.agent, left); err != nil {
		s.Log.Warn("failed to clear a crash charge", "agent", t.agent, "err", err)
	}
}

// progressed takes back what is charged to a run that gets further. On probation it
// may still kill the process.
func (p *pass) progressed(ctx context.Context) {
	if p.tries.clear() && p.tries.Ends == 0 || p.Ramp.isTesting(p.box) {
		return
	}
	if err := p.chargeRun(ctx, p.agent.ID, Tries{}); err != nil {
		p.log.Warn("failed to clear a crash charge", "err", err)
		return
	}
	p.tries = Tries{}
}

// Line gives agents that were just taken their tickets.
func (s *Worker) Line(ctx context.Context, boxes []*inbox.AgentInbox) {
	for _, b := range boxes {
		if b.From != "" && interrupted(b) {
			s.Ramp.alarm(b.From)
		}
	}
	if !s.Ramp.isActive() {
		return
	}
	ts := make([]*ticket, len(boxes))
	for i, b := range boxes {
		tried, err := s.interruptedTries(ctx, b)
		if err == nil && s.Ramp.late && interrupted(b) {
			tried = tried.ended(s.Boots.Last().Started)
			err = s.chargeRun(ctx, b.Lease.Agent, tried)
		}
		if err != nil { // its pass will meet the same
			s.Log.Warn("failed to update the crash charges of a run", "agent", b.Lease.Agent, "err", err)
		}
		ts[i] = &ticket{box: b, tries: tried}
	}
	s.Ramp.queue(ts...)
}

// enter waits until the work on an agent may begin. Somebody who cancels it need
// not wait.
func (s *Worker) enter(b *inbox.AgentInbox) error {
	err := s.Ramp.wait(b, s.draining)
	var canceled *inbox.CanceledError
	if errors.As(err, &canceled) {
		return nil
	}
	return err
}

// BeginRamp learns how the process before ended, charges the run that killed it if
// that is known, and begins the ramp.
func (s *Worker) BeginRamp(ctx context.Context) error {
	if s.Boots == nil {
		return nil
	}
	unclean, last := 0, s.Boots.Last()
	if last.Started != 0 && !last.Closed {
		unclean = last.Unclean + 1
	}
	if unclean == 0 {
		return nil
	}
	var suspects []claybot.AgentID
	for i, id := range last.Testing {
		e, err := s.Index.IndexedAgentByID(ctx, id)
		if err := storage.Ignore(err, storage.ErrNotFound); err != nil {
			return fmt.Errorf("read the suspects of the last crash: %w", err)
		}
		if e.Run == "" {
			continue // it had ended
		}
		run, err := s.Reader.Run(ctx, e.Run)
		if err := storage.Ignore(err, storage.ErrNotFound); err != nil {
			return fmt.Errorf("read the suspects of the last crash: %w", err)
		}
		if run.State != claybot.RunRunning {
			continue // it had paused
		}
		suspects = append(suspects, id)
		if last.Alone && i == 0 {
			if err := s.chargeCrash(ctx, e, last); err != nil {
				return err
			}
		}
	}
	for _, id := range last.Parked {
		if err := s.missControl(ctx, id); err != nil {
			return err
		}
	}
	counts, err := s.Counts.Stats(ctx)
	if err != nil {
		return fmt.Errorf("count interrupted runs: %w", err)
	}
	s.Ramp.start(unclean, counts.Runs[claybot.RunRunning], last, suspects)
	return nil
}

// missControl makes the next control of an agent's run longer: the process died
// without it. When that goes on, something else kills it, and the run is no suspect any
// more, or it would never be let in again.
func (s *Worker) missControl(ctx context.Context, id claybot.AgentID) error {
	e, err := s.Index.IndexedAgentByID(ctx, id)
	if err != nil || e.Run == "" {
		return storage.Ignore(err, storage.ErrNotFound)
	}
	t, err := s.triesOf(ctx, id, e.Run)
	if err != nil || t.clear() {
		return err
	}
	if t.Missed++; t.Missed >= maxMissed {
		t = Tries{Run: t.Run, Ends: t.Ends, Seen: t.Seen}
	}
	return s.chargeRun(ctx, id, t)
}

// chargeCrash charges the death of the process before to the run that started
// alone.
func (s *Worker) chargeCrash(ctx context.Context, e storage.IndexEntry, last storage.Boot) error {
	t, err := s.triesOf(ctx, e.ID, e.Run)
	if err != nil {
		return err
	}
	t = t.After(time.Duration(max(0, last.Beat-last.Since)) * time.Millisecond)
	s.Log.Warn("process died while this run was alone on probation", "agent", e.ID, "run", e.Run, "charges", t.N)
	return s.chargeRun(ctx, e.ID, t)
}

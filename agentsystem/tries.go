package agentsystem

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

// maxAttempts is with how many charges a run is given up.
const maxAttempts = 3

// A tries is what is charged to an unfinished run: how often in a row its pass failed,
// or the process died of it, without progress in between. A shutdown, a lost lease, a
// store that asks to wait, and a death of the process while other runs were on
// probation charge nothing. It is a mark of the store, one for each agent that ever
// was charged, so that all members see it.
type tries struct {
	Run claybot.RunID `json:"run"`
	N   int           `json:"n"`
	// Suspect is set once the process has died with the run alone. That alone charges
	// nothing: it makes the run one to be tried with a control.
	Suspect bool `json:"suspect,omitempty"`
	// Lived is how long the process lived with the run at most, in milliseconds, when
	// it died of it, and Missed how often it died during the control.
	Lived  int64 `json:"lived,omitempty"`
	Missed int   `json:"missed,omitempty"`
}

// clear reports whether nothing is charged.
func (t tries) clear() bool { return t.N == 0 && !t.Suspect }

// givenUp reports whether the run is not tried any more.
func (t tries) givenUp() bool { return t.N >= maxAttempts }

// deadly reports whether even the end of the run, which reads what the agent
// remembers, kills the process.
func (t tries) deadly() bool { return t.N > maxAttempts }

// control is how long the process has to live without the run before that is let in
// again: ten times as long as it lived with it, twice as long after each charge and
// each death during a control.
func (t tries) control() time.Duration {
	if !t.Suspect || t.givenUp() {
		return 0
	}
	c := max(10*time.Duration(t.Lived)*time.Millisecond, controlMin)
	return min(c<<min(t.N+t.Missed, 10), controlMax)
}

// after is what is charged once the process has died and had lived so long with the
// run alone. What kills a process does so at about the same age each time: a death at
// another age is the first of its kind.
func (t tries) after(lived time.Duration) tries {
	known := time.Duration(t.Lived) * time.Millisecond
	switch {
	case t.givenUp():
		t.N++
	case t.Suspect && lived <= 2*known+controlMin/4:
		t.N++
	default:
		t.N, t.Suspect = 0, true
	}
	t.Lived = max(t.Lived, lived.Milliseconds())
	return t
}

func triesKey(id claybot.AgentID) string { return "tries/" + string(id) }

// triesOf reads what is charged to a run of an agent.
func (s *System) triesOf(ctx context.Context, id claybot.AgentID, run claybot.RunID) (tries, error) {
	t := tries{Run: run}
	if s.Marks == nil {
		return t, nil
	}
	text, err := s.Marks.Mark(ctx, triesKey(id))
	if err != nil || text == "" {
		return t, err
	}
	var known tries
	if err := json.Unmarshal([]byte(text), &known); err != nil || known.Run != run {
		return t, nil //nolint:nilerr // what cannot be read charges nothing
	}
	return known, nil
}

// interruptedTries is triesOf for the run of a box, if it was interrupted; others
// are not charged.
func (s *System) interruptedTries(ctx context.Context, b *inbox.Box) (tries, error) {
	if !interrupted(b) {
		return tries{}, nil
	}
	return s.triesOf(ctx, b.Lease.Agent, b.Run.ID)
}

// chargeRun keeps what is charged to a run.
func (s *System) chargeRun(ctx context.Context, id claybot.AgentID, t tries) error {
	if s.Marks == nil {
		return nil
	}
	text := ""
	if t.N > 0 || t.Suspect {
		b, err := json.Marshal(t)
		if err != nil {
			return err
		}
		text = string(b)
	}
	if err := s.Marks.SetMark(ctx, triesKey(id), text); err != nil {
		return fmt.Errorf("charge run %s: %w", t.Run, err)
	}
	return nil
}

// chargeFailure charges a pass that failed to the run of a box.
func (s *System) chargeFailure(b *inbox.Box) {
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
		s.Log.Warn("cannot count a failed pass", "agent", b.Lease.Agent, "run", run, "err", err)
	}
}

// absolve takes back what is charged to a run that has outlived its probation.
func (s *System) absolve(t *ticket) {
	if t.tries.clear() || t.tries.givenUp() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	if err := s.chargeRun(ctx, t.agent, tries{}); err != nil {
		s.Log.Warn("cannot forget a charge", "agent", t.agent, "err", err)
	}
}

// progressed takes back what is charged to a run that gets further. On probation it
// may still kill the process.
func (p *pass) progressed(ctx context.Context) {
	if p.tries.clear() || p.ramp.isTesting(p.box) {
		return
	}
	if err := p.chargeRun(ctx, p.agent.ID, tries{}); err != nil {
		p.log.Warn("cannot forget a charge", "err", err)
		return
	}
	p.tries = tries{}
}

// line gives agents that were just taken their tickets.
func (s *System) line(ctx context.Context, boxes []*inbox.Box) {
	for _, b := range boxes {
		if b.From != "" && interrupted(b) {
			s.ramp.alarm(b.From)
		}
	}
	if !s.ramp.isActive() {
		return
	}
	ts := make([]*ticket, len(boxes))
	for i, b := range boxes {
		tried, err := s.interruptedTries(ctx, b)
		if err != nil { // its pass will meet the same
			s.Log.Warn("cannot read what is charged to a run", "agent", b.Lease.Agent, "err", err)
		}
		ts[i] = &ticket{box: b, tries: tried}
	}
	s.ramp.queue(ts...)
}

// enter waits until the work on an agent may begin. Somebody who cancels it need
// not wait.
func (s *System) enter(b *inbox.Box) error {
	err := s.ramp.wait(b, s.draining)
	var canceled *inbox.CanceledError
	if errors.As(err, &canceled) {
		return nil
	}
	return err
}

// beginRamp learns how the process before ended, charges the run that killed it if
// that is known, and begins the ramp.
func (s *System) beginRamp(ctx context.Context) error {
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
	for _, id := range last.Testing {
		e, err := s.Index.IndexedAgentByID(ctx, id)
		if err := ignore(err, storage.ErrNotFound); err != nil {
			return fmt.Errorf("read the suspects of the last crash: %w", err)
		}
		if e.Run == "" {
			continue // it had ended
		}
		run, err := s.Runs.Run(ctx, e.Run)
		if err := ignore(err, storage.ErrNotFound); err != nil {
			return fmt.Errorf("read the suspects of the last crash: %w", err)
		}
		if run.State != claybot.RunRunning {
			continue // it had paused
		}
		suspects = append(suspects, id)
		if last.Alone {
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
	counts, err := s.Counts.Figures(ctx)
	if err != nil {
		return fmt.Errorf("count interrupted runs: %w", err)
	}
	s.ramp.start(unclean, counts.Runs[claybot.RunRunning], last, suspects)
	return nil
}

// missControl makes the next control of an agent's run longer: the process died
// without it.
func (s *System) missControl(ctx context.Context, id claybot.AgentID) error {
	e, err := s.Index.IndexedAgentByID(ctx, id)
	if err != nil || e.Run == "" {
		return ignore(err, storage.ErrNotFound)
	}
	t, err := s.triesOf(ctx, id, e.Run)
	if err != nil || t.clear() {
		return err
	}
	t.Missed++
	return s.chargeRun(ctx, id, t)
}

// chargeCrash charges the death of the process before to the run that was alone.
func (s *System) chargeCrash(ctx context.Context, e storage.IndexEntry, last storage.Boot) error {
	t, err := s.triesOf(ctx, e.ID, e.Run)
	if err != nil {
		return err
	}
	t = t.after(time.Duration(max(0, last.Beat-last.Since)) * time.Millisecond)
	s.Log.Warn("the process died while this run was the only one on probation", "agent", e.ID, "run", e.Run, "charges", t.N)
	return s.chargeRun(ctx, e.ID, t)
}

package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/storage"
)

const (
	maxAttempts = 3  // charges after which a run is given up
	maxEnds     = 24 // consecutive late process ends, the same
	controlMin  = 2 * time.Second
	controlMax  = 30 * time.Second // for a run that kills early
	lateControl = 4                // times as long as the process lived with a run that kills later
	maxMissed   = 6                // consecutive crashes during a control that clear a suspect
)

// Charges count against an unfinished run: the consecutive passes that failed, or
// crashed the process, without progress in between. A shutdown, a lost lease, an
// unavailable store, and a crash while other runs were on probation charge nothing. They
// are stored in a checkpoint for each agent that was ever charged, so that all members
// see them.
type Charges struct {
	Run claybot.RunID `json:"run"`
	N   int           `json:"n"`
	// Suspect is set once the process has crashed while only this run was on
	// probation. That charges nothing yet: the run is retried with a control.
	Suspect bool `json:"suspect,omitempty"`
	// Lived is the longest time, in milliseconds, from the start of the run to a
	// crash. Missed counts the consecutive crashes during the control.
	Lived  int64 `json:"lived,omitempty"`
	Missed int   `json:"missed,omitempty"`
	// Ends counts the consecutive process ends during the run that came later than a
	// probation lasts. Seen is the start time of the last process that was counted.
	Ends int          `json:"ends,omitempty"`
	Seen claybot.Time `json:"seen,omitempty"`
}

// clear reports whether the run needs no probation.
func (c Charges) clear() bool { return c.N == 0 && !c.Suspect }

// GivenUp reports whether the run is no longer retried.
func (c Charges) GivenUp() bool { return c.N >= maxAttempts }

// Deadly reports whether even ending the run, which reads the history, crashes
// the process.
func (c Charges) Deadly() bool { return c.N > maxAttempts }

// lived returns the longest time from the start of the run to a crash. late reports
// whether that is long enough for unrelated kills to be likely.
func (c Charges) lived() (lived time.Duration, late bool) {
	lived = time.Duration(c.Lived) * time.Millisecond
	return lived, lateControl*lived > controlMax
}

// Control returns how long the process must live without the run before it resumes the
// run: ten times as long as it lived with it, doubled after each charge and each crash
// during a control, up to half a minute. For a run that crashes late it is four times as
// long, doubled after each charge and once after crashes during a control.
func (c Charges) Control() time.Duration {
	if !c.Suspect || c.GivenUp() {
		return 0
	}
	if lived, late := c.lived(); late {
		return lateControl * lived << (c.N + min(c.Missed, 1))
	}
	control := max(10*time.Duration(c.Lived)*time.Millisecond, controlMin)
	return min(control<<min(c.N+c.Missed, 10), controlMax)
}

// endsOnly returns only the late ends of the charges.
func (c Charges) endsOnly() Charges { return Charges{Run: c.Run, Ends: c.Ends, Seen: c.Seen} }

// ended counts one more late process end during the run, at most once for the
// process that started at began.
func (c Charges) ended(began claybot.Time) Charges {
	if c.Seen == began {
		return c
	}
	c.Ends, c.Seen = c.Ends+1, began
	if c.Ends >= maxEnds {
		c.N = max(c.N, maxAttempts)
	}
	return c
}

// After returns the charges after a crash in which the process had lived this long
// with the run alone. A run that crashes the process does so at about the same age
// each time: a crash at a greater age counts as the first of its kind.
func (c Charges) After(lived time.Duration) Charges {
	known, late := c.lived()
	alike := 2*known + controlMin/4
	if late {
		alike = known + known/4
	}
	switch {
	case c.GivenUp():
		c.N++
	case c.Suspect && lived <= alike:
		c.N++
	default:
		c.N, c.Suspect = 0, true
	}
	c.Lived, c.Missed = max(c.Lived, lived.Milliseconds()), 0
	return c
}

// A chargeBook stores the charges of unfinished runs. Without checkpoints nothing is
// charged.
type chargeBook struct {
	marks storage.Checkpoints
	log   *slog.Logger
}

func chargesKey(id claybot.AgentID) string { return "tries/" + string(id) }

// of reads the charges of a run. Unreadable ones charge nothing.
func (b chargeBook) of(ctx context.Context, id claybot.AgentID, run claybot.RunID) (Charges, error) {
	c := Charges{Run: run}
	if b.marks == nil {
		return c, nil
	}
	text, err := b.marks.Checkpoint(ctx, chargesKey(id))
	if err != nil || text == "" {
		return c, err
	}
	var known Charges
	if err := json.Unmarshal([]byte(text), &known); err != nil || known.Run != run {
		return c, nil //nolint:nilerr // see above
	}
	return known, nil
}

// interrupted returns the charges of the run of a box if it was interrupted; other runs
// are not charged.
func (b chargeBook) interrupted(ctx context.Context, box *inbox.AgentInbox) (Charges, error) {
	if !interrupted(box) {
		return Charges{}, nil
	}
	return b.of(ctx, box.Lease.Agent, box.Run.ID)
}

// keep stores the charges of a run.
func (b chargeBook) keep(ctx context.Context, id claybot.AgentID, c Charges) error {
	if b.marks == nil {
		return nil
	}
	text := ""
	if !c.clear() || c.Ends > 0 {
		raw, err := json.Marshal(c)
		if err != nil {
			return err
		}
		text = string(raw)
	}
	if err := b.marks.SetCheckpoint(ctx, chargesKey(id), text); err != nil {
		return fmt.Errorf("charge run %s: %w", c.Run, err)
	}
	return nil
}

// failed charges a failed pass to the run of a box.
func (b chargeBook) failed(box *inbox.AgentInbox) {
	run := box.Working()
	if run == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	c, err := b.of(ctx, box.Lease.Agent, run)
	if err == nil {
		c.N++
		err = b.keep(ctx, box.Lease.Agent, c)
	}
	if err != nil {
		b.log.Warn("failed to count a failed pass", "agent", box.Lease.Agent, "run", run, "err", err)
	}
}

// survived clears the charges of a run that survived its probation, except for late
// ends.
func (b chargeBook) survived(t *ticket) {
	if t.charges.clear() || t.charges.GivenUp() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	if err := b.keep(ctx, t.agent, t.charges.endsOnly()); err != nil {
		b.log.Warn("failed to clear a crash charge", "agent", t.agent, "err", err)
	}
}

// missed makes the next control of an agent's run longer, because the process crashed
// without the run. After maxMissed of these, something else crashes the process, so the
// run is no longer a suspect; otherwise it would never be resumed.
func (b chargeBook) missed(ctx context.Context, e storage.IndexEntry) error {
	c, err := b.of(ctx, e.ID, e.Run)
	if err != nil || c.clear() {
		return err
	}
	if c.Missed++; c.Missed >= maxMissed {
		c = c.endsOnly()
	}
	return b.keep(ctx, e.ID, c)
}

// crashed charges the crash of the previous process to the run that was alone.
func (b chargeBook) crashed(ctx context.Context, e storage.IndexEntry, last storage.Boot) error {
	c, err := b.of(ctx, e.ID, e.Run)
	if err != nil {
		return err
	}
	c = c.After(time.Duration(max(0, last.LastAlive-last.Since)) * time.Millisecond)
	b.log.Warn("process died while this run was alone on probation", "agent", e.ID, "run", e.Run, "charges", c.N)
	return b.keep(ctx, e.ID, c)
}

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
	maxAttempts = 3  // charges with which a run is given up
	maxEnds     = 24 // late ends of a process in a row, the same
	controlMin  = 2 * time.Second
	controlMax  = 30 * time.Second // for a run that kills early
	lateControl = 4                // times as long as the process lived with a run that kills later
	maxMissed   = 6                // deaths during a control in a row that lift a suspicion
)

// Charges are what counts against an unfinished run: how often in a row its pass failed,
// or the process died of it, without progress in between. A shutdown, a lost lease, a
// store that asks to wait, and a death of the process while other runs were on
// probation charge nothing. It is a mark of the store, one for each agent that ever
// was charged, so that all members see it.
type Charges struct {
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
func (c Charges) clear() bool { return c.N == 0 && !c.Suspect }

// GivenUp reports whether the run is no longer retried.
func (c Charges) GivenUp() bool { return c.N >= maxAttempts }

// Deadly reports whether even the end of the run, which reads what the agent
// remembers, kills the process.
func (c Charges) Deadly() bool { return c.N > maxAttempts }

// lived is how long the process lived with the run at most, and late whether that is so
// long that kills from outside may well fall into it.
func (c Charges) lived() (lived time.Duration, late bool) {
	lived = time.Duration(c.Lived) * time.Millisecond
	return lived, lateControl*lived > controlMax
}

// Control is how long the process has to live without the run before that is let in
// again: ten times as long as it lived with it, twice as long after each charge and each
// death during a control, up to half a minute. For a run that kills late it is four times
// as long, twice as long after each charge and once after deaths during a control.
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

// endsOnly are the late ends among the charges.
func (c Charges) endsOnly() Charges { return Charges{Run: c.Run, Ends: c.Ends, Seen: c.Seen} }

// ended counts one more late end of a process at which the run was at work, once for
// the process that began at a time.
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

// After is what is charged once the process has died and had lived so long with the
// run alone. What kills a process does so at about the same age each time: a death at
// a greater age is the first of its kind.
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

// A chargeBook keeps the charges of unfinished runs. Without marks nothing is charged.
type chargeBook struct {
	marks storage.Checkpoints
	log   *slog.Logger
}

func chargesKey(id claybot.AgentID) string { return "tries/" + string(id) }

// of reads the charges of a run of an agent. What cannot be read charges nothing.
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

// interrupted is of for the run of a box, if it was interrupted; others are not charged.
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

// survived lifts the charges of a run that has outlived its probation. What comes later
// than that still counts.
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

// missed makes the next control of an agent's run longer, because the process died
// without the run. When that goes on, something else kills the process and the run is no
// longer a suspect: it would never be resumed otherwise.
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

// crashed charges the death of the previous process to the run that was alone.
func (b chargeBook) crashed(ctx context.Context, e storage.IndexEntry, last storage.Boot) error {
	c, err := b.of(ctx, e.ID, e.Run)
	if err != nil {
		return err
	}
	c = c.After(time.Duration(max(0, last.Beat-last.Since)) * time.Millisecond)
	b.log.Warn("process died while this run was alone on probation", "agent", e.ID, "run", e.Run, "charges", c.N)
	return b.keep(ctx, e.ID, c)
}

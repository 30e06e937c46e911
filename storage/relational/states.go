package relational

import (
	"fmt"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// terminal is the one event that ends a run in each state (EV-03).
var terminal = map[claybot.RunState]claybot.EventType{
	claybot.RunSucceeded: claybot.EventRunFinished,
	claybot.RunFailed:    claybot.EventRunFailed,
	claybot.RunCanceled:  claybot.EventRunCanceled,
}

// transitions are the ways of a run (RN-01). An ended one has none.
var transitions = map[claybot.RunState][]claybot.RunState{
	claybot.RunPending:  {claybot.RunRunning, claybot.RunCanceled},
	claybot.RunRunning:  {claybot.RunAwaiting, claybot.RunSucceeded, claybot.RunFailed, claybot.RunCanceled},
	claybot.RunAwaiting: {claybot.RunRunning, claybot.RunFailed, claybot.RunCanceled},
}

// checkMove refuses a transition that is not in the diagram.
func checkMove(from, to claybot.RunState) error {
	if !slices.Contains(transitions[from], to) {
		return fmt.Errorf("a run that is %s cannot become %q", from, to)
	}
	return nil
}

// checkOutcome refuses what is no way to end a run (RN-01, EV-03).
func checkOutcome(from claybot.RunState, o storage.Outcome) error {
	if err := checkMove(from, o.State); err != nil {
		return err
	}
	last, ok := terminal[o.State]
	if !ok {
		return fmt.Errorf("a run cannot end as %q", o.State)
	}
	for i, e := range o.Events {
		if e.Type.Ends() != (i == len(o.Events)-1) || e.Type.Ends() && e.Type != last {
			return fmt.Errorf("event %s at place %d of %d: want one %s, at the end", e.Type, i+1, len(o.Events), last)
		}
	}
	if len(o.Events) == 0 {
		return fmt.Errorf("no events: want one %s at the end", last)
	}
	return nil
}

// checkOpen refuses events that end a run: only Finish does.
func checkOpen(ev []claybot.Event) error {
	for _, e := range ev {
		if e.Type.Ends() {
			return fmt.Errorf("%s ends a run and is for Finish", e.Type)
		}
	}
	return nil
}

package explore

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/devices"
	"github.com/claybot/claybot/runs"
)

// perceive looks at the screen.
func (w *walk) perceive(ctx context.Context, s *state) (string, error) {
	err := w.here(ctx, s)
	var seen devices.Screen
	if err == nil {
		seen, err = w.look(ctx)
	}
	fault, broken := trouble(ctx, err)
	switch {
	case broken != nil:
		return "", broken
	case fault != nil:
		return w.crashed(s, fault), nil
	}
	if s.Scratch.Seen, err = w.sight(ctx, s, seen); err != nil {
		return "", err
	}
	s.Because(seen.Title)
	return nodeEnumerate, nil
}

// enumerate takes what was seen into the map.
func (w *walk) enumerate(_ context.Context, s *state) (string, error) {
	m := &s.Scratch
	if m.Seen == nil {
		return nodeChoose, nil // the device is gone
	}
	for _, f := range m.Seen.Faults {
		s.Output.wrong(Fault{Screen: m.Seen.ID, Text: f})
	}
	m.admit(m.Seen)
	if m.At != m.Seen.ID {
		m.At, m.Filled = m.Seen.ID, nil
	}
	if m.Start == "" {
		m.Start = m.At
	}
	s.Because(fmt.Sprintf("%d to try", len(m.untried(m.At))))
	m.Seen = &sighting{ID: m.Seen.ID}
	return nodeChoose, nil
}

// choose decides what is done next, or that there is nothing.
func (w *walk) choose(ctx context.Context, s *state) (string, error) {
	m := &s.Scratch
	m.Intent, m.Outcome, m.New = nil, nil, false
	if m.Crashed || m.Iterations >= w.set.MaxIterations || m.Idle >= w.set.NoProgress || w.poor(m) {
		return nodeContinue, nil
	}
	in, err := w.next(ctx, s)
	switch {
	case err != nil:
		return "", err
	case in == nil:
		m.Exhausted = !m.Reached
		return nodeContinue, nil
	}
	m.Intent = in
	m.Iterations++
	s.Because(in.Action.Label)
	return nodeAct, nil
}

// poor reports whether the budget is spent.
func (w *walk) poor(m *memory) bool {
	return w.set.BudgetMicroUSD > 0 && m.Spent >= w.set.BudgetMicroUSD
}

// act does what was chosen, and sees at once where it led: what an action that is
// done once has led to might never be seen again.
func (w *walk) act(ctx context.Context, s *state) (string, error) {
	m := &s.Scratch
	if m.Intent == nil {
		return "", &runs.Error{Code: runs.CodeGraph, Text: "explore: nothing was chosen"}
	}
	out, err := w.attempt(ctx, s, *m.Intent)
	if err != nil {
		return "", err
	}
	m.Outcome = out
	if out.There && m.At != m.Intent.Screen {
		m.At, m.Filled = m.Intent.Screen, nil
	}
	if out.Fault != "" {
		s.Because(out.Fault)
		return nodeRecover, nil
	}
	return nodeVerify, nil
}

// attempt carries an intent out. What must be done once is started at most once:
// its start is durable before, and its outcome after it.
func (w *walk) attempt(ctx context.Context, s *state, in intent) (*outcome, error) {
	if !in.Action.Once {
		return w.carryOut(ctx, s, in)
	}
	call := claybot.ToolCall{ID: fmt.Sprintf("act-%d", s.Scratch.Iterations), Name: "explore_act"}
	args, err := json.Marshal(map[string]string{"screen": s.Scratch.Screens[in.Screen].Title, "kind": string(in.Action.Kind), "label": in.Action.Label})
	if err != nil {
		return nil, err
	}
	call.Args = string(args)
	if out := recorded(s.Records(), s.Turn.Run.ID, call.ID); out != nil {
		return out, nil
	}
	out := &outcome{Fault: "it was interrupted; whether it was done is not known"}
	interrupted := s.Turn.InDoubt(call.ID)
	if !interrupted {
		if out, err = w.goTo(ctx, s, in.Screen); out != nil || err != nil {
			return out, err // it was not started
		}
		if err := s.Turn.Started(ctx, call, "once"); err != nil {
			return nil, fmt.Errorf("record the start of an action: %w", err)
		}
		if out, err = w.carryOut(ctx, s, in); err != nil {
			return nil, err
		}
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	r := claybot.Record{
		Type: claybot.RecordTool, ToolCallID: call.ID, Name: call.Name, OK: out.Fault == "", Interrupted: interrupted, Text: out.Fault,
		Change: &claybot.StateChange{Scratch: map[string]json.RawMessage{outcomeMember: raw}},
	}
	if r.OK {
		r.Text = "done: " + in.Action.Label
	}
	return out, s.Record(r)
}

// outcomeMember is the outcome in the record of an action that is done once.
const outcomeMember = "outcome"

// recorded is the outcome of an action that an earlier pass has done; nil when it
// has not.
func recorded(records []claybot.Record, run claybot.RunID, call string) *outcome {
	for _, r := range records {
		if r.Type != claybot.RecordTool || r.Run != run || r.ToolCallID != call || r.Change == nil {
			continue
		}
		var out outcome
		if json.Unmarshal(r.Change.Scratch[outcomeMember], &out) == nil {
			return &out
		}
	}
	return nil
}

// goTo brings the device to the screen of an intent; an outcome says why not.
func (w *walk) goTo(ctx context.Context, s *state, to string) (*outcome, error) {
	err := w.here(ctx, s)
	if err == nil {
		err = w.travel(ctx, &s.Scratch, to)
	}
	fault, broken := trouble(ctx, err)
	if broken != nil || fault == nil {
		return nil, broken
	}
	if !fault.Crash && w.at != to {
		s.Scratch.Screens[to].Lost = true
	}
	return &outcome{Fault: fault.Text, Crash: fault.Crash}, nil
}

// carryOut goes where the action is, does it, and sees what came of it.
func (w *walk) carryOut(ctx context.Context, s *state, in intent) (*outcome, error) {
	if out, err := w.goTo(ctx, s, in.Screen); out != nil || err != nil {
		return out, err
	}
	fault, broken := trouble(ctx, w.do(ctx, in.Action, in.Value))
	switch {
	case broken != nil:
		return nil, broken
	case fault != nil:
		return &outcome{There: true, Fault: fault.Text, Crash: fault.Crash}, nil
	}
	seen, err := w.sight(ctx, s, *w.shown)
	return &outcome{There: true, Seen: seen}, err
}

// verify judges where the action led.
func (w *walk) verify(_ context.Context, s *state) (string, error) {
	m := &s.Scratch
	in, to := m.Intent, m.Outcome.Seen
	m.Crashes = 0
	m.New = m.Screens[to.ID] == nil && len(m.Screens) < maxScreens
	switch {
	case m.New:
		s.Because("a new screen")
	case to.ID == in.Screen:
		s.Because("the same screen")
	default:
		s.Because("a known screen")
	}
	for _, f := range to.Faults {
		s.Output.wrong(Fault{Screen: to.ID, Action: in.Action.Label, Text: f})
	}
	return nodePersist, nil
}

// persist takes screen and move into the map.
func (w *walk) persist(_ context.Context, s *state) (string, error) {
	m := &s.Scratch
	in, to := *m.Intent, m.Outcome.Seen
	m.admit(to)
	if m.Screens[to.ID] == nil {
		m.moved(in, "") // beyond the limit
	} else {
		m.moved(in, to.ID)
	}
	if kind := in.Action.Kind; to.ID != in.Screen {
		m.Filled = nil
	} else if kind == devices.Type || kind == devices.Select {
		m.Filled = append(m.Filled, in)
	}
	m.At, m.Seen, m.Outcome = to.ID, &sighting{ID: to.ID}, nil
	s.Output.show(m, false)
	return nodeProgress, nil
}

// progress counts actions that led to nothing new.
func (w *walk) progress(_ context.Context, s *state) (string, error) {
	if s.Scratch.New {
		s.Scratch.Idle = 0
		s.Because("something new")
	} else {
		s.Scratch.Idle++
		s.Because(fmt.Sprintf("nothing new for %d actions", s.Scratch.Idle))
	}
	return nodeContinue, nil
}

// recover notes what went wrong with an action, and finds out where the device is.
func (w *walk) recover(ctx context.Context, s *state) (string, error) {
	m := &s.Scratch
	in, out := *m.Intent, m.Outcome
	s.Output.wrong(Fault{Screen: in.Screen, Action: in.Action.Label, Text: out.Fault})
	m.moved(in, "")
	m.Idle++
	crash := out.Crash
	if !crash {
		err := w.here(ctx, s)
		if err == nil {
			_, err = w.look(ctx)
		}
		fault, broken := trouble(ctx, err)
		if broken != nil {
			return "", broken
		}
		crash = fault != nil
	}
	m.Outcome, m.Filled = nil, nil
	if crash {
		s.Because("the device is gone")
		m.Crashed, m.Seen = true, nil
		m.Crashes++
		w.close()
	} else {
		var err error
		if m.Seen, err = w.sight(ctx, s, *w.shown); err != nil {
			return "", err
		}
	}
	s.Output.show(m, false)
	return nodeEnumerate, nil
}

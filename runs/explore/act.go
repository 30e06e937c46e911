package explore

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/devices"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/texts"
)

// An actor does on the device what was chosen, and looks at what came of it.
type actor struct {
	dev  *session
	keep bool // a picture of each screen
}

// perceive looks at the screen.
func (a *actor) perceive(ctx context.Context, s *state) (string, error) {
	err := a.dev.here(ctx, s)
	var seen devices.Screen
	if err == nil {
		seen, err = a.dev.look(ctx)
	}
	fault, broken := trouble(ctx, err)
	switch {
	case broken != nil:
		return "", broken
	case fault != nil:
		return a.dev.crashed(s, fault), nil
	}
	if s.Scratch.Now.Seen, err = a.sight(ctx, s, seen); err != nil {
		return "", err
	}
	s.Because(seen.Title)
	return nodeEnumerate, nil
}

// act does what was chosen, and sees at once where it led: what an action that is
// done once has led to might never be seen again.
func (a *actor) act(ctx context.Context, s *state) (string, error) {
	m := &s.Scratch
	if m.Now.Intent == nil {
		return "", &runs.Error{Code: runs.CodeGraph, Text: "explore: nothing was chosen"}
	}
	out, err := a.attempt(ctx, s, *m.Now.Intent)
	if err != nil {
		return "", err
	}
	m.Now.Outcome = out
	if out.There && m.Now.At != m.Now.Intent.Screen {
		m.Now.At, m.Now.Filled = m.Now.Intent.Screen, nil
	}
	if out.Fault != "" {
		s.Because(out.Fault)
		return nodeRecover, nil
	}
	return nodeVerify, nil
}

// attempt carries an intent out. What must be done once is started at most once:
// its start is durable before, and its outcome after it.
func (a *actor) attempt(ctx context.Context, s *state, in intent) (*outcome, error) {
	if !in.Action.Once {
		return a.carryOut(ctx, s, in)
	}
	call := claybot.ToolCall{ID: fmt.Sprintf("act-%d", s.Scratch.Progress.Iterations), Name: "explore_act"}
	args, err := json.Marshal(map[string]string{"screen": s.Scratch.Map.Screens[in.Screen].Title, "kind": string(in.Action.Kind), "label": in.Action.Label})
	if err != nil {
		return nil, err
	}
	call.Args = string(args)
	if out := recorded(s.Records(), s.Turn.Run.ID, call.ID); out != nil {
		return out, nil
	}
	out := &outcome{Fault: texts.ExploredBreak}
	interrupted := s.Turn.InDoubt(call.ID)
	if !interrupted {
		if out, err = a.goTo(ctx, s, in.Screen); out != nil || err != nil {
			return out, err // it was not started
		}
		if err := s.Turn.Started(ctx, call, "once"); err != nil {
			return nil, fmt.Errorf("record the start of an action: %w", err)
		}
		if out, err = a.carryOut(ctx, s, in); err != nil {
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
func (a *actor) goTo(ctx context.Context, s *state, to string) (*outcome, error) {
	err := a.dev.here(ctx, s)
	if err == nil {
		err = a.dev.travel(ctx, &s.Scratch, to)
	}
	fault, broken := trouble(ctx, err)
	if broken != nil || fault == nil {
		return nil, broken
	}
	if !fault.Crash && a.dev.at != to {
		s.Scratch.Map.Screens[to].Lost = true
	}
	return &outcome{Fault: fault.Text, Crash: fault.Crash}, nil
}

// carryOut goes where the action is, does it, and sees what came of it.
func (a *actor) carryOut(ctx context.Context, s *state, in intent) (*outcome, error) {
	if out, err := a.goTo(ctx, s, in.Screen); out != nil || err != nil {
		return out, err
	}
	fault, broken := trouble(ctx, a.dev.do(ctx, in.Action, in.Value))
	switch {
	case broken != nil:
		return nil, broken
	case fault != nil:
		return &outcome{There: true, Fault: fault.Text, Crash: fault.Crash}, nil
	}
	seen, err := a.sight(ctx, s, *a.dev.shown)
	return &outcome{There: true, Seen: seen}, err
}

// recover notes what went wrong with an action, and finds out where the device is.
func (a *actor) recover(ctx context.Context, s *state) (string, error) {
	m := &s.Scratch
	in, out := *m.Now.Intent, m.Now.Outcome
	s.Output.wrong(Fault{Screen: in.Screen, Action: in.Action.Label, Text: out.Fault})
	m.Map.moved(in, "")
	m.Progress.Idle++
	crash := out.Crash
	if !crash {
		err := a.dev.here(ctx, s)
		if err == nil {
			_, err = a.dev.look(ctx)
		}
		fault, broken := trouble(ctx, err)
		if broken != nil {
			return "", broken
		}
		crash = fault != nil
	}
	m.Now.Outcome, m.Now.Filled = nil, nil
	if crash {
		s.Because("the device is gone")
		m.Progress.Crashed, m.Now.Seen = true, nil
		m.Progress.Crashes++
		a.dev.close()
	} else {
		var err error
		if m.Now.Seen, err = a.sight(ctx, s, *a.dev.shown); err != nil {
			return "", err
		}
	}
	s.Output.show(m, false)
	return nodeEnumerate, nil
}

// sight is what the nodes remember of a screen that the device shows. The picture
// of a new one is kept.
func (a *actor) sight(ctx context.Context, s *state, seen devices.Screen) (*sighting, error) {
	m := &s.Scratch
	out := &sighting{ID: seen.ID, Faults: seen.Faults}
	if m.Map.Screens[seen.ID] != nil {
		return out, nil
	}
	out.Screen = &screen{Title: seen.Title, URL: seen.URL, Actions: seen.Actions}
	if !a.keep || len(seen.PNG) == 0 || s.Turn.Files == nil || len(m.Map.Screens) >= maxScreens {
		return out, nil
	}
	f, err := s.Turn.Files.SaveFile(ctx, "screen-"+seen.ID+".png", "image/png", seen.PNG)
	if err != nil {
		return nil, fmt.Errorf("keep the picture of a screen: %w", err)
	}
	out.Screen.File = f.ID
	return out, nil
}

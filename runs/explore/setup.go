package explore

import (
	"context"

	"github.com/claybot/claybot/devices"
	"github.com/claybot/claybot/runs"
)

// ensure reads what is to be explored, and opens the device.
func (w *walk) ensure(ctx context.Context, s *state) (string, error) {
	if w.bad != nil {
		return "", &runs.Error{Code: runs.CodeDevice, Text: w.bad.Error(), Err: w.bad, Say: "I cannot explore anything: the hosts in my settings are wrong. The operator finds more in the log."}
	}
	r, refusal := w.request(s.Turn)
	s.Output = Output{
		Screens: []FoundScreen{}, Transitions: []Transition{}, DeadEnds: []string{}, Errors: []Fault{},
		URL: devices.Plain(r.url), Goal: r.goal, Reason: ReasonUnfinished, Policy: policies[0],
	}
	if refusal != "" {
		s.Because("refused")
		s.Scratch.Stop, s.Scratch.Why = ReasonRefused, refusal
		return nodeStop, nil
	}
	s.Scratch.URL, s.Scratch.Goal, s.Scratch.Policy = r.url, r.goal, policies[0]
	if err := w.upto(ctx, s, ensured); err != nil {
		return "", w.unreachable(ctx, err)
	}
	return nodeProvision, nil
}

// provision puts the application onto the device.
func (w *walk) provision(ctx context.Context, s *state) (string, error) {
	if err := w.upto(ctx, s, provisioned); err != nil {
		return "", w.unreachable(ctx, err)
	}
	return nodeLaunch, nil
}

// launch opens the first screen.
func (w *walk) launch(ctx context.Context, s *state) (string, error) {
	err := w.upto(ctx, s, launched)
	fault, broken := trouble(ctx, err)
	switch {
	case broken != nil:
		return "", broken
	case fault != nil && fault.Crash:
		return w.crashed(s, fault), nil
	case fault != nil:
		return "", w.unreachable(ctx, err)
	}
	return nodeIdle, nil
}

// waitIdle waits until the application has settled.
func (w *walk) waitIdle(ctx context.Context, s *state) (string, error) {
	fault, broken := trouble(ctx, w.upto(ctx, s, settled))
	switch {
	case broken != nil:
		return "", broken
	case fault != nil:
		return w.crashed(s, fault), nil
	}
	return nodePerceive, nil
}

// crashed notes that the device is gone, or might as well be.
func (w *walk) crashed(s *state, fault *devices.Error) string {
	s.Because(fault.Text)
	s.Scratch.Crashes++
	s.Output.wrong(Fault{Text: fault.Text})
	w.stage = min(w.stage, provisioned)
	w.at, w.shown = "", nil
	return nodeRestart
}

// restart brings the application back, on a device of its own where it must be.
// The walk begins at the first screen again, with all it knows.
func (w *walk) restart(ctx context.Context, s *state) (string, error) {
	m := &s.Scratch
	m.Crashed, m.At, m.Seen, m.Filled, m.Outcome = false, "", nil, nil, nil
	var last error
	for try := 0; try < 3 && m.Crashes <= maxCrashes; try++ {
		if w.dev == nil {
			last = w.upto(ctx, s, launched)
		} else {
			w.at, w.shown = "", nil
			last = devices.Restart(ctx, w.dev)
			w.stage = launched
		}
		if last == nil {
			return nodeIdle, nil
		}
		if _, broken := trouble(ctx, last); broken != nil {
			return "", broken
		}
		w.close()
	}
	if len(m.Screens) == 0 {
		if last == nil {
			last = devices.Crashed("it crashed %d times", m.Crashes)
		}
		return "", w.unreachable(ctx, last)
	}
	s.Because("the device does not come back")
	m.Stop = ReasonDevice
	return nodeStop, nil
}

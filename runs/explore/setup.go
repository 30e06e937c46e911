package explore

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/claybot/claybot/devices"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/texts"
)

// A setup brings the application onto the device, at the beginning and after a crash.
type setup struct {
	dev   *session
	set   Settings
	wrong error // in the settings
	log   *slog.Logger
}

// ensure reads what is to be explored, and opens the device.
func (u *setup) ensure(ctx context.Context, s *state) (string, error) {
	if u.wrong != nil {
		return "", &runs.Error{Code: runs.CodeDevice, Text: u.wrong.Error(), Err: u.wrong, Say: texts.Of(ctx).In(texts.ExploreSettings)}
	}
	r, refusal := readRequest(texts.Of(ctx), s.Turn, u.set, u.dev.hosts)
	s.Output = Output{
		Screens: []FoundScreen{}, Transitions: []Transition{}, DeadEnds: []string{}, Errors: []Fault{},
		URL: devices.Plain(r.url), Goal: r.goal, Reason: ReasonUnfinished, Policy: policies[0],
	}
	if refusal = cmp.Or(texts.Of(ctx).In(u.set.Forbidden), refusal); refusal != "" {
		s.Because("refused")
		s.Scratch.Progress.Stop, s.Scratch.Progress.Why = ReasonRefused, refusal
		return nodeStop, nil
	}
	s.Scratch.Target.URL, s.Scratch.Target.Goal, s.Scratch.Progress.Policy = r.url, r.goal, policies[0]
	if err := u.dev.upto(ctx, s, ensured); err != nil {
		return "", u.unreachable(ctx, err)
	}
	return nodeProvision, nil
}

// provision puts the application onto the device.
func (u *setup) provision(ctx context.Context, s *state) (string, error) {
	if err := u.dev.upto(ctx, s, provisioned); err != nil {
		return "", u.unreachable(ctx, err)
	}
	return nodeLaunch, nil
}

// launch opens the first screen.
func (u *setup) launch(ctx context.Context, s *state) (string, error) {
	err := u.dev.upto(ctx, s, launched)
	fault, broken := trouble(ctx, err)
	switch {
	case broken != nil:
		return "", broken
	case fault != nil && fault.Crash:
		return u.dev.crashed(s, fault), nil
	case fault != nil:
		return "", u.unreachable(ctx, err)
	}
	return nodeIdle, nil
}

// waitIdle waits until the application has settled.
func (u *setup) waitIdle(ctx context.Context, s *state) (string, error) {
	fault, broken := trouble(ctx, u.dev.upto(ctx, s, settled))
	switch {
	case broken != nil:
		return "", broken
	case fault != nil:
		return u.dev.crashed(s, fault), nil
	}
	return nodePerceive, nil
}

// restart brings the application back, on a device of its own where it must be.
// The walk begins at the first screen again, with all it knows.
func (u *setup) restart(ctx context.Context, s *state) (string, error) {
	m := &s.Scratch
	m.Progress.Crashed, m.Now.At, m.Now.Seen, m.Now.Filled, m.Now.Outcome = false, "", nil, nil, nil
	var last error
	for try := 0; try < 3 && m.Progress.Crashes <= maxCrashes; try++ {
		if last = u.dev.relaunch(ctx, s); last == nil {
			return nodeIdle, nil
		}
		if _, broken := trouble(ctx, last); broken != nil {
			return "", broken
		}
		u.dev.close()
	}
	if len(m.Map.Screens) == 0 {
		if last == nil {
			last = devices.Crashed("it crashed %d times", m.Progress.Crashes)
		}
		return "", u.unreachable(ctx, last)
	}
	s.Because("the device does not come back")
	m.Progress.Stop = ReasonDevice
	return nodeStop, nil
}

// unreachable ends the run: there is nothing to explore. The sentence says why.
func (u *setup) unreachable(ctx context.Context, err error) error {
	fault, broken := trouble(ctx, err)
	if broken != nil {
		return broken
	}
	u.log.Error("what is to be explored cannot be reached", "err", err)
	return &runs.Error{Code: runs.CodeDevice, Text: fault.Text, Err: err, Say: texts.Of(ctx).Say(texts.ExploreFailed, fault.Text)}
}

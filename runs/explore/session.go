package explore

import (
	"context"
	"errors"
	"log/slog"

	"github.com/claybot/claybot/devices"
)

// A session is the device of one pass, and the way back to where the walk was.
type session struct {
	open  devices.Open
	hosts devices.Hosts
	log   *slog.Logger

	dev   devices.Device // nil: not open
	stage stage
	at    string          // the screen that the device shows; empty: unknown
	shown *devices.Screen // as it was perceived last
}

// A stage is how far a device is.
type stage int

const (
	absent stage = iota
	ensured
	provisioned
	launched
	settled
)

// forget notes that what the device shows is not known.
func (d *session) forget() { d.at, d.shown = "", nil }

// restart brings the application back on the same device.
func (d *session) restart(ctx context.Context) error {
	d.forget()
	return devices.Restart(ctx, d.dev)
}

// relaunch brings the application back, on another device where this one is gone.
func (d *session) relaunch(ctx context.Context, s *state) error {
	if d.dev == nil {
		return d.upto(ctx, s, launched)
	}
	err := d.restart(ctx)
	d.stage = launched
	return err
}

func (d *session) close() {
	if d.dev == nil {
		return
	}
	if err := d.dev.Close(); err != nil {
		d.log.Warn("failed to close the device", "err", err)
	}
	d.dev, d.stage = nil, absent
	d.forget()
}

// upto opens the device where it is not open, and takes it to a stage.
func (d *session) upto(ctx context.Context, s *state, to stage) error {
	if d.dev == nil {
		dev, err := d.open(ctx, devices.Spec{URL: s.Scratch.Target.URL, Hosts: d.hosts})
		if err != nil {
			return err
		}
		d.dev, d.stage = dev, absent
	}
	start := d.dev.Starter()
	for ; d.stage < to; d.stage++ {
		call := []func(context.Context) error{start.Ensure, start.Provision, start.Launch, d.dev.WaitIdle}[d.stage]
		if err := call(ctx); err != nil {
			return err
		}
	}
	return nil
}

// look perceives the screen.
func (d *session) look(ctx context.Context) (devices.Screen, error) {
	seen, err := d.dev.Perceive(ctx)
	if err != nil {
		d.forget()
		return seen, err
	}
	seen = devices.Bounded(seen)
	d.at, d.shown = seen.ID, &seen
	return seen, nil
}

// here sees to it that there is a device, and brings a new one back to where the
// walk was, as far as a way leads there.
func (d *session) here(ctx context.Context, s *state) error {
	if d.stage == settled {
		return nil
	}
	fresh, m := d.dev == nil, &s.Scratch
	if err := d.upto(ctx, s, settled); err != nil || !fresh || m.Now.At == "" {
		return err
	}
	if _, err := d.look(ctx); err != nil {
		return err
	}
	err := d.travel(ctx, m, m.Now.At)
	if fault, broken := trouble(ctx, err); broken != nil || fault != nil && fault.Crash {
		return err
	} else if fault != nil {
		d.log.Info("exploration resumed at a different screen", "err", fault.Text)
		return nil
	}
	for _, in := range m.Now.Filled {
		if err := d.do(ctx, in.Action, in.Value); err != nil {
			return err
		}
	}
	return nil
}

// do acts and looks.
func (d *session) do(ctx context.Context, a devices.Action, value string) error {
	d.forget()
	if err := d.dev.Act(ctx, a, value); err != nil {
		return err
	}
	if err := d.dev.WaitIdle(ctx); err != nil {
		return err
	}
	_, err := d.look(ctx)
	return err
}

// maxWay is the most steps of a way back.
const maxWay = 20

// travel brings the device to a known screen, by nothing that must not be
// repeated: by the steps that led from here to there, by its address, or from the
// beginning.
func (d *session) travel(ctx context.Context, m *memory, to string) error {
	goal := m.Map.Screens[to]
	if goal == nil {
		return devices.Failed("the screen %s is not known", to)
	}
	for _, try := range []func() error{
		func() error { return d.follow(ctx, m, to, 2) },
		func() error {
			if goal.URL == "" || !d.hosts.AllowsURL(goal.URL) {
				return nil
			}
			return d.do(ctx, devices.Action{Kind: devices.Navigate, Target: goal.URL}, "")
		},
		func() error {
			if err := d.restart(ctx); err != nil {
				return err
			}
			if err := d.dev.WaitIdle(ctx); err != nil {
				return err
			}
			_, err := d.look(ctx)
			return err
		},
		func() error { return d.follow(ctx, m, to, maxWay) },
	} {
		if d.at == to {
			return nil
		}
		if fault, broken := trouble(ctx, try()); broken != nil {
			return broken
		} else if fault != nil && fault.Crash {
			return fault
		}
	}
	if d.at != to {
		return devices.Failed("no way leads back to %q", goal.Title)
	}
	return nil
}

// follow goes from the present screen to another by known moves, when they are
// not more than limit.
func (d *session) follow(ctx context.Context, m *memory, to string, limit int) error {
	way := m.Map.route(d.at, to)
	if len(way) > limit {
		return nil
	}
	for _, v := range way {
		a, ok := m.Map.action(v)
		if !ok {
			return nil
		}
		if err := d.do(ctx, a, fitting(a)); err != nil {
			return err
		}
		if d.at != v.To {
			return nil
		}
	}
	return nil
}

// text is what the screen says. It is no part of what the walk remembers, so a
// new pass looks again. A screen that cannot be read now is chosen from all the
// same.
func (d *session) text(ctx context.Context, s *state) (string, error) {
	if d.shown == nil || d.at != s.Scratch.Now.At {
		err := d.here(ctx, s)
		if err == nil {
			_, err = d.look(ctx)
		}
		if _, broken := trouble(ctx, err); broken != nil {
			return "", broken
		}
	}
	if d.shown != nil && d.at == s.Scratch.Now.At {
		return d.shown.Text, nil
	}
	return "", nil
}

// crashed notes that the device is gone, or might as well be.
func (d *session) crashed(s *state, fault *devices.Error) string {
	s.Because(fault.Text)
	s.Scratch.Progress.Crashes++
	s.Output.wrong(Fault{Text: fault.Text})
	d.stage = min(d.stage, provisioned)
	d.forget()
	return nodeRestart
}

// trouble tells what a device could not do from what ends the pass.
func trouble(ctx context.Context, err error) (fault *devices.Error, broken error) {
	switch {
	case err == nil:
		return nil, nil
	case ctx.Err() != nil:
		return nil, err
	}
	if fault, ok := errors.AsType[*devices.Error](err); ok {
		return fault, nil
	}
	return &devices.Error{Text: "the device failed in an unforeseen way", Err: err}, nil
}

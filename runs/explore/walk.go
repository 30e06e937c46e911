package explore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/claybot/claybot/devices"
	"github.com/claybot/claybot/runs"
)

// A walk is one pass over a run, with its device.
type walk struct {
	cfg   Config
	set   Settings
	hosts devices.Hosts
	bad   error // in the settings
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

// walk prepares a pass. Without a turn it is good for its graph alone.
func (e *Engine) walk(t *runs.Turn) *walk {
	w := &walk{cfg: e.cfg, log: e.cfg.Log}
	if t == nil {
		return w
	}
	w.log = w.log.With("agent", t.Agent.ID, "run", t.Run.ID)
	if e.cfg.Settings != nil {
		w.set = e.cfg.Settings(t)
	}
	if w.set.MaxIterations < 1 {
		w.set.MaxIterations = DefaultMaxIterations
	}
	w.set.MaxIterations = min(w.set.MaxIterations, maxIterations)
	if w.set.NoProgress < 1 {
		w.set.NoProgress = DefaultNoProgress
	}
	list := w.set.Hosts
	if host, ok := devices.HostOf(w.set.URL); ok && len(list) == 0 {
		list = []string{host}
	}
	w.hosts, w.bad = devices.ParseHosts(list)
	return w
}

func (w *walk) close() {
	if w.dev == nil {
		return
	}
	if err := w.dev.Close(); err != nil {
		w.log.Warn("the device was not closed properly", "err", err)
	}
	w.dev, w.stage, w.at, w.shown = nil, absent, "", nil
}

// upto opens the device where it is not open, and takes it to a stage.
func (w *walk) upto(ctx context.Context, s *state, to stage) error {
	if w.dev == nil {
		dev, err := w.cfg.Open(ctx, devices.Spec{URL: s.Scratch.URL, Hosts: w.hosts})
		if err != nil {
			return err
		}
		w.dev, w.stage = dev, absent
	}
	start := w.dev.Starter()
	for ; w.stage < to; w.stage++ {
		call := []func(context.Context) error{start.Ensure, start.Provision, start.Launch, w.dev.WaitIdle}[w.stage]
		if err := call(ctx); err != nil {
			return err
		}
	}
	return nil
}

// look perceives the screen.
func (w *walk) look(ctx context.Context) (devices.Screen, error) {
	seen, err := w.dev.Perceive(ctx)
	if err != nil {
		w.at, w.shown = "", nil
		return seen, err
	}
	seen = devices.Bounded(seen)
	w.at, w.shown = seen.ID, &seen
	return seen, nil
}

// here sees to it that there is a device, and brings a new one back to where the
// walk was, as far as a way leads there.
func (w *walk) here(ctx context.Context, s *state) error {
	if w.stage == settled {
		return nil
	}
	fresh, m := w.dev == nil, &s.Scratch
	if err := w.upto(ctx, s, settled); err != nil || !fresh || m.At == "" {
		return err
	}
	if _, err := w.look(ctx); err != nil {
		return err
	}
	err := w.travel(ctx, m, m.At)
	if fault, broken := trouble(ctx, err); broken != nil || fault != nil && fault.Crash {
		return err
	} else if fault != nil {
		w.log.Info("a walk goes on at another screen than it was", "err", fault.Text)
		return nil
	}
	for _, in := range m.Filled {
		if err := w.do(ctx, in.Action, in.Value); err != nil {
			return err
		}
	}
	return nil
}

// do acts and looks.
func (w *walk) do(ctx context.Context, a devices.Action, value string) error {
	w.at, w.shown = "", nil
	if err := w.dev.Act(ctx, a, value); err != nil {
		return err
	}
	if err := w.dev.WaitIdle(ctx); err != nil {
		return err
	}
	_, err := w.look(ctx)
	return err
}

// maxWay is the most steps of a way back.
const maxWay = 20

// travel brings the device to a known screen, by nothing that must not be
// repeated: by the steps that led from here to there, by its address, or from the
// beginning.
func (w *walk) travel(ctx context.Context, m *memory, to string) error {
	goal := m.Screens[to]
	if goal == nil {
		return devices.Failed("the screen %s is not known", to)
	}
	for _, try := range []func() error{
		func() error { return w.follow(ctx, m, to, 2) },
		func() error {
			if goal.URL == "" || !w.hosts.AllowsURL(goal.URL) {
				return nil
			}
			return w.do(ctx, devices.Action{Kind: devices.Navigate, Target: goal.URL}, "")
		},
		func() error {
			w.at, w.shown = "", nil
			if err := devices.Restart(ctx, w.dev); err != nil {
				return err
			}
			if err := w.dev.WaitIdle(ctx); err != nil {
				return err
			}
			_, err := w.look(ctx)
			return err
		},
		func() error { return w.follow(ctx, m, to, maxWay) },
	} {
		if w.at == to {
			return nil
		}
		if fault, broken := trouble(ctx, try()); broken != nil {
			return broken
		} else if fault != nil && fault.Crash {
			return fault
		}
	}
	if w.at != to {
		return devices.Failed("no way leads back to %q", goal.Title)
	}
	return nil
}

// follow goes from the present screen to another by known moves, when they are
// not more than limit.
func (w *walk) follow(ctx context.Context, m *memory, to string, limit int) error {
	way := m.route(w.at, to)
	if len(way) > limit {
		return nil
	}
	for _, v := range way {
		a, ok := m.action(v)
		if !ok {
			return nil
		}
		if err := w.do(ctx, a, fitting(a)); err != nil {
			return err
		}
		if w.at != v.To {
			return nil
		}
	}
	return nil
}

// action is the action of a move.
func (m *memory) action(v move) (devices.Action, bool) {
	if s := m.Screens[v.From]; s != nil {
		for _, a := range s.Actions {
			if a.ID == v.Action {
				return a, true
			}
		}
	}
	return devices.Action{}, false
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
	return &devices.Error{Text: "the device failed in a way that nobody foresaw", Err: err}, nil
}

// unreachable ends the run: there is nothing to explore. The sentence says why.
func (w *walk) unreachable(ctx context.Context, err error) error {
	fault, broken := trouble(ctx, err)
	if broken != nil {
		return broken
	}
	w.log.Error("what is to be explored cannot be reached", "err", err)
	return &runs.Error{Code: runs.CodeDevice, Text: fault.Text, Err: err, Say: "I cannot explore this: " + fault.Text + "."}
}

// sight is what the nodes remember of a screen that the device shows. The picture
// of a new one is kept.
func (w *walk) sight(ctx context.Context, s *state, seen devices.Screen) (*sighting, error) {
	m := &s.Scratch
	out := &sighting{ID: seen.ID, Faults: seen.Faults}
	if m.Screens[seen.ID] != nil {
		return out, nil
	}
	out.Screen = &screen{Title: seen.Title, URL: seen.URL, Actions: seen.Actions}
	if !w.set.Screens || len(seen.PNG) == 0 || s.Turn.Files == nil || len(m.Screens) >= maxScreens {
		return out, nil
	}
	f, err := s.Turn.Files.SaveFile(ctx, "screen-"+seen.ID+".png", "image/png", seen.PNG)
	if err != nil {
		return nil, fmt.Errorf("keep the picture of a screen: %w", err)
	}
	out.Screen.File = f.ID
	return out, nil
}

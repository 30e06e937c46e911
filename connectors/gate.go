package connectors

import (
	"context"
	"errors"
	"strings"
	"sync"
)

// A Gate stops a running connector while a setting switches it off. The zero Gate is
// always open.
type Gate struct {
	// Why says what switches the connector off; empty: nothing.
	Why func() string
	// Changed returns a channel that is closed when Why may say something else.
	Changed func() <-chan struct{}
}

var errOff = errors.New("switched off by a bad setting")

// correct is the next step for settings that switch a connector off.
const correct = " Correct it, then run: claybot config check; claybot reads the file again by itself, and its environment when it starts."

// Off says why the connector must not reach its platform; empty while it may.
func (g Gate) Off() string {
	if g.Why == nil {
		return ""
	}
	return g.Why()
}

// Run calls run whenever the gate is open, and ends what it started when the gate closes.
// It returns the error of a run that ended by itself, or the cause of ctx.
func (g Gate) Run(ctx context.Context, run func(context.Context) error) error {
	if g.Changed == nil {
		return run(ctx)
	}
	for {
		changed := g.Changed()
		if g.Off() == "" {
			err := g.untilOff(ctx, run)
			if !errors.Is(err, errOff) || ctx.Err() != nil {
				return err
			}
			continue
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
	}
}

// untilOff runs a connector until it ends or is switched off, which is errOff.
func (g Gate) untilOff(ctx context.Context, run func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	defer func() { cancel(nil); watch.Wait() }()
	watch.Go(func() {
		for changed := g.Changed(); ; changed = g.Changed() {
			if g.Off() != "" {
				cancel(errOff)
			}
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
		}
	})
	err := run(ctx)
	if errors.Is(context.Cause(ctx), errOff) {
		return errOff
	}
	return err
}

// Health returns h, or that of a stopped connector while the gate is closed.
func (g Gate) Health(h Health) Health {
	if why := g.Off(); why != "" {
		return SwitchedOff(why)
	}
	return h
}

// SwitchedOff is the health of a connector that a setting switches off.
func SwitchedOff(why string) Health {
	if !strings.HasSuffix(why, "?") {
		why += "."
	}
	return Health{State: StateStopped, Err: why + correct}
}

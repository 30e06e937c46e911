package agentsystem

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/cluster"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

// How a connector is started again: at once, then after a second doubling to
// half a minute; in peace again after it has worked for a while.
const (
	restartFirst = time.Second
	restartMost  = 30 * time.Second
	workedWell   = time.Minute
)

// claimEvery is how often a node that stands by asks whether it is its turn.
const claimEvery = 2 * time.Second

// supervise runs a connector until ctx is done. One that only one node may run
// runs while this node has its claim: it stands by until the claim is free, and
// ends when the claim does.
func (s *AgentSystem) supervise(ctx context.Context, c connectors.Connector) {
	s.holding.wait(ctx, c.Name())
	x, ok := c.(connectors.Exclusive)
	if !ok || s.Members.IsAlone() {
		s.keepUp(ctx, c)
		return
	}
	for {
		hold := s.standBy(ctx, x)
		if hold == nil {
			return
		}
		log := s.Log.With("connector", c.Name(), "claim", x.Exclusive())
		log.Info("this node has the connection now")
		mine, free := hold.Context(ctx)
		stopped := s.keepUp(mine, c)
		if err := hold.Trusted(); err != nil && ctx.Err() == nil {
			log.Warn("this node has lost the connection to another one, or may have", "err", err)
		}
		free()
		if err := hold.Yield(ctx, true); err != nil {
			log.Warn("cannot yield a connection; it is free when the beat of this node ends", "err", err)
		}
		if stopped {
			return
		}
	}
}

// standBy waits for the claim of a connector; nil when ctx is done.
func (s *AgentSystem) standBy(ctx context.Context, x connectors.Exclusive) *cluster.Hold {
	last := ""
	for ctx.Err() == nil {
		freed, changed := s.freed.Next(), s.Members.Changed()
		hold, err := s.Members.Claim(ctx, x.Exclusive())
		if err == nil {
			return hold
		}
		holder := ""
		if errors.Is(err, storage.ErrHeld) {
			if id, err := s.Members.Holder(ctx, x.Exclusive()); err == nil && id != "" {
				holder = s.Members.NameOf(id)
			}
			if holder != last {
				s.Log.Info("another node has the connection; standing by", "claim", x.Exclusive(), "holder", holder)
				last = holder
			}
		} else if ctx.Err() == nil {
			s.Log.Warn("cannot claim a connection; trying again", "claim", x.Exclusive(), "err", err)
		}
		x.Standby(holder)
		timer := time.NewTimer(claimEvery)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-freed:
		case <-changed:
		}
		timer.Stop()
	}
	return nil
}

// keepUp runs a connector until ctx is done, and again after it failed. One that
// fails for good stays stopped, which it reports; nobody else is touched.
func (s *AgentSystem) keepUp(ctx context.Context, c connectors.Connector) (stopped bool) {
	log := s.Log.With("connector", c.Name())
	wait := time.Duration(0)
	for {
		began := time.Now()
		err := s.runConnector(ctx, c)
		if ctx.Err() != nil {
			return false
		}
		var permanent *connectors.PermanentError
		if errors.As(err, &permanent) {
			log.Error("connector stopped", "err", err)
			return true
		}
		if time.Since(began) > workedWell {
			wait = 0
		}
		log.Warn("connector failed; starting it again", "err", err, "in", wait)
		claybot.Sleep(ctx, wait/2+rand.N(wait/2+1))
		wait = min(max(restartFirst, 2*wait), restartMost)
	}
}

// runConnector runs a connector once. A panic is an error of that connector.
func (s *AgentSystem) runConnector(ctx context.Context, c connectors.Connector) (err error) {
	defer func() {
		if x := recover(); x != nil {
			s.Meter.Panicked("connector")
			s.Log.Error("a connector panicked", "connector", c.Name(), "panic", fmt.Sprint(x), "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", x)
		}
	}()
	return c.Run(ctx, s)
}

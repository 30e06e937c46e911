package agentsystem

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/texts"
)

// A connector that failed is started again at once, then after pauses that double from
// restartFirst to restartMost, and at once again after it worked for workedWell.
const (
	restartFirst = time.Second
	restartMost  = 30 * time.Second
	workedWell   = time.Minute
)

// A supervisor keeps the connectors of this member running.
type supervisor struct {
	voice    func(context.Context, claybot.Descriptor) texts.Voice
	standby  *standby
	holdback *holdback
	pending  *pendingCalls
	alarms   *alarms
	meter    Meter
	log      *slog.Logger

	handler   connectors.Handler
	nodes     *nodes.Set[connectors.Connector] // by name; of one that is stopped, a connectors.StandIn
	replacing chan struct{}                    // holds a value while Replace works

	mu      sync.Mutex
	running bool                 // Run has said which connectors there are
	came    map[string]time.Time // when they took the place of one that worked, or of none
}

// add says which connectors there are, unless Replace has said it.
func (s *supervisor) add(cs []connectors.Connector) {
	s.replacing <- struct{}{}
	defer func() { <-s.replacing }()
	if !s.Running() {
		s.nodes.Reconcile(context.Background(), byName(cs))
		s.comes(nil, nil)
	}
}

// connector returns the connector of a name, also one that is stopped; nil where none is
// configured.
func (s *supervisor) connector(name string) connectors.Connector {
	c := s.active(name)
	if x, stopped := c.(connectors.StandIn); stopped {
		return x.Behind()
	}
	return c
}

// active returns what has the place of a connector: while it is stopped, a connectors.StandIn.
func (s *supervisor) active(name string) connectors.Connector { return s.nodes.Configuration(name) }

// Running implements overview.Connectors.
func (s *supervisor) Running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running
}

// All implements overview.Connectors.
func (s *supervisor) All() []connectors.Connector { return s.nodes.Configurations() }

// Stuck implements overview.Connectors.
func (s *supervisor) Stuck(name string) string {
	return cmp.Or(s.pending.stuck(name), s.follows(name))
}

// Fresh implements overview.Connectors.
func (s *supervisor) Fresh(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.came[name]) < connectors.LiveWithin
}

// run keeps a connector running until ctx is done. A connector that only one member may
// run waits for its claim, and ends when the claim does. If it stops for good, the member releases
// the claim and never asks for it again: it would come back with the settings that were refused.
func (s *supervisor) run(ctx context.Context, c connectors.Connector, h connectors.Handler) {
	s.holdback.await(ctx, c.Name())
	x, ok := c.(connectors.Exclusive)
	if !ok || x.Exclusive() == "" {
		s.keepUp(ctx, c, h)
		return
	}
	log := s.log.With("connector", c.Name(), "claim", x.Exclusive())
	for stopped := false; !stopped; {
		hold := s.standby.claim(ctx, c.Name(), x, log)
		s.standby.over(c.Name())
		if hold == nil {
			return
		}
		mine, free := hold.Context(ctx)
		stopped = s.keepUp(mine, c, h)
		if err := hold.Trusted(); err != nil && ctx.Err() == nil {
			log.Warn("connection possibly lost to another member", "err", err)
		}
		free()
		if err := hold.Yield(ctx, true); err != nil {
			log.Warn("failed to release the claim of a connection; it expires with the lease", "err", err)
		}
	}
	s.standby.watch(ctx, c.Name(), x.Exclusive())
}

// keepUp runs a connector until ctx is done, again after each failure. One that fails for
// good stays stopped, which it reports; the others are not affected.
func (s *supervisor) keepUp(ctx context.Context, c connectors.Connector, h connectors.Handler) (stopped bool) {
	log := s.log.With("connector", c.Name())
	wait := time.Duration(0)
	watched, end := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { s.alarms.cleared(watched, c) })
	defer func() { end(); watch.Wait() }()
	for {
		began := time.Now()
		err := s.runOnce(ctx, c, h)
		if ctx.Err() != nil {
			return false
		}
		var permanent *connectors.PermanentError
		if errors.As(err, &permanent) {
			log.Error("connector stopped", "err", err)
			s.alarms.stopped(ctx, c.Name(), err.Error(), permanent.Says)
			return true
		}
		if time.Since(began) > workedWell {
			wait = 0
		}
		log.Warn("connector failed, restarting", "err", err, "in", wait)
		claybot.Sleep(ctx, wait/2+rand.N(wait/2+1))
		wait = min(max(restartFirst, 2*wait), restartMost)
	}
}

// runOnce runs a connector. A panic is an error of that connector.
func (s *supervisor) runOnce(ctx context.Context, c connectors.Connector, h connectors.Handler) (err error) {
	defer func() {
		if x := recover(); x != nil {
			s.meter.Panicked("connector")
			s.log.Error("connector panicked", "connector", c.Name(), "panic", fmt.Sprint(x), "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", x)
		}
	}()
	return c.Run(texts.WithReaders(ctx, s.voice), h)
}

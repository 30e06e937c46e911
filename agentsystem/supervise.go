package agentsystem

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/claybot/claybot/connectors"
)

// How a connector is started again: at once, then after a second doubling to
// half a minute; in peace again after it has worked for a while.
const (
	restartFirst = time.Second
	restartMost  = 30 * time.Second
	workedWell   = time.Minute
)

// supervise runs a connector until ctx is done, and again after it failed. One
// that fails for good stays stopped; nobody else is touched.
func (s *System) supervise(ctx context.Context, c connectors.Connector) {
	log := s.Log.With("connector", c.Name())
	wait := time.Duration(0)
	for {
		began := time.Now()
		err := s.runConnector(ctx, c)
		if ctx.Err() != nil {
			return
		}
		var permanent *connectors.PermanentError
		if errors.As(err, &permanent) {
			log.Error("connector stopped", "err", err)
			return
		}
		if time.Since(began) > workedWell {
			wait = 0
		}
		log.Warn("connector failed; starting it again", "err", err, "in", wait)
		pause(ctx, wait/2+rand.N(wait/2+1))
		wait = min(max(restartFirst, 2*wait), restartMost)
	}
}

// runConnector runs a connector once. A panic is an error of that connector.
func (s *System) runConnector(ctx context.Context, c connectors.Connector) (err error) {
	defer func() {
		if x := recover(); x != nil {
			s.Meter.Panicked("connector")
			s.Log.Error("a connector panicked", "connector", c.Name(), "panic", fmt.Sprint(x), "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", x)
		}
	}()
	return c.Run(ctx, s)
}

package tools

import (
	"context"
	"encoding/json"
	"time"

	"github.com/claybot/claybot"
)

// Probed is what a tool finds out about a call that was interrupted, see Spec.Probe.
type Probed int

// What a probe finds out. Unknown is the careful answer: the call is not made again, and its result
// says so.
const (
	Unknown Probed = iota
	Done           // it took effect
	NotDone        // it did not, and can be made again
)

// Probe finds out whether a call took effect that an earlier pass started and that has no result.
// With Done, the record is its result. A probe that fails, panics or takes too long found out
// nothing, as does one of a tool that has none, or of a call that would be refused now.
func (s *Set) Probe(ctx context.Context, env Env, call claybot.ToolCall) (Probed, claybot.Record) {
	start := time.Now()
	e, args, err := s.accept(call, env.Undo)
	if err != nil || e.spec.Probe == nil || env.Dry {
		return Unknown, claybot.Record{}
	}
	found := make(chan Probed, 1) // an abandoned probe can end
	asks := *e
	asks.tool = prober{spec: e.spec, found: found}
	result, err := s.call(ctx, env, &asks, args)
	if err != nil {
		if ctx.Err() == nil {
			s.log().Warn("tool cannot find out whether a call took effect", "tool", call.Name, "agent", env.Agent.ID, "run", env.Run, "err", err)
		}
		return Unknown, claybot.Record{}
	}
	switch got := <-found; got {
	case Done:
		return Done, s.outcome(ctx, env, call, start, result, nil).Record
	default:
		return got, claybot.Record{}
	}
}

// A prober is a tool whose call is the probe of a call.
type prober struct {
	spec  Spec
	found chan<- Probed
}

func (p prober) Spec() Spec { return p.spec }

// Call implements Tool.
func (p prober) Call(ctx context.Context, env Env, args json.RawMessage) (Result, error) {
	got, result, err := p.spec.Probe(ctx, env, args)
	if err == nil {
		p.found <- got
	}
	return result, err
}

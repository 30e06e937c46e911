package web

import (
	"fmt"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/tools"
)

// maxPaced is how many agents are remembered before those without recent calls
// are forgotten.
const maxPaced = 1024

// A pace holds each agent to a rate: at most N calls in any span of length Per.
type pace struct {
	rate tools.Rate
	mu   sync.Mutex
	last map[claybot.AgentID][]time.Time // of the calls within the span, oldest first
}

func newPace(r tools.Rate) *pace {
	return &pace{rate: r, last: make(map[claybot.AgentID][]time.Time)}
}

func (p *pace) take(agent claybot.AgentID) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if len(p.last) >= maxPaced {
		for a, calls := range p.last {
			if now.Sub(calls[len(calls)-1]) >= p.rate.Per {
				delete(p.last, a)
			}
		}
	}
	calls := p.last[agent]
	for len(calls) > 0 && now.Sub(calls[0]) >= p.rate.Per {
		calls = calls[1:]
	}
	if len(calls) >= p.rate.N {
		after := p.rate.Per - now.Sub(calls[0])
		return &tools.Fault{
			Code: tools.FaultRate, Retriable: true, After: after,
			Text: fmt.Sprintf("more than %s fetches; wait %s and go on with what you have", p.rate, max(after.Round(time.Second), time.Second)),
		}
	}
	p.last[agent] = append(calls, now)
	return nil
}

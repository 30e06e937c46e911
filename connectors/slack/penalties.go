package slack

import (
	"sync"
	"time"
)

// penalties hold the pauses that Slack requested: one for each method, because tiers are
// limits per method and workspace, and for posts one for each channel. The zero value is
// ready.
type penalties struct {
	mu    sync.Mutex
	until map[scope]time.Time
}

// A scope is what a rate limit response silences. channel is empty for a whole workspace.
type scope struct{ method, channel string }

// scopeOf returns the scope of a rate limit response to a call about a channel.
func scopeOf(method, channel string) scope {
	switch method {
	case methodPost, methodWhisper, methodComplete:
		return scope{method, channel}
	}
	return scope{method, ""}
}

// add begins a pause, and forgets those that are over.
func (p *penalties) add(method, channel string, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for k, t := range p.until {
		if now.After(t) {
			delete(p.until, k)
		}
	}
	if p.until == nil {
		p.until = make(map[scope]time.Time)
	}
	p.until[scopeOf(method, channel)] = now.Add(d)
}

// left is how long the pause still lasts, zero or less for none.
func (p *penalties) left(method, channel string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, ok := p.until[scopeOf(method, channel)]
	if !ok {
		return 0
	}
	return time.Until(t)
}

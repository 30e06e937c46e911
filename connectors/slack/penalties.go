package slack

import (
	"sync"
	"time"
)

// penalties hold the pauses that Slack requested, one for each method and
// channel. The zero value is ready.
type penalties struct {
	mu    sync.Mutex
	until map[[2]string]time.Time
}

// add begins a pause, and forgets those that are long over.
func (p *penalties) add(method, channel string, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for k, t := range p.until {
		if now.Sub(t) > slowAfter429 {
			delete(p.until, k)
		}
	}
	if p.until == nil {
		p.until = make(map[[2]string]time.Time)
	}
	p.until[[2]string{method, channel}] = now.Add(d)
}

// left is how long the pause still lasts, zero or less for none.
func (p *penalties) left(method, channel string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, ok := p.until[[2]string{method, channel}]
	if !ok {
		return 0
	}
	return time.Until(t)
}

// recent reports whether there was a pause in the last minutes.
func (p *penalties) recent(method, channel string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, ok := p.until[[2]string{method, channel}]
	return ok && time.Since(t) < slowAfter429
}

package connectors

import (
	"sync"
	"time"
)

// The states of a connector.
const (
	StateStarting = "starting" // no success yet
	StateLive     = "live"
	StateFailing  = "failing" // tries again by itself
	StateStopped  = "stopped" // a permanent error; needs the operator
)

// Health is how a connector is doing. Err is one sentence with the next step,
// without secrets.
type Health struct {
	State  string    `json:"state"`
	LastOK time.Time `json:"lastOk,omitzero"`
	Err    string    `json:"error"`
}

// A Pulse keeps the Health of a connector; its zero value is starting. It is
// safe for concurrent use.
type Pulse struct {
	mu sync.Mutex
	h  Health
}

// OK notes a completed piece of work.
func (p *Pulse) OK() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.h = Health{State: StateLive, LastOK: time.Now()}
}

// Fail notes an error after which the connector goes on trying.
func (p *Pulse) Fail(sentence string) { p.set(StateFailing, sentence) }

// Stop notes an error after which it does not.
func (p *Pulse) Stop(sentence string) { p.set(StateStopped, sentence) }

func (p *Pulse) set(state, sentence string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.h.State, p.h.Err = state, sentence
}

// Health returns the present state.
func (p *Pulse) Health() Health {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.h
	if h.State == "" {
		h.State = StateStarting
	}
	return h
}

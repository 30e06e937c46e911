package connectors

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// The states of a connector.
const (
	StateStarting = "starting" // no success yet
	StateLive     = "live"
	StateFailing  = "failing" // retries by itself
	StateStopped  = "stopped" // a permanent error; needs the operator
	StateStandby  = "standby" // another cluster member runs it; this one takes over when that one stops
	StateOff      = "off"     // an operator stopped it, until one starts it
)

// LiveWithin is how old the last completed round trip to a platform may be. A connector without
// a more recent one is failing, and the member that runs it is not ready.
const LiveWithin = 30 * time.Second

// Health is the state of a connector. Err is one sentence with the next step,
// without secrets.
type Health struct {
	State  string    `json:"state"`
	LastOK time.Time `json:"lastOk,omitzero"`
	Err    string    `json:"error"`
	// Refusal is why it is StateStopped; nil otherwise, and where a setting stops it.
	Refusal *PermanentError `json:"-"`
}

// Settled reports whether the connector has finished starting: it has had a
// success, has stopped for good, stands by, or is off.
func (h Health) Settled() bool {
	return !h.LastOK.IsZero() || h.State == StateStopped || h.State == StateStandby || h.State == StateOff
}

// Well reports whether the connector is as it is meant to be: it works, stands by, or is off.
func (h Health) Well() bool {
	return h.State == StateLive || h.State == StateStandby || h.State == StateOff
}

// Lapsed reports whether the connector fails, and its last success is at least LiveWithin old.
// A failure that is over sooner makes no member unready.
func (h Health) Lapsed() bool {
	return h.State == StateFailing && time.Since(h.LastOK) >= LiveWithin
}

// A Pulse keeps the Health of a connector; its zero value is starting. It is
// safe for concurrent use.
type Pulse struct {
	// Within is how old the last success of a live connector may be, for those that hold a
	// socket, poll or look at their platform at regular times. 0 means no limit.
	Within time.Duration

	mu   sync.Mutex
	h    Health
	seen time.Time // of the result that is being stored; zero for none
}

// OK records completed work. With Within, it must be a completed round trip.
func (p *Pulse) OK() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.h, p.seen = Health{State: StateLive, LastOK: time.Now()}, time.Time{}
}

// Seen records a completed round trip whose result is still to be stored, until OK, Fail or another
// state follows. It ends no failure.
func (p *Pulse) Seen() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = time.Now()
}

// Fail records an error that the connector retries.
func (p *Pulse) Fail(sentence string) { p.set(StateFailing, sentence) }

// Stop records a permanent error, after which the connector does not retry.
func (p *Pulse) Stop(err error) {
	p.set(StateStopped, err.Error())
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = errors.As(err, &p.h.Refusal)
}

// Start records that the connector starts, if it was on Standby.
func (p *Pulse) Start() {
	if p.Health().State == StateStandby {
		p.set(StateStarting, "")
	}
}

// Ended records why a run has ended, and returns it: the cause of ctx, or an error after which the connector
// stops or retries.
func (p *Pulse) Ended(ctx context.Context, err error) error {
	var stop *PermanentError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &stop):
		p.Stop(err)
	default:
		p.Fail(err.Error())
	}
	return err
}

// Standby records that another cluster member runs the connector. holder is its
// name, empty if unknown.
func (p *Pulse) Standby(holder string) {
	sentence := "another node may have the connection; this one takes it when it is free"
	if holder != "" {
		sentence = "node " + holder + " has the connection; this one takes over when it ends"
	}
	p.set(StateStandby, sentence)
}

func (p *Pulse) set(state, sentence string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.h.State, p.h.Err, p.h.Refusal, p.seen = state, sentence, nil, time.Time{}
}

// Health returns the present state. A live connector whose last success, or the last round trip of
// which it still stores the result, is Within old is failing.
func (p *Pulse) Health() Health {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.h
	if h.State == "" {
		h.State = StateStarting
	}
	last, says := h.LastOK, "the platform has not answered for %v; claybot keeps trying"
	if !p.seen.IsZero() {
		last, says = p.seen, "messages that came %v ago are not stored yet; claybot keeps trying"
	}
	if age := time.Since(last); h.State == StateLive && p.Within > 0 && age >= p.Within {
		h.State = StateFailing
		h.Err = fmt.Sprintf(says, age.Truncate(time.Second))
	}
	return h
}

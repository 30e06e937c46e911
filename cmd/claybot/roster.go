package main

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/nodes"
)

// A roster is all connectors of a daemon: those that are there from its start to its end, and
// those that the configuration asks for now. The zero roster is empty. It is safe for concurrent
// use.
type roster struct {
	mu        sync.Mutex
	fixed     []connectors.Connector
	instances []connectors.Connector
	came      chan struct{} // closed by the next change; nil where no caller waits
	// order returns what stops the connector of a name; nil for none. It is set before use.
	order func(name string) *nodes.Order
}

// A stoppedConnector stands for a connector that an operator has stopped: it takes nothing in, and
// messages for it wait in the outbox.
type stoppedConnector struct {
	connectors.Connector
	order nodes.Order
}

var _ connectors.StandIn = stoppedConnector{}

// Behind implements connectors.StandIn.
func (c stoppedConnector) Behind() connectors.Connector { return c.Connector }

// Run implements connectors.Connector.
func (c stoppedConnector) Run(ctx context.Context, _ connectors.Handler) error {
	if idler, has := c.Connector.(connectors.Idler); has {
		return idler.Idle(ctx) //nolint:wrapcheck // as of the connector itself
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// Health implements connectors.Connector.
func (c stoppedConnector) Health() connectors.Health {
	return connectors.Health{State: connectors.StateOff, Err: stoppedBy(c.order) + "; " + nodes.Fix(keyOfConnector(c.Name()))}
}

// add adds connectors that stay.
func (r *roster) add(all ...connectors.Connector) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fixed = append(r.fixed, all...)
}

// set replaces those that the configuration asks for.
func (r *roster) set(instances []connectors.Connector) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.instances = instances
	r.tell()
}

// started says that connectors may be working now that were stopped.
func (r *roster) started() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tell()
}

// tell closes what changed returned. The caller holds the lock.
func (r *roster) tell() {
	if r.came != nil {
		close(r.came)
		r.came = nil
	}
}

// present returns the present connectors, also those that are stopped.
func (r *roster) present() []connectors.Connector {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Concat(r.fixed, r.instances)
}

// all returns the connectors that are to work now, and a stand-in for each that an operator has
// stopped.
func (r *roster) all() []connectors.Connector {
	all := r.present()
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, c := range all {
		if order := r.order(c.Name()); order != nil {
			all[i] = stoppedConnector{c, *order}
		}
	}
	return all
}

// changed is closed by the next set or started.
func (r *roster) changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.came == nil {
		r.came = make(chan struct{})
	}
	return r.came
}

// of returns the connector of a name, also one that is stopped; nil for none.
func (r *roster) of(name string) connectors.Connector {
	for _, c := range r.present() {
		if c.Name() == name {
			return c
		}
	}
	return nil
}

// sends reports whether a connector of that name can send.
func (r *roster) sends(name string) bool {
	_, sends := r.of(name).(connectors.Sender)
	return sends
}

// hooked returns the connector of a name if it takes requests, otherwise nil, and whether it is
// stopped.
func (r *roster) hooked(name string) (c connectors.Hooked, stopped bool) {
	c, _ = r.of(name).(connectors.Hooked)
	return c, r.order(name) != nil
}

// settled reports whether every connector has had its first success or has given up, and
// lists those that fail. A page whose port is taken does not count: the port may stay
// taken.
func (r *roster) settled(page connectors.Connector) (settled bool, failing []string) {
	settled = true
	for _, c := range r.all() {
		h := c.Health()
		settled = settled && (h.Settled() || h.State == connectors.StateFailing && c == page)
		if !h.Well() {
			failing = append(failing, c.Name()+": "+strings.TrimPrefix(h.Err, c.Name()+": "))
		}
	}
	return settled, failing
}

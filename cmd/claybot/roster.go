package main

import (
	"slices"
	"strings"
	"sync"

	"github.com/claybot/claybot/connectors"
)

// A roster is all connectors of a daemon: those that are there from its start to its end, and
// those that the configuration asks for now. The zero roster is empty. It is safe for concurrent
// use.
type roster struct {
	mu        sync.Mutex
	fixed     []connectors.Connector
	instances []connectors.Connector
	came      chan struct{} // closed by the next set; nil where no one waits
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
	if r.came != nil {
		close(r.came)
		r.came = nil
	}
}

// all returns the present connectors.
func (r *roster) all() []connectors.Connector {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Concat(r.fixed, r.instances)
}

// changed is closed by the next set.
func (r *roster) changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.came == nil {
		r.came = make(chan struct{})
	}
	return r.came
}

// of returns the connector of a name; nil for none.
func (r *roster) of(name string) connectors.Connector {
	for _, c := range r.all() {
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

// hooked returns the connector of a name if it takes requests; otherwise nil.
func (r *roster) hooked(name string) connectors.Hooked {
	c, _ := r.of(name).(connectors.Hooked)
	return c
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

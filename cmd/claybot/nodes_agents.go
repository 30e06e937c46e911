package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/storage"
)

// stoppable adds to a node of agents how it is stopped and started, and whether it is.
func (d nodeDesk) stoppable(n *nodes.View) {
	n.Can = append([]string{nodes.Start, nodes.Stop}, n.Can...)
	if n.Stopped = d.stores.orders.Stopped(n.Key); n.Stopped != nil {
		n.State, n.Text = nodes.Stopped, stoppedBy(*n.Stopped)+"; "+nodes.Fix(n.Key)
	}
}

// stoppedBy says who stopped a node, and when.
func stoppedBy(o nodes.Order) string {
	return fmt.Sprintf("stopped by %s at %s", o.By, moment(o.At.Time()))
}

// agentNode returns an agent as a node; storage.ErrNotFound.
func (d nodeDesk) agentNode(ctx context.Context, id claybot.AgentID) (nodes.View, error) {
	of, err := d.stores.db.IndexedDescriptor(ctx, id) // its files may be unusable
	if err != nil {
		return nodes.View{}, err //nolint:wrapcheck // it says what failed
	}
	n := nodes.View{
		Key: nodes.Key{Kind: nodes.Agent, Name: string(id)}, Type: string(of.Type), State: nodes.Running,
		Uses: []nodes.Key{{Kind: nodes.Profile, Name: d.config.Load().Profile(of).Name}},
	}
	d.stoppable(&n)
	return n, nil
}

// stoppedAgents are the agents that are stopped; the others are in the list of agents. The order of one
// that was deleted ends with it.
func (d nodeDesk) stoppedAgents(ctx context.Context) (list []nodes.View, err error) {
	for _, k := range d.stores.orders.All() {
		if k.Kind != nodes.Agent {
			continue
		}
		n, err := d.agentNode(ctx, claybot.AgentID(k.Name))
		switch {
		case err == nil:
			list = append(list, n)
		case errors.Is(err, storage.ErrNotFound):
			if _, err := d.stores.orders.Start(ctx, k); err != nil {
				return nil, err //nolint:wrapcheck // it says what failed
			}
		default:
			return nil, err
		}
	}
	return list, nil
}

// agentStopped returns why an operator has stopped an agent: itself, its profile or its model; empty:
// none is stopped.
func (d *daemon) agentStopped(a claybot.Agent) string {
	stopped := d.stores.orders.All()
	has := func(kind string) bool {
		return slices.ContainsFunc(stopped, func(k nodes.Key) bool { return k.Kind == kind })
	}
	var keys []nodes.Key
	if has(nodes.Agent) {
		keys = append(keys, nodes.Key{Kind: nodes.Agent, Name: string(a.ID)})
	}
	c := d.config.Load()
	if has(nodes.Profile) {
		keys = append(keys, nodes.Key{Kind: nodes.Profile, Name: c.Profile(a.Descriptor).Name})
	}
	if has(nodes.Model) {
		keys = append(keys, modelNodesOf(c, d.models.model(a))...)
	}
	for _, k := range keys {
		if why := d.stores.nodeStopped(k); why != "" {
			return k.String() + ": " + why
		}
	}
	return ""
}

// modelNodesOf are the nodes of the model of an agent: its own or, where the agent has chosen it by name and its
// routes are those of no profile, those of that name on the same host.
func modelNodesOf(c *configs.Config, m configs.Model) (list []nodes.Key) {
	keys := modelKeys(c)
	if key := keys[fingerprint(m)]; key != "" {
		return []nodes.Key{{Kind: nodes.Model, Name: key}}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Agents.Profiles)) {
		if x := c.Agents.Profiles[name].Model; x.ID() == m.ID() && hostOf(x) == hostOf(m) {
			list = append(list, nodes.Key{Kind: nodes.Model, Name: keys[fingerprint(x)]})
		}
	}
	return slices.Compact(list)
}

package webtest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// Nodes are nodes in memory. Tests of a node whose state is failed fail.
type Nodes struct {
	mu      sync.Mutex
	all     []nodes.View
	traffic []web.NodeLink
}

// NewNodes returns nodes of all kinds and states. Their texts try to be markup.
func NewNodes() *Nodes {
	can := []string{nodes.Start, nodes.Stop, nodes.Restart, nodes.Test}
	all := []nodes.View{
		{Key: nodes.Key{Kind: nodes.Connector, Name: "telegram"}, Type: "telegram", State: nodes.Running, Uses: []nodes.Key{{Kind: nodes.Profile, Name: "default"}, {Kind: nodes.Flow, Name: "order"}}, Can: can},
		{Key: nodes.Key{Kind: nodes.Connector, Name: "web"}, State: nodes.Running, Uses: []nodes.Key{{Kind: nodes.Profile, Name: "default"}}},
		{Key: nodes.Key{Kind: nodes.Schedule, Name: "cron"}, State: nodes.Waiting, Can: can[:3]},
		{Key: nodes.Key{Kind: nodes.Flow, Name: "order"}, State: nodes.Running, Uses: []nodes.Key{{Kind: nodes.Profile, Name: "default"}}},
		{Key: nodes.Key{Kind: nodes.Profile, Name: "default"}, Type: "react", State: nodes.Running, Uses: []nodes.Key{{Kind: nodes.Model, Name: "vendor/large"}, {Kind: nodes.MCP, Name: "files"}}, Can: can[:2]},
		{Key: nodes.Key{Kind: nodes.Profile, Name: "sales"}, Type: "react", State: nodes.Running, Can: can[:2]},
		{Key: nodes.Key{Kind: nodes.Model, Name: "vendor/large"}, Type: "openai", State: nodes.Off, Text: `<script>window.hacked = 1</script>`, Can: can[3:]},
		{Key: nodes.Key{Kind: nodes.MCP, Name: "files"}, Type: "stdio on the host", State: nodes.Failed, Text: "the server ended with code 7", Can: can},
	}
	return NodesOf(all...)
}

// NodesOf returns these nodes, and what they lack said of them.
func NodesOf(all ...nodes.View) *Nodes {
	nodes.Settle(all)
	return &Nodes{all: all}
}

// Nodes implements web.Nodes.
func (n *Nodes) Nodes(context.Context) ([]nodes.View, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.all), nil
}

// Flow sets the links on which messages flow.
func (n *Nodes) Flow(links ...web.NodeLink) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.traffic = links
}

// NodeTraffic implements web.Nodes.
func (n *Nodes) NodeTraffic(context.Context) ([]web.NodeLink, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.traffic), nil
}

// NodeLog implements web.Nodes.
func (n *Nodes) NodeLog(_ context.Context, k nodes.Key) ([]web.NodeLine, error) {
	return []web.NodeLine{
		{At: time.UnixMilli(2000), Level: "warn", Text: k.String() + " has failed: <script>window.hacked = 1</script>", Times: 12},
		{At: time.UnixMilli(1000), Level: "info", Text: "node started", Times: 1},
	}, nil
}

// Remove takes a node away, as a change of the configuration does.
func (n *Nodes) Remove(k nodes.Key) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = slices.DeleteFunc(n.all, func(x nodes.View) bool { return x.Key == k })
}

// CallNode implements web.Nodes.
func (n *Nodes) CallNode(_ context.Context, k nodes.Key, call, by string) (web.NodeDone, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := slices.IndexFunc(n.all, func(x nodes.View) bool { return x.Key == k })
	if i < 0 {
		return web.NodeDone{}, storage.ErrNotFound
	}
	x := &n.all[i]
	switch {
	case !x.Has(call):
		return web.NodeDone{}, web.Refusal(k.String() + " has no " + call)
	case call == nodes.Test:
		return web.NodeDone{OK: x.State != nodes.Failed, Text: "it was asked"}, nil
	case call == nodes.Stop:
		x.State, x.Stopped = nodes.Stopped, &nodes.Order{By: by, At: 1}
	default:
		x.State, x.Stopped = nodes.Running, nil
	}
	return web.NodeDone{OK: true, Text: k.String() + " is " + x.State}, nil
}

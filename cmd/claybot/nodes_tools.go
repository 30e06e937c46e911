package main

import (
	"fmt"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/tools"
)

// toolNode is the node whose stop takes a tool away; the zero Key for one that has none, or that of
// an MCP server, which has its own.
func toolNode(spec tools.Spec) nodes.Key {
	group := spec.Group()
	if group == "" || spec.Source != "" {
		return nodes.Key{}
	}
	return nodes.Key{Kind: nodes.Tools, Name: group}
}

// nodesOf are the nodes of the tools that a profile gives to the agents of people, stopped or not.
func (b *toolbox) nodesOf(profile string) (keys []nodes.Key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.config.Load()
	p, ok := c.Agents.Profiles[profile]
	if !ok { // it went just now
		return nil
	}
	set := b.setOf(c, p, claybot.Descriptor{Type: claybot.AgentUser}, nil, b.stores.skills().Exists())
	for _, g := range set.Groups() {
		if k := toolNode(g.Tools[0]); k != (nodes.Key{}) {
			keys = append(keys, k)
		}
	}
	return keys
}

// withheld says to a model that an operator has stopped what a tool belongs to; nil: none has.
func (b *toolbox) withheld(spec tools.Spec) error {
	k := toolNode(spec)
	if b.stores.orders.Stopped(k) == nil {
		return nil
	}
	return &tools.Fault{Code: tools.FaultStopped, Text: fmt.Sprintf(
		"%s was not called: an operator has stopped the tools of the group %s; only an operator can start them: claybot nodes start %s", spec.Name, k.Name, k)}
}

// toolNodes are the groups of tools that profiles use.
func (d nodeDesk) toolNodes(profiles []nodes.Node) (list []nodes.Node) {
	for _, p := range profiles {
		for _, k := range p.Uses {
			if k.Kind != nodes.Tools || slices.ContainsFunc(list, func(n nodes.Node) bool { return n.Key == k }) {
				continue
			}
			n := nodes.Node{Key: k, State: nodes.Running}
			d.stoppable(&n)
			list = append(list, n)
		}
	}
	return list
}

package main

import (
	"encoding/json"
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

// withheld says to a model that an operator has stopped what a call of a tool needs; nil: none has. nil
// args stand for the list of tools, where only those of a stopped group are missing.
func (b *toolbox) withheld(a claybot.Agent, spec tools.Spec, args json.RawMessage) error {
	k := toolNode(spec)
	err := withheld(b.stores.orders, k, "the tools of the group "+k.Name)
	if err == nil && args != nil && slices.Contains(spec.Scopes, tools.ScopeBrowser) { // an open one opens no workspace
		err = b.tooling.workspaces.withheld(b.config.profile(a).Workspace.Provider)
	}
	return err
}

// withheld says to a model that an operator has stopped a node, which what names; nil: none has.
func withheld(orders *nodes.Orders, k nodes.Key, what string) error {
	if orders.Stopped(k) == nil {
		return nil
	}
	return &tools.Fault{Code: tools.FaultStopped, Text: fmt.Sprintf("nothing was done: an operator has stopped %s; only an operator can start them: claybot nodes start %s", what, k)}
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

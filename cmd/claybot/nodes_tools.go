package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/tools"
)

// The nodes of what agents remember beyond their conversations, and of the skills.
var (
	notesNode  = nodes.Key{Kind: nodes.Memory, Name: "notes"}
	skillsNode = nodes.Key{Kind: nodes.Skills, Name: "skills"}
)

// toolNode is the node whose stop takes a tool of claybot away; the zero Key for one without a node, and for
// those of MCP servers, see serverOf.
func toolNode(spec tools.Spec) nodes.Key {
	group := spec.Group()
	if slices.Contains(spec.Scopes, skillsNode.Name) {
		return skillsNode
	}
	if group == "" || spec.Source != "" {
		return nodes.Key{}
	}
	return nodes.Key{Kind: nodes.Tools, Name: group}
}

// nodesOf are the nodes of the tools that a profile gives to the agents of people, stopped or not.
func (b *toolbox) nodesOf(profile string) (keys []nodes.Key) {
	skills := b.stores.skills().Exists()
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.config.Load()
	p, ok := c.Agents.Profiles[profile]
	if !ok { // it went just now
		return nil
	}
	set := b.setOf(c, p, claybot.Descriptor{Type: claybot.AgentUser}, nil, skills)
	for _, g := range set.Groups() {
		if k := toolNode(g.Tools[0]); k != (nodes.Key{}) {
			keys = append(keys, k)
		}
	}
	if !p.Notes.Off {
		keys = append(keys, notesNode)
	}
	missing := skillsMissing(c) != "" && (p.Tools == nil || slices.Contains(p.Tools, tools.UseSkill))
	if spec, ok := set.Spec(tools.UseSkill); ok && !spec.Hidden || missing {
		keys = append(keys, skillsNode)
	}
	return keys
}

// withheld says to a model that an operator has stopped what a call of a tool needs; nil: none has. nil
// args stand for the list of tools, where only those of a stopped group and of skills are missing.
func (b *toolbox) withheld(a claybot.Agent, spec tools.Spec, args json.RawMessage) error {
	k, orders := toolNode(spec), b.stores.orders
	what := "the tools of the group " + k.Name
	if k == skillsNode {
		what = "the skills"
	}
	if server := b.serverOf(a, spec); server != "" && k == (nodes.Key{}) {
		k, what = nodes.Key{Kind: nodes.MCP, Name: server}, "the tools of the MCP server "+server
	}
	err := withheld(orders, k, what)
	switch {
	case err != nil || args == nil || spec.Source != "":
	case strings.HasPrefix(spec.Name, "memory_"):
		err = withheld(orders, notesNode, "the notes")
	case slices.Contains(spec.Scopes, tools.ScopeBrowser): // a browser that is open opens no workspace
		err = b.tooling.workspaces.withheld(b.config.profile(a).Workspace.Provider)
	}
	return err
}

// serverOf is the MCP server of a tool; empty: it is of none. One that is stopped lists no tools, so that the
// name says whose it is.
func (b *toolbox) serverOf(a claybot.Agent, spec tools.Spec) (server string) {
	if source, is := strings.CutPrefix(spec.Source, "mcp:"); is || reserved(spec.Name) {
		return source
	}
	p := b.config.profile(a)
	for _, s := range b.config.Load().Tools.MCP {
		if strings.HasPrefix(spec.Name, s.Name+"_") && len(s.Name) > len(server) && (p.Tools == nil || slices.Contains(p.Tools, spec.Name)) {
			server = s.Name
		}
	}
	return server
}

// withheld says to a model that an operator has stopped a node, which what names; nil: none has.
func withheld(orders *nodes.Orders, k nodes.Key, what string) error {
	if orders.Stopped(k) == nil {
		return nil
	}
	return &tools.Fault{Code: tools.FaultStopped, Text: fmt.Sprintf("nothing was done: an operator has stopped %s; only an operator can start them: claybot nodes start %s", what, k)}
}

// toolNodes are the groups of tools, the notes and the skills that profiles use.
func (d nodeDesk) toolNodes(profiles []nodes.View) (list []nodes.View) {
	for _, p := range profiles {
		for _, k := range p.Uses {
			if !slices.Contains([]string{nodes.Tools, nodes.Memory, nodes.Skills}, k.Kind) || slices.ContainsFunc(list, func(n nodes.View) bool { return n.Key == k }) {
				continue
			}
			n := nodes.View{Key: k, State: nodes.Running}
			if why := skillsMissing(d.config.Load()); why != "" && k == skillsNode {
				n.State, n.Text = nodes.Failed, why
			}
			d.stoppable(&n)
			list = append(list, n)
		}
	}
	return list
}

package main

import (
	"slices"
	"strings"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/overview"
)

// unmade are the nodes of what the configuration has and claybot has not made: entries with a value that is not valid,
// which are left out.
func (d nodeDesk) unmade(c *configs.Config, all []nodes.View) (list []nodes.View) {
	there := func(k nodes.Key) bool {
		is := func(n nodes.View) bool { return n.Key == k }
		return slices.ContainsFunc(all, is) || slices.ContainsFunc(list, is)
	}
	for _, w := range c.Source.Warnings {
		if k := entryOf(c, w); k.Name != "" && !there(k) {
			list = append(list, nodes.View{Key: k, State: nodes.Off, Text: w.String(), Next: w.Next})
		}
	}
	for i, n := range list { // it may be started before it is corrected
		if n.Stopped = d.stores.orders.Stopped(n.Key); n.Stopped != nil {
			list[i].Stopped = n.Stopped
			list[i].Can, list[i].State = []string{nodes.Start}, nodes.Stopped
			list[i].Text = stoppedBy(*n.Stopped) + "; " + nodes.Fix(n.Key) + "; then: " + n.Text
		}
	}
	return list
}

// entryOf is the node of an entry that a warning switches off or leaves out; the zero Key for another warning.
func entryOf(c *configs.Config, w configs.Warning) (k nodes.Key) {
	if name := c.RelayOf(w); name != "" && !w.Advice() {
		return nodes.Key{Kind: nodes.Relay, Name: name}
	}
	for group, kind := range map[string]string{"connectors.": nodes.Connector, "mcp.": nodes.MCP} {
		if below, is := strings.CutPrefix(w.Key, group); is && w.Off {
			name, _, _ := strings.Cut(below, ".")
			k = nodes.Key{Kind: kind, Name: name}
		}
	}
	return k
}

// whatOf is how the status and the findings name a node.
func whatOf(k nodes.Key) string {
	switch k.Kind {
	case nodes.Connector, nodes.Schedule:
		return k.Name
	case nodes.MCP:
		return "MCP server " + k.Name
	case nodes.Relay:
		return "relay " + k.Name
	}
	return k.String()
}

// advise gives nodes that do not run the next step that the status has for them.
func advise(all []nodes.View, findings []overview.Finding) {
	for i, n := range all {
		whats := []string{whatOf(n.Key)}
		switch n.Kind {
		case nodes.Model:
			whats = append(whats, "model "+n.Name)
		case nodes.Workspace:
			whats = append(whats, "workspaces "+n.Name)
		}
		for _, f := range findings {
			if n.State != nodes.Running && n.Next == "" && slices.Contains(whats, f.What) && !strings.Contains(n.Text, f.Next) {
				all[i].Next = f.Next
			}
		}
	}
}

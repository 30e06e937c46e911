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
			list = append(list, offNode(nodes.View{Key: k}, w))
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

// offNode is a node that a setting switches off. It says what the finding about the setting says.
func offNode(n nodes.View, w configs.Warning) nodes.View {
	n.State, n.Text, n.Next, n.Code = nodes.Off, w.String(), nextFor(w), w.Code()
	return n
}

// whatsOf are the names of the findings about a node.
func whatsOf(k nodes.Key) []string {
	switch k.Kind {
	case nodes.Connector:
		return []string{k.Name, "credentials of " + k.Name}
	case nodes.Model:
		return []string{k.String(), "model " + k.Name}
	case nodes.Skills:
		return []string{k.String(), "skills"}
	case nodes.Workspace:
		return []string{k.String(), "workspaces " + k.Name}
	}
	return []string{whatOf(k)}
}

// advise has nodes say what the findings about them say: the cause, the next step and the code. The state is that
// of the node, and not said twice.
func advise(all []nodes.View, findings []overview.Finding) {
	for i := range all {
		n, whats := &all[i], whatsOf(all[i].Key)
		for _, f := range findings {
			if n.Code != "" || !slices.Contains(whats, f.What) {
				continue
			}
			n.Code = f.Code
			if n.Stopped != nil { // it says by whom, and how it is started
				continue
			}
			if n.Next = f.Next; n.Text == "" || !strings.HasSuffix(f.Text, n.Text) { // otherwise with the state alone
				n.Text = strings.TrimPrefix(f.Text, n.State+": ")
			}
		}
	}
}

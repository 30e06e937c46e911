package dashboard

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/web"
)

// A nodeRemoval is how a node is taken out of the configuration.
type nodeRemoval struct {
	Key     string // of its entry in the file; empty: the file has none
	Version string // of the file
	Loses   string // what cannot be brought back, and whether the history can undo it
	Away    string // what else sets it, and where that is removed; empty for nothing
}

// removalOf returns how a node is removed that is an entry of the configuration.
func removalOf(c web.ConfigView, n nodes.View) (r nodeRemoval) {
	key, in := entryOf(c, n)
	var away []string
	undo := nodeRemoveUndo
	for _, k := range c.Keys {
		switch row := (configRow{k}); {
		case key == "" || !within(k.Key, in) || !row.Set():
		case configFileLine.MatchString(k.Origin):
			r.Key, r.Version = key, c.Version
			value, item := c.Items[key]
			if !item {
				value = k.Value
			}
			if strings.Contains(value, configHidden) {
				undo = fmt.Sprintf(nodeRemoveFinal, key)
			}
		case !slices.Contains(away, k.Origin):
			away = append(away, k.Origin)
		}
	}
	if len(away) > 0 {
		r.Away = fmt.Sprintf(nodeSetAway, strings.Join(away, ", "))
	}
	if r.Loses = undo; n.Kind == nodes.Relay {
		r.Loses = nodeRemoveRelay + " " + undo
	}
	return r
}

// entryOf is the key of the entry of a node, and the key in which that is; empty for what is no entry.
func entryOf(c web.ConfigView, n nodes.View) (key, in string) {
	has := func(key string) bool {
		return slices.ContainsFunc(c.Keys, func(k web.ConfigKey) bool { return within(k.Key, key) })
	}
	switch own := "connectors." + n.Name; {
	case n.Kind == nodes.Relay:
		return "relay." + n.Name, "relay"
	case n.Kind == nodes.MCP:
		key = "mcp." + n.Name
	case n.Kind == nodes.Profile && n.Name != "default":
		key = "agents." + n.Name
	case n.Kind == nodes.Connector && has(own):
		key = own
	case n.Kind == nodes.Connector && n.Name == n.Type: // telegram, slack and discord have groups of their own
		key = n.Name
	}
	return key, key
}

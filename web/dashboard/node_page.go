package dashboard

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/web"
)

// A nodePage is one node with all that is known of it.
type nodePage struct {
	viewer
	nodeView
	Gone   bool // it is no node any more; then there is nothing but its Key
	Ports  []nodePort
	UsedBy []nodeView
	Places []advice
	Log    []web.NodeLine // for those who operate
	// Settings are those of the node that are set, and Unset its further keys; for administrators.
	Settings, Unset []configRow
	Removal         nodeRemoval
}

// Title is that of the page.
func (v nodePage) Title() string { return v.Key.String() }

// A nodePort is what a node uses. That of a profile has a name; it may have nothing.
type nodePort struct {
	Name string
	Uses []nodeView
}

// page shows one node.
func (b *nodePages) page(r *http.Request) (any, error) {
	v, err := b.read(r)
	if err == nil && v.Gone {
		return nil, gone(fmt.Sprintf(nodeNone, v.Key), nodeNoneFix)
	}
	return v, err
}

// now is page for a page that is open: it says that its node is gone.
func (b *nodePages) now(r *http.Request) (any, error) { return b.read(r) }

func (b *nodePages) read(r *http.Request) (v nodePage, err error) {
	v.viewer, v.Key = viewerOf(r), keyOfNode(r)
	all, traffic, err := b.list(r)
	if err != nil {
		return v, err
	}
	by := make(map[nodes.Key]nodeView, len(all))
	for _, n := range all {
		by[n.Key] = nodeView{n, nodeMarks[n.State], busy(traffic, n.Key)}
	}
	n, there := by[v.Key]
	if v.Gone = !there; v.Gone {
		return v, nil
	}
	v.nodeView, v.Ports, v.Places = n, portsOf(n.View, by), placesOf(n.Key)
	for _, x := range all {
		if slices.Contains(x.Uses, n.Key) {
			v.UsedBy = append(v.UsedBy, by[x.Key])
		}
	}
	if v.Operates() {
		if v.Log, err = b.nodes.NodeLog(r.Context(), n.Key); err != nil {
			return v, err
		}
	}
	if v.Administers() && b.config.config != nil {
		c, err := b.config.read(r)
		if err != nil {
			return v, err
		}
		v.Settings, v.Unset = nodeSettings(c, n.View, all)
		v.Removal = removalOf(c, n.View)
	}
	return v, nil
}

// keyOfNode is the node that a request is about.
func keyOfNode(r *http.Request) nodes.Key {
	return nodes.Key{Kind: r.PathValue("kind"), Name: r.PathValue("name")}
}

// portsOf are the nodes that a node uses, by its ports.
func portsOf(n nodes.View, by map[nodes.Key]nodeView) (ports []nodePort) {
	names := []string{""}
	if n.Kind == nodes.Profile {
		names = nodes.Ports
	}
	for _, name := range names {
		port := nodePort{Name: name}
		for _, k := range n.Uses {
			if x, there := by[k]; there && (name == "" || nodes.PortOf(k.Kind) == name) {
				port.Uses = append(port.Uses, x)
			}
		}
		if name != "" || len(port.Uses) > 0 {
			ports = append(ports, port)
		}
	}
	return ports
}

// nodeSettings are the keys of the configuration of a node, and those of them that are not set.
func nodeSettings(c web.ConfigView, n nodes.View, all []nodes.View) (set, unset []configRow) {
	groups := settingsOfKind[n.Kind]
	if own, ok := settingsOfKind[n.Key.String()]; ok {
		groups = own
	}
	switch n.Kind {
	case nodes.Connector:
		own := "connectors." + n.Name
		if groups = append(groups, n.Name); slices.ContainsFunc(c.Keys, func(k web.ConfigKey) bool { return within(k.Key, own) }) {
			groups = []string{own}
		}
	case nodes.MCP:
		groups = []string{"mcp." + n.Name}
	case nodes.Profile:
		groups = []string{"agents." + n.Name}
	case nodes.Model:
		groups = []string{"model"}
		for _, p := range all {
			if p.Kind == nodes.Profile && slices.Contains(p.Uses, n.Key) {
				groups = append(groups, "agents."+p.Name+".model")
			}
		}
	}
	for _, k := range c.Keys {
		row := configRow{k}
		switch of := slices.ContainsFunc(groups, func(g string) bool { return within(k.Key, g) }); {
		case of && row.Set():
			set = append(set, row)
		case of:
			unset = append(unset, row)
		}
	}
	for _, g := range groups {
		unset = append(unset, configRows(unsetIn(c, g))...)
	}
	return set, unset
}

// within reports whether a key is that of a group, or in it.
func within(key, group string) bool { return key == group || strings.HasPrefix(key, group+".") }

// unsetIn are the keys that a profile or a connector with a name of its own can have, and has not: all other keys are
// among those of the configuration.
func unsetIn(c web.ConfigView, entry string) (all []web.ConfigKey) {
	kind, ok := kindOfEntry(c, entry)
	if !ok {
		return nil
	}
	for _, f := range kind.Fields {
		key := entry + "." + f.Key
		if slices.ContainsFunc(c.Keys, func(k web.ConfigKey) bool { return within(k.Key, key) }) {
			continue
		}
		of := func(k web.ConfigKey) bool { return k.Key == "agents.default."+f.Key }
		if i := slices.IndexFunc(c.Keys, of); i >= 0 && kind.Group == "agents" { // profiles begin as the default profile
			f.Value, f.Text = c.Keys[i].Value, c.Keys[i].Text
		}
		f.Key, f.Origin = key, "default"
		all = append(all, f)
	}
	return all
}

// kindOfEntry is the kind of a profile or a connector that the configuration has, by its key.
func kindOfEntry(c web.ConfigView, entry string) (kind web.ConfigKind, ok bool) {
	group, name, _ := strings.Cut(entry, ".")
	if strings.Contains(name, ".") { // a key of an entry
		return kind, false
	}
	want, there := map[string]string{"agents": "profile", "connectors": name}[group], false
	for _, k := range c.Keys {
		there = there || within(k.Key, entry)
		if k.Key == entry+".type" && group == "connectors" {
			want = k.Value
		}
	}
	i := slices.IndexFunc(c.Kinds, func(k web.ConfigKind) bool { return k.Group == group && k.Name == want && !k.List })
	if i < 0 || !there {
		return kind, false
	}
	return c.Kinds[i], true
}

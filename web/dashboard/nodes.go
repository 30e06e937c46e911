package dashboard

import (
	"html/template"
	"net/http"
	"slices"

	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/web"
)

// nodePages serves the map of what is configured.
type nodePages struct {
	*pages
	nodes web.Nodes // nil: none are shown
}

func (b *nodePages) routes() []web.Route {
	return []web.Route{
		b.screen("/ui/nodes", "nodes", b.all),
		b.part("/ui/nodes/now", "nodes", "nodes-now", b.all),
		b.act("POST /ui/nodes/{kind}/{name}/{call}", web.Admin, b.call),
	}
}

// A nodesView is the map and the list of nodes.
type nodesView struct {
	viewer
	SVG   template.HTML
	Nodes []nodeView
}

// A nodeView is a node.
type nodeView struct {
	nodes.Node
	Mark mark
}

// ID is the id of the node in the page.
func (n nodeView) ID() string { return domID(n.Key.String()) }

// Stops reports whether the node can be stopped now, Starts whether it can be started, and Tests
// whether it can be tested.
func (n nodeView) Stops() bool  { return n.Has(nodes.Stop) && n.Stopped == nil }
func (n nodeView) Starts() bool { return n.Has(nodes.Start) && n.Stopped != nil }
func (n nodeView) Tests() bool  { return n.Has(nodes.Test) }

func (b *nodePages) all(r *http.Request) (any, error) {
	if b.nodes == nil {
		return nil, errPage
	}
	all, err := b.nodes.Nodes(r.Context())
	if err != nil {
		return nil, err
	}
	return viewNodes(viewerOf(r), all), nil
}

func viewNodes(who viewer, all []nodes.Node) nodesView {
	v := nodesView{viewer: who, SVG: drawNodes(all)}
	for _, n := range all {
		v.Nodes = append(v.Nodes, nodeView{n, nodeMarks[n.State]})
	}
	return v
}

func (b *nodePages) call(r *http.Request) (string, error) {
	call := r.PathValue("call")
	if b.nodes == nil || !slices.Contains([]string{nodes.Start, nodes.Stop, nodes.Restart, nodes.Test}, call) {
		return "", errPage
	}
	k := nodes.Key{Kind: r.PathValue("kind"), Name: r.PathValue("name")}
	done, err := b.nodes.CallNode(r.Context(), k, call, web.User(r))
	switch {
	case err != nil:
		return "", err
	case !done.OK:
		return "", web.Refusal(k.String() + ": " + done.Text)
	case call == nodes.Test:
		return k.String() + ": " + done.Text, nil
	}
	return done.Text, nil
}

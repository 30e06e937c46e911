package dashboard

import (
	"cmp"
	"errors"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/web"
)

// nodePages serves the map of what is configured.
type nodePages struct {
	*pages
	nodes  web.Nodes // nil: none are shown
	config *configPages
}

func (b *nodePages) routes() []web.Route {
	return []web.Route{
		b.screen("/ui/nodes", "nodes", b.all),
		b.part("/ui/nodes/now", "nodes", "nodes-now", b.all),
		b.config.admin(b.screen("/ui/nodes/add", "node-add", b.form)),
		b.act("POST /ui/nodes/add", web.Admin, b.add),
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
	nodes.View
	Mark mark
}

// ID is the id of the node in the page.
func (n nodeView) ID() string { return domID(n.Key.String()) }

// Stops reports whether the node can be stopped now, Restarts whether it can be restarted, Starts whether
// it can be started, and Tests whether it can be tested.
func (n nodeView) Stops() bool    { return n.Has(nodes.Stop) && n.Stopped == nil }
func (n nodeView) Restarts() bool { return n.Has(nodes.Restart) && n.Stopped == nil }
func (n nodeView) Starts() bool   { return n.Has(nodes.Start) && n.Stopped != nil }
func (n nodeView) Tests() bool    { return n.Has(nodes.Test) }

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

func viewNodes(who viewer, all []nodes.View) nodesView {
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

// A nodeForm is the form that adds a node of a kind. Without a Kind, the reader chooses.
type nodeForm struct {
	viewer
	Version string
	Kinds   []web.ConfigKind
	Kind    web.ConfigKind
}

// Title is that of the page.
func (f nodeForm) Title() string { return nodeAddTitle }

// Main and More are the fields that most entries set, and the others.
func (f nodeForm) Main() []configRow { return configRows(f.Kind.Fields[:f.Kind.Main]) }

// More is described at Main.
func (f nodeForm) More() []configRow { return configRows(f.Kind.Fields[f.Kind.Main:]) }

func configRows(keys []web.ConfigKey) []configRow {
	rows := make([]configRow, len(keys))
	for i, k := range keys {
		rows[i] = configRow{k}
	}
	return rows
}

func (b *nodePages) form(r *http.Request) (any, error) {
	c, err := b.config.read(r)
	if err != nil {
		return nil, err
	}
	f := nodeForm{viewer: viewerOf(r), Version: c.Version, Kinds: c.Kinds}
	if kind := r.URL.Query().Get("kind"); kind != "" {
		i := slices.IndexFunc(c.Kinds, func(k web.ConfigKind) bool { return k.Name == kind })
		if i < 0 {
			return nil, errPage
		}
		f.Kind = c.Kinds[i]
	}
	return f, nil
}

// add adds the node of a form, as one change of the file, which its history has.
func (b *nodePages) add(r *http.Request) (string, error) {
	fields := make(map[string]string)
	for name := range r.PostForm {
		if key, ok := strings.CutPrefix(name, nodeField); ok {
			fields[key] = r.PostForm.Get(name)
		}
	}
	words, err := b.config.change(r, web.ConfigEdit{Kind: r.PostForm.Get("kind"), Fields: fields})
	var problem *web.Problem
	if errors.As(err, &problem) && len(problem.Fields) > 0 { // the fields of the form have other names
		faults := make(map[string]string)
		var all []string
		for field, why := range problem.Fields {
			all = append(all, field+": "+why)
			faults[cmp.Or(map[string]string{"name": "key", "kind": "kind"}[field], nodeField+field)] = why
		}
		slices.Sort(all)
		return "", &web.Problem{Status: problem.Status, Code: "refused", Message: strings.Join(all, " "), Fix: cmp.Or(problem.Fix, nothingChanged), Fields: faults}
	}
	return words, err
}

// nodeField begins the names of fields that are keys of an entry.
const nodeField = "f."

package dashboard

import (
	"cmp"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/storage"
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
		{Pattern: "GET /ui/nodes/mermaid", Scope: web.Read, Handler: http.HandlerFunc(b.mermaid)},
		b.config.admin(b.screen("/ui/nodes/add", "node-add", b.form)),
		b.screen("/ui/nodes/{kind}/{name}", "node", b.page),
		b.part("/ui/nodes/{kind}/{name}/now", "node", "node-now", b.now),
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
	Busy bool // messages flow to it or from it
}

// URL is the address of the page of the node.
func (n nodeView) URL() string { return nodeURL(n.Key) }

// ID is the id of the node in the page.
func (n nodeView) ID() string { return domID(n.Key.String()) }

// Why is the text of the node, unless it says only who stopped it, which its page says itself.
func (n nodeView) Why() string {
	if n.Stopped != nil && strings.Contains(n.Text, n.Stopped.By) {
		return ""
	}
	return n.Text
}

// Stops reports whether the node can be stopped now, Restarts whether it can be restarted, Starts whether
// it can be started, and Tests whether it can be tested.
func (n nodeView) Stops() bool    { return n.Has(nodes.Stop) && n.Stopped == nil }
func (n nodeView) Restarts() bool { return n.Has(nodes.Restart) && n.Stopped == nil }
func (n nodeView) Starts() bool   { return n.Has(nodes.Start) && n.Stopped != nil }
func (n nodeView) Tests() bool    { return n.Has(nodes.Test) }

func (b *nodePages) all(r *http.Request) (any, error) {
	all, traffic, err := b.list(r)
	return viewNodes(viewerOf(r), all, traffic), err
}

// list returns the nodes, and the links on which messages flow.
func (b *nodePages) list(r *http.Request) (all []nodes.View, traffic []web.NodeLink, err error) {
	if b.nodes == nil {
		return nil, nil, errPage
	}
	if all, err = b.nodes.Nodes(r.Context()); err != nil {
		return nil, nil, err
	}
	traffic, err = b.nodes.NodeTraffic(r.Context())
	return all, traffic, err
}

func viewNodes(who viewer, all []nodes.View, traffic []web.NodeLink) nodesView {
	v := nodesView{viewer: who, SVG: drawNodes(all, traffic)}
	for _, n := range all {
		v.Nodes = append(v.Nodes, nodeView{n, nodeMarks[n.State], busy(traffic, n.Key)})
	}
	return v
}

// mermaid sends the map as a Mermaid flowchart.
func (b *nodePages) mermaid(w http.ResponseWriter, r *http.Request) {
	all, _, err := b.list(r)
	if err != nil {
		b.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Disposition", `attachment; filename="claybot.mmd"`)
	web.Words(w, http.StatusOK, strings.TrimSuffix(nodes.Mermaid(all), "\n"))
}

func (b *nodePages) call(r *http.Request) (string, error) {
	call := r.PathValue("call")
	if b.nodes == nil || !slices.Contains([]string{nodes.Start, nodes.Stop, nodes.Restart, nodes.Test}, call) {
		return "", errPage
	}
	k := keyOfNode(r)
	done, err := b.nodes.CallNode(r.Context(), k, call, web.User(r))
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return "", gone(fmt.Sprintf(nodeNone, k), nodeNoneFix)
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
	// Else are the parts that are set otherwise, and Away says that kinds are missing that only the machine of claybot
	// may add.
	Else []nodeElse
	Away bool
}

// A nodeElse is a part that is no entry of the configuration.
type nodeElse struct{ Name, About, URL string }

// About says what the entries of a kind are.
func (f nodeForm) About(kind string) string { return kindWords[kind] }

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
	f.Away = !slices.ContainsFunc(c.Kinds, func(k web.ConfigKind) bool { return k.Name == nodes.MCP })
	for _, x := range elsewhere {
		if x.URL == "" && !slices.ContainsFunc(c.Keys, func(k web.ConfigKey) bool { return k.Key == x.Key }) {
			continue
		}
		f.Else = append(f.Else, nodeElse{x.Name, x.About, cmp.Or(x.URL, configRow{web.ConfigKey{Key: x.Key}}.URL())})
	}
	if kind := r.URL.Query().Get("kind"); kind != "" {
		i := slices.IndexFunc(c.Kinds, func(k web.ConfigKind) bool { return k.Name == kind })
		if i < 0 {
			return nil, gone(fmt.Sprintf(nodeNoKind, kind), nodeNoKindFix)
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
			if in := formField(field, fields); r.PostForm.Has(in) {
				faults[in] = why
				why = field + ": " + why
			}
			all = append(all, why) // a budget has no name that it would be about
		}
		slices.Sort(all)
		return "", &web.Problem{Status: problem.Status, Code: "refused", Message: strings.Join(all, " "), Fix: cmp.Or(problem.Fix, nothingChanged), Fields: faults}
	}
	return words, err
}

// formField is the name that the form has for a field of an entry with these fields: the name of an entry is its key,
// unless it is a field as well.
func formField(field string, fields map[string]string) string {
	if _, own := fields[field]; !own && (field == "name" || field == "kind") {
		return map[string]string{"name": "key", "kind": "kind"}[field]
	}
	return nodeField + field
}

// nodeField begins the names of fields that are keys of an entry.
const nodeField = "f."

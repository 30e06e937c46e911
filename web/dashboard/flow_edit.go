package dashboard

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/web"
)

// flowEditPages are the pages that change the files of workflows. What is not saved is a draft in the
// browser: each step sends it, and gets it back changed, with its graph, its difference and its faults.
type flowEditPages struct {
	*pages
	editor web.FlowEditor // nil: no file can be changed
}

func (b *flowEditPages) routes() []web.Route {
	edit := b.screen("/ui/flows/{flow}/edit", "flow-edit", b.edit)
	edit.Scope = web.Admin
	return []web.Route{edit, b.form("POST /ui/flows/{flow}/edit", web.Admin, b.step)}
}

// A flowEditView is a draft of the file of a flow.
type flowEditView struct {
	viewer
	web.FlowProposal
	Base    string // version of the file that the draft is based on
	CRLF    bool   // its lines end as on Windows
	AsText  bool   // the file is shown as text
	Graph   *graphView
	Chosen  *flows.Form
	Targets []string // where an edge can lead
	Kinds   []string

	LayoutBase string // version of the layout that the draft is based on
}

// Title is the heading.
func (v flowEditView) Title() string { return fmt.Sprintf(flowEditHeading, v.Flow) }

// Changed reports whether the draft differs from the file.
func (v flowEditView) Changed() bool { return v.Base != v.Version }

// Moved reports whether nodes stand elsewhere than in the file.
func (v flowEditView) Moved() bool { return v.LayoutBase != v.Layout.Version }

// Saves reports whether there is something to save that may be saved: positions have no faults.
func (v flowEditView) Saves() bool {
	return v.Changed() && len(v.Faults) == 0 || v.Moved() && !v.Changed()
}

// Places are the positions of the draft for the next step.
func (v flowEditView) Places() string { return string(asJSON(v.Layout.Nodes)) }

// Nodes are the names of the nodes, in the order of the file.
func (v flowEditView) Nodes() []string {
	names := make([]string, len(v.Forms))
	for i, f := range v.Forms {
		names[i] = f.Name
	}
	return names
}

// edit shows the file as it is.
func (b *flowEditPages) edit(r *http.Request) (any, error) {
	if b.editor == nil {
		return nil, errPage
	}
	file, err := b.editor.FlowFile(r.Context(), r.PathValue("flow"), "")
	if ignoreGone(err) != nil {
		return nil, err
	}
	if err != nil {
		return nil, errNoFlow
	}
	p, err := b.editor.ProposeFlow(r.Context(), file.Flow, web.FlowChange{Version: file.Version, Text: file.Text})
	if err != nil {
		return nil, err
	}
	return b.view(r, p, base{file.Version, file.Layout.Version}, r.URL.Query().Get("node"), r.URL.Query().Get("view") == "text"), nil
}

// A base are the versions of the files that a draft is based on.
type base struct{ flow, layout string }

// view shows a draft.
func (b *flowEditPages) view(r *http.Request, p web.FlowProposal, on base, node string, asText bool) flowEditView {
	v := flowEditView{viewer: viewerOf(r), FlowProposal: p, Base: on.flow, LayoutBase: on.layout, CRLF: strings.Contains(p.Text, "\r\n"), AsText: asText, Kinds: flows.Kinds}
	v.Targets = append(v.Nodes(), flows.End)
	for i := range v.Forms {
		if v.Forms[i].Name == node {
			v.Chosen = &v.Forms[i]
		}
	}
	v.Graph = drawDraft(&v)
	return v
}

// drawDraft draws the nodes of a draft as links, those with a fault in the colour of a failure.
func drawDraft(v *flowEditView) *graphView {
	shape := runs.Shape{Name: v.Flow, Start: v.Start, Edges: make(map[string][]string)}
	p := pen{steps: make(map[string]flowStep), label: "Choose a node to change it.", grips: make(map[string]map[string]string), moves: true}
	names, parts := v.Nodes(), make(map[string][]string)
	if !slices.Contains(names, v.Start) {
		shape.Start = ""
	}
	for _, f := range v.Forms {
		s := flowStep{FlowNode: web.FlowNode{Name: f.Name, Kind: f.Kind}, Chosen: v.Chosen != nil && v.Chosen.Name == f.Name, Mark: mark{"", plural(len(f.Edges), "edge", "edges")}}
		s.URL = "/ui/flows/" + url.PathEscape(v.Flow) + "/edit?" + url.Values{"node": {f.Name}}.Encode()
		shape.Edges[f.Name], p.grips[f.Name] = nil, make(map[string]string)
		for _, e := range f.Edges {
			if !slices.Contains(v.Targets, e.To) || p.grips[f.Name][e.To] != "" {
				continue
			}
			shape.Edges[f.Name] = append(shape.Edges[f.Name], e.To)
			path, _ := json.Marshal(append([]string{f.Name}, e.Path...)) // strings always marshal
			p.grips[f.Name][e.To] = string(path)
		}
		parts[f.Name] = f.Parts
		if v.faulty(f.Name) {
			p.seen.Nodes = append(p.seen.Nodes, runs.NodeSeen{Node: f.Name, State: runs.NodeFailed})
			s.Mark.Words = "has a fault"
		}
		p.steps[f.Name] = s
	}
	if len(v.Forms) == 0 {
		return nil
	}
	at := handPlaced{at: v.Layout.Nodes, with: p.unfold(&shape, parts)}
	return &graphView{Name: v.Flow, Where: p.label, SVG: template.HTML(p.draw(layoutAt(shape, at)))} //nolint:gosec // names are escaped one by one
}

// faulty reports whether a node has a fault.
func (v flowEditView) faulty(node string) bool {
	return slices.ContainsFunc(v.Faults, func(f web.FlowFault) bool {
		return f.Key == "nodes."+node || strings.HasPrefix(f.Key, "nodes."+node+".")
	})
}

// step makes one step of a draft: it takes over what was typed, and then does what was chosen.
func (b *flowEditPages) step(w http.ResponseWriter, r *http.Request) error {
	if b.editor == nil {
		return errPage
	}
	form, name := r.PostForm, r.PathValue("flow")
	c := web.FlowChange{Version: form.Get("version"), Text: strings.ReplaceAll(form.Get("text"), "\r\n", "\n")}
	if form.Get("crlf") != "" {
		c.Text = strings.ReplaceAll(c.Text, "\n", "\r\n")
	}
	if strings.TrimSpace(c.Text) == "" {
		return bad(badFlowEmpty, flowEditMend)
	}
	on := base{c.Version, form.Get("layout-base")}
	nodes, err := movedNodes(form)
	if err != nil {
		return err
	}
	c.Layout = &web.FlowLayoutChange{Version: on.layout, Nodes: nodes}
	p, err := b.editor.ProposeFlow(r.Context(), name, c)
	if err != nil {
		return err
	}
	then := func(edits []flows.Edit) web.FlowChange {
		return web.FlowChange{Version: c.Version, Text: p.Text, Edits: edits, Layout: &web.FlowLayoutChange{Version: on.layout, Nodes: p.Layout.Nodes}}
	}
	if edits := typedEdits(p.Forms, form); len(edits) > 0 {
		if p, err = b.editor.ProposeFlow(r.Context(), name, then(edits)); err != nil {
			return err
		}
	}
	node := form.Get("node")
	edits, node, err := chosenEdits(p, form, node)
	if err != nil {
		return err
	}
	if len(edits) > 0 {
		if p, err = b.editor.ProposeFlow(r.Context(), name, then(edits)); err != nil {
			return err
		}
	}
	if form.Get("action") == "save" {
		return b.save(w, r, name, then(nil))
	}
	html, err := b.render("flow-edit", "editor", b.view(r, p, on, node, form.Get("view") == "text"))
	if err != nil {
		return err
	}
	write(w, http.StatusOK, html)
	return nil
}

// movedNodes are the positions of nodes in a draft, with those that were moved since the last step.
func movedNodes(form url.Values) (all flows.Layout, err error) {
	all = make(flows.Layout)
	for _, field := range []string{"layout", "moves"} {
		if field == "moves" && form.Get("action") == "tidy" {
			return flows.Layout{}, nil
		}
		var some flows.Layout
		if v := form.Get(field); v != "" && json.Unmarshal([]byte(v), &some) != nil {
			return nil, bad(badFlowPlace, flowEditMend)
		}
		for name, at := range some {
			all[name] = flows.Position{X: inPlace(at.X), Y: inPlace(at.Y)}
		}
	}
	return all, nil
}

func inPlace(v int) int { return min(max(v, -flows.MaxPosition), flows.MaxPosition) }

// save saves a draft, and leads to the page of the flow.
func (b *flowEditPages) save(w http.ResponseWriter, r *http.Request, name string, c web.FlowChange) error {
	p, err := b.editor.SaveFlow(r.Context(), name, c, web.User(r))
	if err != nil {
		return err
	}
	w.Header().Set("HX-Redirect", "/ui/flows/"+url.PathEscape(name))
	if p.InForce {
		b.done(w, doneFlowSaved)
	} else {
		b.done(w, doneFlowWaits)
	}
	return nil
}

// typedEdits are the edits that make the fields of the shown node what was typed.
func typedEdits(forms []flows.Form, form url.Values) (edits []flows.Edit) {
	i := slices.IndexFunc(forms, func(f flows.Form) bool { return f.Name == form.Get("shown") })
	if i < 0 {
		return nil
	}
	for _, f := range forms[i].Fields {
		value := strings.ReplaceAll(form.Get("f."+f.Key), "\r\n", "\n")
		if !form.Has("f."+f.Key) || value == f.Value {
			continue
		}
		edits = append(edits, typedEdit(f, value, "nodes", forms[i].Name, f.Key))
	}
	return edits
}

// typedEdit makes a field what was typed.
func typedEdit(f flows.FormField, value string, path ...string) flows.Edit {
	e := flows.Edit{Path: path}
	var v any = value
	switch {
	case strings.TrimSpace(value) == "":
		return e
	case f.Kind == flows.FieldOfYAML:
		e.YAML = value
		return e
	case f.Kind == flows.FieldOfLines:
		lines := []string{}
		for line := range strings.SplitSeq(value, "\n") {
			if line = strings.TrimSpace(line); line != "" {
				lines = append(lines, line)
			}
		}
		v = lines
	case value == "true" || value == "false":
		if f.Kind == flows.FieldOfOne {
			v = value == "true"
		}
	case f.Kind == flows.FieldOfNumber:
		if n, err := strconv.Atoi(strings.TrimSpace(value)); err == nil {
			v = n
		}
	}
	e.Value = asJSON(v)
	return e
}

func asJSON(v any) json.RawMessage {
	b, _ := json.Marshal(v) // of strings and numbers
	return b
}

// chosenEdits are the edits of the step that was chosen, and the node that is shown after it.
func chosenEdits(p web.FlowProposal, form url.Values, node string) (edits []flows.Edit, show string, err error) {
	switch form.Get("action") {
	case "add":
		return addedNode(p, form)
	case "remove":
		return removedNode(p, node), "", nil
	case "rename":
		to := strings.TrimSpace(form.Get("name"))
		return renamedNode(p, node, to), cmp.Or(to, node), newName(p, to, "name")
	case "edge":
		var path []string
		if json.Unmarshal([]byte(form.Get("edge")), &path) != nil || len(path) < 2 || form.Get("to") == "" {
			return nil, node, bad(badFlowEdge, flowEditMend)
		}
		return []flows.Edit{{Path: append([]string{"nodes"}, path...), Value: asJSON(form.Get("to"))}}, path[0], nil
	}
	return nil, node, nil
}

// newName refuses a name that is none of a new node.
func newName(p web.FlowProposal, name, field string) error {
	words := ""
	switch {
	case !flows.IsName(name):
		words = badFlowNode
	case slices.ContainsFunc(p.Forms, func(f flows.Form) bool { return f.Name == name }):
		words = badFlowKnown
	default:
		return nil
	}
	return faulty(map[string]string{field: words})
}

// onward is the key of the usual edge of a node, with the node to which it leads.
func onward(f flows.Form) (key, to string) {
	key = "next"
	if f.Kind == flows.KindSwitch {
		key = "else"
	}
	for _, e := range f.Edges {
		if len(e.Path) == 1 && e.Path[0] == key {
			return key, e.To
		}
	}
	return key, flows.End
}

// addedNode puts a new node between another one and the node behind it; without another one, before
// the first node.
func addedNode(p web.FlowProposal, form url.Values) (edits []flows.Edit, show string, err error) {
	name, kind, after := strings.TrimSpace(form.Get("new-name")), form.Get("new-kind"), form.Get("new-after")
	if err := newName(p, name, "new-name"); err != nil {
		return nil, "", err
	}
	if !slices.Contains(flows.Kinds, kind) {
		return nil, "", faulty(map[string]string{"new-kind": badFlowKind})
	}
	path, to := []string{"start"}, cmp.Or(p.Start, flows.End)
	if after != "" {
		i := slices.IndexFunc(p.Forms, func(f flows.Form) bool { return f.Name == after })
		if i < 0 {
			return nil, "", faulty(map[string]string{"new-after": badFlowAfter})
		}
		var key string
		key, to = onward(p.Forms[i])
		path = []string{"nodes", after, key}
	}
	key, _ := onward(flows.Form{Kind: kind})
	value := fmt.Sprintf(`{"kind":%s,%q:%s}`, asJSON(kind), key, asJSON(to))
	return []flows.Edit{{Path: []string{"nodes", name}, Value: json.RawMessage(value)}, {Path: path, Value: asJSON(name)}}, name, nil
}

// leads are the edits that have all edges to one node lead to another one.
func leads(p web.FlowProposal, from, to string) (edits []flows.Edit) {
	if p.Start == from {
		edits = append(edits, flows.Edit{Path: []string{"start"}, Value: asJSON(to)})
	}
	for _, f := range p.Forms {
		for _, e := range f.Edges {
			if e.To == from {
				edits = append(edits, flows.Edit{Path: append([]string{"nodes", f.Name}, e.Path...), Value: asJSON(to)})
			}
		}
	}
	return edits
}

// removedNode removes a node: edges to it lead to the node behind it.
func removedNode(p web.FlowProposal, name string) []flows.Edit {
	i := slices.IndexFunc(p.Forms, func(f flows.Form) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	_, to := onward(p.Forms[i])
	if to == name {
		to = flows.End
	}
	return append(leads(p, name, to), flows.Edit{Path: []string{"nodes", name}})
}

// renamedNode gives a node another name, also where edges name it.
func renamedNode(p web.FlowProposal, name, to string) []flows.Edit {
	return append(leads(p, name, to), flows.Edit{Path: []string{"nodes", name}, Rename: to})
}

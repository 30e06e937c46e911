package dashboard_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// A sheet is the file of the flow order of a shelf. It implements web.FlowEditor.
type sheet struct {
	*shelf
	path string

	places flows.Layout // saved positions of nodes
	by     []string     // who saved
}

// editable gives a shelf a file of its flow that can be changed.
func (s *shelf) editable() *sheet {
	s.Helper()
	e := &sheet{shelf: s, path: filepath.Join(s.TempDir(), "order.yaml")}
	if err := os.WriteFile(e.path, []byte(s.flow.Text), 0o600); err != nil {
		s.Fatal(err)
	}
	s.desk = func(b *web.Backend) { b.Flows, b.FlowRuns, b.FlowEditor = s, s, e }
	return e
}

func (e *sheet) text() string {
	e.Helper()
	b, err := os.ReadFile(e.path)
	if err != nil {
		e.Fatal(err)
	}
	return string(b)
}

// layout is the file with positions of nodes; there is none for no position.
func (e *sheet) layout(nodes flows.Layout) web.FlowLayout {
	l := web.FlowLayout{File: "flows/order.layout.yaml", Nodes: nodes}
	if text := configs.LayoutText("order", nodes); text != nil {
		l.Version = flows.HashOf(string(text))
	}
	return l
}

func (e *sheet) FlowFile(_ context.Context, name, _ string) (web.FlowFile, error) {
	if name != "order" {
		return web.FlowFile{}, storage.ErrNotFound
	}
	return web.FlowFile{Flow: name, File: "flows/order.yaml", Version: flows.HashOf(e.text()), Text: e.text(), Layout: e.layout(e.places)}, nil
}

func (e *sheet) ProposeFlow(_ context.Context, name string, c web.FlowChange) (out web.FlowProposal, err error) {
	now := e.text()
	if c.Version != flows.HashOf(now) {
		return out, web.ErrFlowStale
	}
	text, err := configs.EditFlow([]byte(c.Text), c.Edits)
	if err != nil {
		return out, web.Refusal(err.Error())
	}
	out = web.FlowProposal{Flow: name, File: "flows/order.yaml", Version: flows.HashOf(string(text)), Text: string(text)}
	out.Start, out.Forms, _ = configs.FlowForms(text)
	nodes := e.places
	if c.Layout != nil {
		if nodes = c.Layout.Nodes; c.Layout.Version != e.layout(e.places).Version {
			return out, web.ErrFlowStale
		}
	}
	out.Layout = e.layout(nodes.Carried(c.Edits))
	for _, l := range configs.Diff(strings.Split(now, "\n"), strings.Split(string(text), "\n"), 3) {
		out.Diff = append(out.Diff, web.FlowDiffLine{Mark: strings.Trim(string(l.Mark), "\x00"), Text: l.Text})
	}
	f, faults := configs.ReadFlow("order.yaml", text)
	if len(faults) == 0 {
		faults = flows.Check(&f, flows.World{Near: configs.Nearest})
	}
	for _, x := range faults {
		out.Faults = append(out.Faults, web.FlowFault{File: "order.yaml", Line: x.Line, Key: x.Key, Text: x.Text, Near: x.Near})
	}
	return out, nil
}

func (e *sheet) SaveFlow(ctx context.Context, name string, c web.FlowChange, by string) (web.FlowProposal, error) {
	out, err := e.ProposeFlow(ctx, name, c)
	if err != nil || len(out.Faults) > 0 {
		return out, err
	}
	e.by, e.places = append(e.by, by), out.Layout.Nodes
	e.put(name, out.Text)
	out.InForce = true
	return out, os.WriteFile(e.path, []byte(out.Text), 0o600)
}

func (*sheet) FlowHistory(context.Context, string) ([]web.FlowSaved, error) { return nil, nil }

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
	by   []string // who saved
}

// editable gives a shelf a file of its flow that can be changed.
func (s *shelf) editable() *sheet {
	s.Helper()
	e := &sheet{shelf: s, path: filepath.Join(s.TempDir(), "order.yaml")}
	if err := os.WriteFile(e.path, []byte(s.flow.Text), 0o600); err != nil {
		s.Fatal(err)
	}
	s.desk = func(b *web.Backend) { b.Flows, b.FlowEditor = s, e }
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

func (e *sheet) FlowFile(_ context.Context, name, _ string) (web.FlowFile, error) {
	if name != "order" {
		return web.FlowFile{}, storage.ErrNotFound
	}
	return web.FlowFile{Flow: name, File: "flows/order.yaml", Version: flows.HashOf(e.text()), Text: e.text()}, nil
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
	e.by = append(e.by, by)
	e.put(name, out.Text)
	out.InForce = true
	return out, os.WriteFile(e.path, []byte(out.Text), 0o600)
}

func (*sheet) FlowHistory(context.Context, string) ([]web.FlowSaved, error) { return nil, nil }

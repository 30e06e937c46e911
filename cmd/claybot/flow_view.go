package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/runs/flow"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// viewFlow describes a flow without its nodes.
func viewFlow(f *flows.Flow) web.FlowView {
	v := web.FlowView{
		Name: f.Name, Description: f.Description, Version: f.Hash, Owner: f.Owner, Nodes: len(f.Nodes),
		Graph: flow.NameOf(f.Name, f.Hash), Triggers: []web.FlowTrigger{},
	}
	for _, t := range f.Triggers {
		v.Triggers = append(v.Triggers, web.FlowTrigger{Name: t.Name, What: t.String()})
	}
	for _, field := range f.Input {
		v.Input = append(v.Input, web.FlowInput{Name: field.Name, Want: field.Wants()})
	}
	return v
}

// Flow implements web.Flows.
func (d flowDesk) Flow(ctx context.Context, name, version string) (none web.FlowDetail, err error) {
	f := d.library.Named(name)
	if version != "" {
		if f, err = d.library.version(ctx, name, version); err != nil {
			return none, fmt.Errorf("%w: version %.64q of the flow %.64q: %w", storage.ErrNotFound, version, name, err)
		}
	}
	if f == nil {
		return none, storage.ErrNotFound
	}
	v := detailOf(f)
	v.Layout = openLayout(flowsDir(d.config.Load()), name, nodeNames(f.Text)).known
	return v, nil
}

// detailOf describes a flow with its nodes.
func detailOf(f *flows.Flow) web.FlowDetail {
	v := web.FlowDetail{FlowView: viewFlow(f), Start: f.Start, Steps: make([]web.FlowNode, 0, len(f.Nodes))}
	lines, names := strings.Split(f.Text, "\n"), f.Names()
	for _, n := range f.Nodes {
		line := n.Lines[""]
		v.Steps = append(v.Steps, web.FlowNode{Name: n.Name, Kind: n.Kind, Note: n.Note, Next: names[n.Name], Parts: n.Parts(), Line: line, Text: blockAt(lines, line)})
	}
	return v
}

// blockAt returns the entry of a mapping that begins in a line, from 1: that line, and those after
// it that are indented more.
func blockAt(lines []string, line int) string {
	if line < 1 || line > len(lines) {
		return ""
	}
	depth := func(s string) int { return len(s) - len(strings.TrimLeft(s, " ")) }
	end, first := line, depth(lines[line-1])
	for i := line; i < len(lines); i++ {
		switch text := strings.TrimSpace(lines[i]); {
		case text == "":
		case depth(lines[i]) <= first:
			return strings.Join(cutIndent(lines[line-1:end], first), "\n")
		default:
			end = i + 1
		}
	}
	return strings.Join(cutIndent(lines[line-1:end], first), "\n")
}

// cutIndent takes n blanks from the beginning of lines, as far as they have them.
func cutIndent(lines []string, n int) []string {
	all := make([]string, len(lines))
	for i, s := range lines {
		all[i] = strings.TrimRight(s[min(n, len(s)):], " \r")
	}
	return all
}

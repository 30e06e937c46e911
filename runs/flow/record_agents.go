package flow

import (
	"slices"

	"github.com/claybot/claybot/flows"
)

// itemsOf is what the agents of a list put out, by what the node made of it.
func itemsOf(items []any, out Result, onError string) []any {
	failed, _ := out.More["failed"].([]any)
	for _, at := range failed { // in order
		if n, ok := at.(float64); ok && int(n) <= len(items) {
			items = slices.Insert(items, int(n), any(map[string]any{"fails": "failed"}))
		}
	}
	if onError == flows.OnErrorCollect {
		for i := range items {
			items[i] = collected(items[i])
		}
	}
	return items
}

// branchesOf is what the branches of a node put out. Those that were not needed are left out.
func branchesOf(out Result, spec *flows.Parallel) any {
	values, ok := numbered(out.Output, nil).(map[string]any)
	if !ok {
		return map[string]any{"fails": "failed"}
	}
	failed, _ := out.More["failed"].([]any)
	for _, name := range failed {
		if name, ok := name.(string); ok && values[name] == nil {
			values[name] = map[string]any{"fails": "failed"}
		}
	}
	if spec.OnError == flows.OnErrorCollect {
		for name, v := range values {
			values[name] = collected(v)
		}
	}
	return values
}

// collected is what was put out of an entry with ok, output and error.
func collected(v any) any {
	m, _ := v.(map[string]any)
	if ok, _ := m["ok"].(bool); ok {
		return m["output"]
	}
	return map[string]any{"fails": "failed"}
}

// unfit is what a node puts out that does not have the fields that it should.
func unfit(n *flows.Node) any {
	const text = "no such object"
	p, ok := n.Spec.(*flows.Parallel)
	if !ok {
		return text
	}
	all := make(map[string]any)
	for _, b := range p.Branches {
		all[b.Name] = text
	}
	return all
}

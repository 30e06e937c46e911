package configs_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/flows"
)

// What of a layout cannot be used is a hint with its line; the rest is used.
func TestReadLayout(t *testing.T) {
	nodes := []string{"ask", "done"}
	good := flows.Layout{"ask": {X: -40, Y: 60}, flows.End: {X: 0, Y: 300}}
	text := string(configs.LayoutText("order", good))
	for _, test := range []struct {
		name, text string
		want       flows.Layout
		hints      []string
	}{
		{"as written", text, good, nil},
		{"empty", "", flows.Layout{}, nil},
		{"no nodes", "nodes:\n", flows.Layout{}, nil},
		{"a node that is gone", "nodes:\n  ask: {x: 1, y: 2}\n  don: {x: 3, y: 4}\n", flows.Layout{"ask": {X: 1, Y: 2}, "don": {X: 3, Y: 4}}, []string{`3: nodes.don: the workflow has no node "don"; did you mean done?`}},
		{"no position", "nodes:\n  ask: here\n  done: {x: 3, y: 4}\n", flows.Layout{"done": {X: 3, Y: 4}}, []string{`2: nodes.ask: want a position such as {x: 0, y: 60}`}},
		{"half a position", "nodes: {ask: {x: 3}}", flows.Layout{}, []string{"1: nodes.ask: want a position"}},
		{"too far", "nodes: {ask: {x: 30000, y: 1}, done: {x: 1.5, y: 1}}", flows.Layout{}, []string{"1: nodes.ask", "1: nodes.done"}},
		{"another key", "places: {ask: {x: 3, y: 4}}\n", flows.Layout{}, []string{"1: places: want nodes"}},
		{"a list", "- ask\n", flows.Layout{}, []string{"1: want lines"}},
		{"no YAML", "nodes:\n  a: [\n", flows.Layout{}, []string{"did not find"}},
		{"too large", "#" + strings.Repeat("x", flows.MaxFile), flows.Layout{}, []string{"1: the file has"}},
	} {
		got, hints := configs.ReadLayout("order.layout.yaml", []byte(test.text), nodes)
		if !maps.Equal(got, test.want) || len(hints) != len(test.hints) {
			t.Errorf("%s: %v %v, want %v", test.name, got, hints, test.want)
			continue
		}
		for i, want := range test.hints {
			if !strings.Contains(hints[i].String(), want) {
				t.Errorf("%s: %s, want %s", test.name, hints[i], want)
			}
		}
	}
	if configs.LayoutText("order", nil) != nil {
		t.Error("no position has a text")
	}
}

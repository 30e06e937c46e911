package flows_test

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/claybot/claybot/flows"
)

// A position goes where its node goes.
func TestLayoutCarried(t *testing.T) {
	at := flows.Layout{"a": {X: 1, Y: 2}, "b": {X: 3, Y: 4}, flows.End: {X: 5}}
	for _, test := range []struct {
		name string
		edit flows.Edit
		want flows.Layout
	}{
		{"renamed", flows.Edit{Path: []string{"nodes", "a"}, Rename: "c"}, flows.Layout{"c": {X: 1, Y: 2}, "b": {X: 3, Y: 4}, flows.End: {X: 5}}},
		{"removed", flows.Edit{Path: []string{"nodes", "a"}}, flows.Layout{"b": {X: 3, Y: 4}, flows.End: {X: 5}}},
		{"changed", flows.Edit{Path: []string{"nodes", "a"}, Value: json.RawMessage(`{}`)}, at},
		{"changed in YAML", flows.Edit{Path: []string{"nodes", "a"}, YAML: "{}"}, at},
		{"a key less", flows.Edit{Path: []string{"nodes", "a", "next"}}, at},
		{"elsewhere", flows.Edit{Path: []string{"triggers", "a"}}, at},
		{"without a position", flows.Edit{Path: []string{"nodes", "c"}, Rename: "d"}, at},
	} {
		if got := at.Carried([]flows.Edit{test.edit}); !maps.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
	if got := flows.Layout(nil).Carried([]flows.Edit{{Path: []string{"nodes", "a"}, Rename: "b"}}); len(got) > 0 {
		t.Errorf("none: %v", got)
	}
	if got := at.Known([]string{"b", "c"}); !maps.Equal(got, flows.Layout{"b": {X: 3, Y: 4}, flows.End: {X: 5}}) {
		t.Errorf("known: %v", got)
	}
}

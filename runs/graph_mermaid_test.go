package runs

import (
	"slices"
	"strings"
	"testing"
)

func TestMermaid(t *testing.T) {
	for _, test := range []struct {
		name  string
		shape Shape
		want  string
	}{
		{"nothing", Shape{}, "flowchart TD\n"},
		{
			"a loop and two ends",
			Shape{Start: "plan", Edges: map[string][]string{"act": {"plan", End}, "plan": {"act", "fallback"}, "fallback": {End}}},
			`flowchart TD
    plan(["plan"])
    act["act"]
    fallback["fallback"]
    END(["END"])
    plan --> act
    plan -.-> fallback
    act --> plan
    act -.-> END
    fallback --> END
`,
		},
		{
			"odd names",
			Shape{Start: "end", Edges: map[string][]string{"end": {`a "b" <c> #1`, "node0", "Graph"}, `a "b" <c> #1`: {"x\ny"}}},
			`flowchart TD
    node0(["end"])
    node1["a #quot;b#quot; #lt;c#gt; #35;1"]
    node2["node0"]
    node3["Graph"]
    node4["x y"]
    node0 --> node1
    node0 -.-> node2
    node0 -.-> node3
    node1 --> node4
`,
		},
		{
			"what the start does not reach",
			Shape{Start: "a", Edges: map[string][]string{"z": {"a"}, "b": {"b"}}},
			"flowchart TD\n    a([\"a\"])\n    b[\"b\"]\n    z[\"z\"]\n    b --> b\n    z --> a\n",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := test.shape.Mermaid(); got != test.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, test.want)
			}
		})
	}
}

// A map has no order; the drawing has one.
func TestMermaidIsTheSameEachTime(t *testing.T) {
	s := Shape{Start: "a", Edges: map[string][]string{}}
	for _, name := range strings.Fields("a b c d e f g h i j k") {
		s.Edges[name] = []string{string(name[0] + 1), "x" + name}
	}
	want := s.Mermaid()
	for range 50 {
		if got := s.Mermaid(); got != want {
			t.Fatalf("got:\n%s\nbefore:\n%s", got, want)
		}
	}
	if order := s.Order(); order[0] != "a" || len(order) != 23 || !slices.Contains(order, "l") {
		t.Errorf("order %v", order)
	}
}

package flows_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/flows"
)

const starts = `owner: slack/U1
start: first
nodes:
  first: {kind: flow, flow: refund, text: "{{ trigger.text }}", payload: {id: "{{ trigger.payload.id }}"}, timeout: 3d, tries: 2, next: second, error: second}
  second: {kind: flow, flow: audit, wait: false, payload: "{{ first.output | default(1) }}", next: END}
`

// Faults of nodes that start flows are found, at their lines, with the flow that was meant.
func TestFaultsOfStarts(t *testing.T) {
	world := small
	world.Flows = []string{"audit", "refund"}
	check := func(text string) (all []string) {
		f, faults := configs.ReadFlow("flow.yaml", []byte(text))
		if len(faults) == 0 {
			faults = flows.Check(&f, world)
		}
		for _, x := range faults {
			all = append(all, x.String())
		}
		return all
	}
	if got := check(starts); len(got) > 0 {
		t.Fatalf("the good flow: %q", got)
	}
	for _, tt := range []struct{ from, to, want string }{
		{"flow: refund", "flow: refnd", `4: nodes.first.flow: there is no flow "refnd"; did you mean refund?`},
		{"flow: refund, ", "", "4: nodes.first.flow: is missing"},
		{"flow: refund", `flow: "{{ trigger.text }}"`, "4: nodes.first.flow: is no template"},
		{"trigger.payload.id", "trigger.paylod.id", "4: nodes.first.payload.id: trigger has no field"},
		{"trigger.text", "second.output", "4: nodes.first.text: second may not have run"},
		{"wait: false", "wait: later", "5: nodes.second.wait"},
		{"wait: false", "wait: false, tries: 2", "5: nodes.second.tries: belongs to a node that waits"},
		{"wait: false", "wait: false, timeout: 1h", "5: nodes.second.timeout: belongs to a node that waits"},
		{"timeout: 3d", "timeout: 31d", "4: nodes.first.timeout"},
		{"tries: 2", "tries: 20", "4: nodes.first.tries"},
	} {
		if !strings.Contains(starts, tt.from) {
			t.Fatal(tt.from)
		}
		got := check(strings.Replace(starts, tt.from, tt.to, 1))
		if !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, tt.want) }) {
			t.Errorf("%s → %s: %q, want %q", tt.from, tt.to, got, tt.want)
		}
	}
}

// Flows that would start themselves, and chains that are too long, are found before they run.
func TestCheckNested(t *testing.T) {
	chain := func(names ...string) map[string]*flows.Flow {
		all := make(map[string]*flows.Flow)
		for i, name := range names {
			f := all[name]
			if f == nil {
				f = &flows.Flow{Name: name}
				all[name] = f
			}
			if i+1 < len(names) {
				f.Nodes = append(f.Nodes, flows.Node{Name: "n", Kind: flows.KindFlow, Spec: &flows.Child{Flow: names[i+1]}, Lines: flows.Lines{"flow": 7}})
			}
		}
		return all
	}
	wide := chain("a", "b", "c")
	for range 60 { // as many ways as there are pairs of these
		wide["a"].Nodes = append(wide["a"].Nodes, wide["a"].Nodes[0])
		wide["b"].Nodes = append(wide["b"].Nodes, wide["b"].Nodes[0])
	}
	for _, tt := range []struct {
		name string
		all  map[string]*flows.Flow
		want []string
	}{
		{"five below the first", chain("a", "b", "c", "d", "e", "f"), nil},
		{"six below", chain("a", "b", "c", "d", "e", "f", "g"), []string{"a 7: nodes.n.flow: more than 5 flows would be nested: a → b → c → d → e → f → g"}},
		{"itself", chain("a", "a"), []string{"a 7: nodes.n.flow: the flow would start itself: a → a"}},
		{"a cycle", chain("x", "a", "b", "a"), []string{
			"a 7: nodes.n.flow: the flow would start itself: a → b → a", "b 7: nodes.n.flow: the flow would start itself: b → a → b",
		}},
		{"one that is not there", map[string]*flows.Flow{"a": chain("a", "b")["a"]}, nil},
		{"wide", wide, nil},
	} {
		var got []string
		for _, name := range []string{"a", "b", "c", "x"} {
			for _, f := range flows.CheckNested(tt.all)[name] {
				got = append(got, name+" "+f.String())
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

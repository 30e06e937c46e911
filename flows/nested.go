package flows

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// child checks a node that starts another flow.
func (c *checker) child(n *Node, s *Child) {
	key := "nodes." + n.Name
	if s.Flow == "" {
		c.add(n.Lines[""], key+".flow", "is missing")
	} else if c.world.Flows != nil && !slices.Contains(c.world.Flows, s.Flow) {
		c.unknown(n.Lines["flow"], key+".flow", s.Flow, c.world.Flows, "there is no flow %.64q", s.Flow)
	}
	if s.Waits() {
		return
	}
	for _, name := range []string{"timeout", "tries"} {
		if line := n.Lines[name]; line > 0 {
			c.add(line, key+"."+name, "belongs to a node that waits for the end of the flow")
		}
	}
}

// Waits reports whether the node ends with the child.
func (s *Child) Waits() bool { return s.Wait == nil || *s.Wait }

// Starts are the keys of a node that name other flows.
func (n *Node) Starts() (all []Edge) {
	if s, ok := n.Spec.(*Child); ok && s.Flow != "" {
		all = append(all, Edge{"flow", s.Flow, n.Lines["flow"]})
	}
	if p, ok := n.Spec.(*Parallel); ok {
		for i := range p.Branches {
			for _, e := range p.Branches[i].Starts() {
				e.Key = "branches." + p.Branches[i].Name + "." + e.Key
				all = append(all, e)
			}
		}
	}
	return all
}

// CheckNested returns the faults of flows that start each other, by the names of the flows: those that
// would start themselves, and chains that are longer than MaxDepth.
func CheckNested(all map[string]*Flow) map[string][]Fault {
	faults := make(map[string][]Fault)
	check := func(text string, way func(from, to string) []string) {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			for i := range all[name].Nodes {
				n := &all[name].Nodes[i]
				for _, e := range n.Starts() {
					if found := way(name, e.To); found != nil {
						faults[name] = append(faults[name], Fault{
							Line: max(e.Line, 1), Key: "nodes." + n.Name + "." + e.Key, Text: text + strings.Join(append([]string{name}, found...), " → "),
						})
					}
				}
			}
		}
	}
	check("the flow would start itself: ", func(from, to string) []string { return shortest(all, to, from) })
	if len(faults) == 0 {
		dead := make(map[string]int) // from where no chain of this length begins
		check(fmt.Sprintf("more than %d flows would be nested: ", MaxDepth), func(_, to string) []string { return chain(all, to, MaxDepth+1, dead) })
	}
	return faults
}

// startsOf are the flows that a flow starts, each once.
func startsOf(f *Flow) (names []string) {
	if f == nil {
		return nil
	}
	for i := range f.Nodes {
		for _, e := range f.Nodes[i].Starts() {
			if !slices.Contains(names, e.To) {
				names = append(names, e.To)
			}
		}
	}
	return names
}

// shortest is the shortest way by which a flow leads to another one, both included; nil for none.
func shortest(all map[string]*Flow, from, to string) []string {
	ways := [][]string{{from}}
	seen := map[string]bool{from: true}
	for len(ways) > 0 {
		way := ways[0]
		ways = ways[1:]
		last := way[len(way)-1]
		if last == to {
			return way
		}
		for _, next := range startsOf(all[last]) {
			if !seen[next] {
				seen[next] = true
				ways = append(ways, append(slices.Clone(way), next))
			}
		}
	}
	return nil
}

// chain is a chain of n flows that begins with one, where none starts itself; nil for none.
func chain(all map[string]*Flow, from string, n int, dead map[string]int) []string {
	if n == 1 {
		return []string{from}
	}
	if most, known := dead[from]; known && most <= n {
		return nil
	}
	for _, next := range startsOf(all[from]) {
		if rest := chain(all, next, n-1, dead); rest != nil {
			return append([]string{from}, rest...)
		}
	}
	dead[from] = n
	return nil
}

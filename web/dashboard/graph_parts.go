package dashboard

import (
	"slices"

	"github.com/claybot/claybot/runs"
)

// partOf is the name in a drawing of a part of a node. No node has such a name.
func partOf(node, part string) string { return node + "." + part }

// unfold puts what works within a node, such as its branches, between it and the node that follows: each
// part as a node of its own, which has seen what its node has. It returns the nodes of the parts.
func (p *pen) unfold(shape *runs.Shape, parts map[string][]string) (of map[string]string) {
	of = make(map[string]string)
	p.parts = make(map[string]bool)
	seen := runs.GraphView{Current: p.seen.Current, Nodes: slices.Clone(p.seen.Nodes), Edges: slices.Clone(p.seen.Edges)}
	for node, names := range parts {
		if len(names) == 0 || len(shape.Edges[node]) == 0 {
			continue
		}
		next, rest := shape.Edges[node][0], shape.Edges[node][1:]
		edges := make([]string, 0, len(names)+len(rest))
		times := p.times(arc{from: namedNode(node), to: namedNode(next)})
		state := stateOf(p.seen, node).State
		for _, name := range names {
			part := partOf(node, name)
			of[part] = node
			p.parts[part], shape.Edges[part] = true, []string{next}
			edges = append(edges, part)
			if grip := p.grips[node][next]; grip != "" {
				p.grips[part] = map[string]string{next: grip}
			}
			if state != "" {
				seen.Nodes = append(seen.Nodes, runs.NodeSeen{Node: part, State: state})
				seen.Edges = append(seen.Edges, runs.EdgeSeen{From: node, To: part, Times: 1})
			}
			if times > 0 {
				seen.Edges = append(seen.Edges, runs.EdgeSeen{From: part, To: next, Times: times})
			}
		}
		shape.Edges[node] = append(edges, rest...)
	}
	p.seen = seen
	return of
}

func namedNode(name string) *node { return &node{name: name} }

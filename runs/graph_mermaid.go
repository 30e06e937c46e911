package runs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/claybot/claybot/lazyregexp"
)

// Mermaid draws the graph as a flowchart in the language of mermaid, ending with
// a line break. The usual way out of a node is a solid line, the other ways are
// dotted. The same shape always gives the same text: the start comes first, then
// what it leads to, edges in their order.
func (s Shape) Mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	order := s.Order()
	ids := make(map[string]string, len(order))
	for i, name := range order {
		ids[name] = name
		if !plainName.MatchString(name) || reservedName.MatchString(name) {
			ids[name] = fmt.Sprintf("node%d", i)
		}
	}
	for _, name := range order {
		form := "    %s[\"%s\"]\n"
		if name == s.Start || name == End {
			form = "    %s([\"%s\"])\n"
		}
		fmt.Fprintf(&b, form, ids[name], mermaidText(name))
	}
	for _, from := range order {
		for i, to := range s.Edges[from] {
			line := "-->"
			if i > 0 {
				line = "-.->"
			}
			fmt.Fprintf(&b, "    %s %s %s\n", ids[from], line, ids[to])
		}
	}
	return b.String()
}

// Order lists the nodes of the graph, and End: the start first, then what can be
// reached from it, the nearest first and by the order of the edges, then the
// rest by name.
func (s Shape) Order() []string {
	var order []string
	seen := make(map[string]bool)
	visit := func(start string) {
		for queue := []string{start}; len(queue) > 0; queue = queue[1:] {
			if seen[queue[0]] {
				continue
			}
			seen[queue[0]] = true
			order = append(order, queue[0])
			queue = append(queue, s.Edges[queue[0]]...)
		}
	}
	if s.Start != "" {
		visit(s.Start)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Edges)) {
		visit(name)
	}
	if i := slices.Index(order, End); i >= 0 { // the end is last
		order = append(slices.Delete(order, i, i+1), End)
	}
	return order
}

var (
	plainName = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_]*$`)
	// reservedName are words of mermaid, and names that this file makes itself.
	reservedName = lazyregexp.New(`^((?i:call|class|classDef|click|default|direction|flowchart|graph|href|interpolate|linkStyle|style|subgraph)|[Ee][Nn]d|node[0-9]+)$`)
)

// mermaidText is a name as the text of a node.
func mermaidText(name string) string {
	name = strings.Join(strings.Fields(name), " ")
	return strings.NewReplacer("#", "#35;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "`", "#96;").Replace(name)
}

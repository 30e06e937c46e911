package flows

import "slices"

// A Form is a node as a form shows it, from the text of its file, whatever faults that has.
type Form struct {
	Name, Kind string
	Line       int
	Fields     []FormField // first the keys of the kind, then others that the file has
	Edges      []FormEdge
	Parts      []string // see Node.Parts
}

// A FormField is a key of a node.
type FormField struct {
	Key   string
	Kind  string   // of a Field, see below
	Words []string // the only values of a word, or known ones of a line
	Value string   // empty: not set
}

// The kinds of a FormField.
const (
	FieldOfLine   = "line"
	FieldOfText   = "text" // of several lines
	FieldOfNode   = "node" // a node, or END
	FieldOfOne    = "one"  // one of Words
	FieldOfNumber = "number"
	FieldOfLines  = "lines" // a list, a line for each entry
	FieldOfYAML   = "yaml"
)

// A FormEdge is an edge of a node with the keys below the node that name it.
type FormEdge struct {
	Path []string
	To   string
}

// Nodes are the nodes that follow, each once.
func (f Form) Nodes() (all []string) {
	for _, e := range f.Edges {
		if !slices.Contains(all, e.To) {
			all = append(all, e.To)
		}
	}
	return all
}

// Value is the value of a field; empty where there is none.
func (f Form) Value(key string) string {
	for _, x := range f.Fields {
		if x.Key == key {
			return x.Value
		}
	}
	return ""
}

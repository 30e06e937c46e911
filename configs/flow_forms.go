package configs

import (
	"bytes"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/claybot/claybot/flows"
)

// edgeKeys are the keys of nodes that name another one.
var edgeKeys = []string{"next", "error", "denied", "expired", "else"}

// FlowForms returns the nodes of the text of a flow as forms, with the node that it begins with. It
// reads what is there, also where the text has faults; a text that is no YAML is an error.
func FlowForms(text []byte) (start string, all []flows.Form, err error) {
	root, err := parse("flow", text)
	if err != nil || root == nil {
		return "", nil, err
	}
	if i := entryOf(root, "start"); i >= 0 {
		start = root.Content[i+1].Value
	}
	i := entryOf(root, "nodes")
	if i < 0 || root.Content[i+1].Kind != yaml.MappingNode {
		return start, nil, nil
	}
	nodes := root.Content[i+1].Content
	for i := 0; i+1 < len(nodes); i += 2 {
		all = append(all, formOfNode(nodes[i], nodes[i+1]))
	}
	return start, all, nil
}

// formOfNode is the form of one node.
func formOfNode(key, n *yaml.Node) flows.Form {
	f := flows.Form{Name: key.Value, Line: key.Line}
	if n.Kind != yaml.MappingNode {
		return f
	}
	if i := entryOf(n, "kind"); i >= 0 {
		f.Kind = n.Content[i+1].Value
	}
	if f.Kind == flows.KindEach {
		f.Parts = []string{flows.ItemPart}
	}
	keys := keysOf(reflect.TypeFor[flows.Common]())
	if spec := flows.NewSpec(f.Kind); spec != nil {
		keys = slices.Concat(keysOf(reflect.TypeOf(spec).Elem()), keys)
	}
	known := make(map[string]bool)
	for _, k := range keys {
		known[k.name] = true
		if k.name == "kind" {
			continue
		}
		field := flows.FormField{Key: k.name}
		field.Kind, field.Words = k.flowField()
		if i := entryOf(n, k.name); i >= 0 {
			field.Kind, field.Value = shownField(field.Kind, n.Content[i+1])
		}
		f.Fields = append(f.Fields, field)
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, v := n.Content[i].Value, n.Content[i+1]
		if !known[name] {
			kind, value := shownField(flows.FieldOfLine, v)
			f.Fields = append(f.Fields, flows.FormField{Key: name, Kind: kind, Value: value})
		}
		switch {
		case slices.Contains(edgeKeys, name) && v.Kind == yaml.ScalarNode && v.Value != "":
			f.Edges = append(f.Edges, flows.FormEdge{Path: []string{name}, To: v.Value})
		case name == "cases" && v.Kind == yaml.MappingNode:
			for j := 0; j+1 < len(v.Content); j += 2 {
				f.Edges = append(f.Edges, flows.FormEdge{Path: []string{name, v.Content[j].Value}, To: v.Content[j+1].Value})
			}
		case name == "branches" && f.Kind == flows.KindParallel && v.Kind == yaml.MappingNode:
			for j := 0; j+1 < len(v.Content); j += 2 {
				f.Parts = append(f.Parts, v.Content[j].Value)
			}
		}
	}
	return f
}

// flowField is how a form shows a key of a node.
func (k key) flowField() (kind string, words []string) {
	switch form := k.form(); {
	case slices.Contains(edgeKeys, k.name):
		return flows.FieldOfNode, nil
	case form.Kind == FormTruth, form.Kind == FormWord:
		return flows.FieldOfOne, form.Words
	case k.typ == reflect.TypeFor[*bool]():
		return flows.FieldOfOne, []string{"true", "false"}
	case form.Kind == FormNumber:
		return flows.FieldOfNumber, nil
	case k.kind == "texts":
		return flows.FieldOfLines, nil
	case strings.HasPrefix(k.kind, "flow ") && k.kind != "flow time":
		return flows.FieldOfYAML, nil
	case slices.Contains([]string{"prompt", "system", "text", "value", "note"}, k.name):
		return flows.FieldOfText, nil
	}
	return flows.FieldOfLine, nil
}

// shownField is a value as a form shows it, and as what.
func shownField(kind string, n *yaml.Node) (as, value string) {
	if n.Kind == yaml.ScalarNode && kind != flows.FieldOfYAML {
		if strings.Contains(n.Value, "\n") && kind == flows.FieldOfLine {
			kind = flows.FieldOfText
		}
		return kind, n.Value
	}
	if n.Kind == yaml.SequenceNode && kind == flows.FieldOfLines {
		var lines []string
		for _, c := range n.Content {
			if c.Kind != yaml.ScalarNode || strings.Contains(c.Value, "\n") {
				lines = nil
				break
			}
			lines = append(lines, c.Value)
		}
		if lines != nil || len(n.Content) == 0 {
			return kind, strings.Join(lines, "\n")
		}
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(bareNode(n)); err != nil {
		return flows.FieldOfYAML, n.Value
	}
	return flows.FieldOfYAML, strings.TrimSpace(b.String())
}

// yamlNode is a value that is written as a file has it.
func yamlNode(text string) (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return nil, syntaxError("the value", []byte(text), err)
	}
	if len(doc.Content) == 0 {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
	}
	return bareNode(doc.Content[0]), nil
}

package configs

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/flows"
)

// flowPath stands for the group of a flow in a path, so that no key of it is taken for one of the
// configuration.
const flowPath = "flow"

// ReadFlow reads the text of the file of a flow. It returns every fault that can be seen without the
// rest of the installation; see flows.Check for the others. A flow with a fault is not complete.
func ReadFlow(path string, text []byte) (flows.Flow, []flows.Fault) {
	name := strings.TrimSuffix(filepath.Base(path), ".yaml")
	f := flows.Flow{Name: name, File: path, Text: string(text), Hash: flows.HashOf(string(text))}
	if len(text) > flows.MaxFile {
		return f, []flows.Fault{{Line: 1, Text: fmt.Sprintf("the file has %d bytes; the limit is %d", len(text), flows.MaxFile)}}
	}
	root, err := parse(path, text)
	if err != nil {
		return f, []flows.Fault{textFault(err)}
	}
	if root == nil {
		return f, []flows.Fault{{Line: 1, Text: "the file is empty"}}
	}
	r := new(reader)
	r.group(place{file: path, path: flowPath}, root, &f)
	f.Lines = linesOf(root)
	return f, r.flowFaults()
}

// textFault is why a text is no YAML as a fault.
func textFault(err error) flows.Fault {
	if e := (*TextError)(nil); errors.As(err, &e) {
		return flows.Fault{Line: max(e.Line, 1), Text: e.Why}
	}
	return flows.Fault{Line: 1, Text: err.Error()}
}

// flowFaults are the warnings as faults: nothing of a flow is ignored.
func (r *reader) flowFaults() (all []flows.Fault) {
	for _, w := range r.warnings {
		text, _ := ignored(w)
		all = append(all, flows.Fault{Line: w.Line, Key: w.Key, Text: text, Near: lastName(w.Near)})
	}
	return all
}

// linesOf returns where the keys of a mapping stand.
func linesOf(n *yaml.Node) flows.Lines {
	lines := make(flows.Lines)
	for i := 0; i+1 < len(n.Content); i += 2 {
		lines[n.Content[i].Value] = n.Content[i].Line
	}
	return lines
}

// flowKind has the kinds of the keys of flows.
func flowKind(k key) setter {
	switch k.kind {
	case "flow time":
		return one(flowTime)
	case "flow triggers":
		return into(setFlowTriggers)
	case "flow nodes":
		return into(setFlowNodes)
	case "flow branches":
		return into(setFlowBranches)
	case "flow fields":
		return into(setFlowFields)
	case "flow cases":
		return into(setFlowCases)
	case "flow approve":
		return into(func(r *reader, at place, n *yaml.Node, a **flows.Approve) {
			*a = new(flows.Approve)
			r.group(at, n, *a)
		})
	case "flow concurrency":
		return into(func(r *reader, at place, n *yaml.Node, c *flows.Concurrency) {
			if n.Kind == yaml.MappingNode {
				c.Lines = linesOf(n)
			}
			r.group(at, n, c)
		})
	case "flow limits":
		return into(func(r *reader, at place, n *yaml.Node, l *flows.Limits) { r.group(at, n, l) })
	case "flow subagents":
		return into(func(r *reader, at place, n *yaml.Node, all *[]claybot.Helper) {
			var list []Helper
			setHelpers(r, at, n, &list)
			for _, h := range list {
				*all = append(*all, claybot.Helper(h))
			}
		})
	case "flow value":
		return into(func(r *reader, at place, n *yaml.Node, v *any) { *v = r.flowValue(at, n) })
	case "flow values":
		return into(func(r *reader, at place, n *yaml.Node, v *map[string]any) {
			m, ok := r.flowValue(at, n).(map[string]any)
			if !ok {
				r.warn(at, "want arguments by their names, found %s; ignored", kindOf(n))
			}
			*v = m
		})
	}
	return nil
}

func flowTime(v string) (time.Duration, error) {
	d, err := parseDuration(v)
	if err != nil || d <= 0 || d > flows.MaxWait {
		return 0, fmt.Errorf("%s is not a duration such as 90s, 30m or 7d, up to 30d", quote(v))
	}
	return d, nil
}

// entriesByName yields the entries of a group whose keys are names that the file gives.
func (r *reader) entriesByName(at place, n *yaml.Node, what string, add func(m member)) {
	if n.Kind != yaml.MappingNode {
		r.warn(at, "want %s by their names, found %s; ignored", what, kindOf(n))
		return
	}
	for m := range r.members(at, n) {
		if !flows.IsName(m.name) {
			r.warn(m.at, "%s is not a name of letters, digits and _ that begins with a letter; ignored", quote(m.name))
			continue
		}
		add(m)
	}
}

func setFlowTriggers(r *reader, at place, n *yaml.Node, all *[]flows.Trigger) {
	r.entriesByName(at, n, "triggers", func(m member) {
		t := flows.Trigger{Name: m.name}
		if m.value.Kind == yaml.MappingNode {
			t.Lines = linesOf(m.value)
		}
		r.group(m.at, m.value, &t)
		if t.Lines == nil {
			t.Lines = make(flows.Lines)
		}
		t.Lines[""] = m.at.line
		*all = append(*all, t)
	})
}

func setFlowNodes(r *reader, at place, n *yaml.Node, all *[]flows.Node) {
	r.entriesByName(at, n, "nodes", func(m member) {
		if node, ok := r.flowNode(m); ok {
			*all = append(*all, node)
		}
	})
}

// setFlowBranches reads the branches of a node: nodes of some kinds.
func setFlowBranches(r *reader, at place, n *yaml.Node, all *[]flows.Node) {
	r.entriesByName(at, n, "branches", func(m member) {
		node, ok := r.flowNode(m)
		if why := flows.BranchKind(node.Kind); flows.NewSpec(node.Kind) != nil && why != "" {
			r.warn(m.at.sub("kind", node.Lines["kind"]), "%s; ignored", why)
		} else if ok {
			*all = append(*all, node)
		}
	})
}

// flowNode reads a node by its kind.
func (r *reader) flowNode(m member) (flows.Node, bool) {
	n := flows.Node{Name: m.name, Lines: make(flows.Lines)}
	if m.value.Kind != yaml.MappingNode {
		r.warn(m.at, "want the keys of a node, such as kind: agent, found %s; ignored", kindOf(m.value))
		return n, false
	}
	n.Lines = linesOf(m.value)
	n.Lines[""] = m.at.line
	for i := 0; i+1 < len(m.value.Content); i += 2 {
		if m.value.Content[i].Value == "kind" {
			n.Kind = strings.TrimSpace(m.value.Content[i+1].Value)
		}
	}
	switch {
	case n.Kind == "":
		r.warn(m.at, "the node has no kind; there are %s; ignored", strings.Join(flows.Kinds, ", "))
		return n, false
	case flows.NewSpec(n.Kind) == nil:
		kind := m.at.sub("kind", n.Lines["kind"])
		r.warn(kind, "there is no kind %s; there are %s; ignored", quote(n.Kind), strings.Join(flows.Kinds, ", "))
		r.warnings[len(r.warnings)-1].Near = Nearest(n.Kind, flows.Kinds)
		return n, false
	}
	before := len(r.warnings)
	spec := flows.NewSpec(n.Kind)
	// One group of the keys that all nodes have, and those of the kind.
	both := reflect.New(reflect.StructOf([]reflect.StructField{
		{Name: "Common", Type: reflect.TypeFor[flows.Common](), Tag: `key:",inline"`},
		{Name: "Spec", Type: reflect.TypeOf(spec).Elem(), Tag: `key:",inline"`},
	}))
	both.Elem().Field(1).Set(reflect.ValueOf(spec).Elem())
	r.group(m.at, m.value, both.Interface())
	n.Common = both.Elem().Field(0).Interface().(flows.Common)
	reflect.ValueOf(spec).Elem().Set(both.Elem().Field(1))
	n.Spec = spec
	return n, len(r.warnings) == before
}

// setFlowFields reads what an agent has to put out: a type, a regular expression between slashes, or
// a list of words for each field.
func setFlowFields(r *reader, at place, n *yaml.Node, all *[]flows.Field) {
	r.entriesByName(at, n, "fields", func(m member) {
		f := flows.Field{Name: m.name, Line: m.at.line}
		if m.value.Kind == yaml.SequenceNode {
			items, _ := r.list(m.at, m.value)
			f.Type = flows.FieldWord
			for _, it := range items {
				f.Of = append(f.Of, it.text)
			}
			*all = append(*all, f)
			return
		}
		v, ok := r.scalar(m.at, m.value)
		if !ok {
			return
		}
		if form, ok := strings.CutPrefix(v, "/"); ok && strings.HasSuffix(form, "/") && len(form) > 1 {
			f.Type, f.Form = flows.FieldText, strings.TrimSuffix(form, "/")
		} else if f.Type = v; !slices.Contains(flows.FieldTypes, v) {
			r.warn(m.at, "%s is not a type; want one of %s, a list of words, or /a regular expression/; ignored", quote(v), strings.Join(flows.FieldTypes, ", "))
			r.warnings[len(r.warnings)-1].Near = Nearest(v, flows.FieldTypes)
			return
		}
		*all = append(*all, f)
	})
}

func setFlowCases(r *reader, at place, n *yaml.Node, all *[]flows.Case) {
	if n.Kind != yaml.MappingNode {
		r.warn(at, "want a node for each value, found %s; ignored", kindOf(n))
		return
	}
	for m := range r.members(at, n) {
		if v, ok := r.scalar(m.at, m.value); ok {
			*all = append(*all, flows.Case{Is: m.name, Next: v, Line: m.at.line})
		}
	}
}

// maxFlowDepth is how deep a value of a flow may be nested.
const maxFlowDepth = 20

// flowValue reads a value as JSON would have it.
func (r *reader) flowValue(at place, n *yaml.Node) any {
	if strings.Count(at.key, ".") > maxFlowDepth {
		r.warn(at, "is nested too deeply; ignored")
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		all := make(map[string]any)
		for m := range r.members(at, n) {
			all[m.name] = r.flowValue(m.at, m.value)
		}
		return all
	case yaml.SequenceNode:
		all := []any{}
		for i, e := range n.Content {
			all = append(all, r.flowValue(place{file: at.file, line: e.Line, key: fmt.Sprintf("%s[%d]", at.key, i), path: at.path}, e))
		}
		return all
	case yaml.ScalarNode:
		var v any
		if err := n.Decode(&v); err != nil {
			r.warn(at, "%s cannot be read; ignored", quote(n.Value))
			return nil
		}
		if _, date := v.(time.Time); date { // without quotes
			v = n.Value
		}
		return v
	default:
		r.warn(at, unreadAlias+", write the value out; ignored")
		return nil
	}
}

// ReadCases reads the text of a file with test cases of a flow, as JSON: a list of objects.
func ReadCases(path string, text []byte) (json.RawMessage, error) {
	if len(text) > flows.MaxFile {
		return nil, fmt.Errorf("%s: the file has %d bytes; the limit is %d", path, len(text), flows.MaxFile)
	}
	var doc yaml.Node
	if line := badText(text); line != 0 {
		return nil, &TextError{path, line, "not a text in UTF-8"}
	}
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, syntaxError(path, text, err)
	}
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.SequenceNode {
		return nil, &TextError{path, 1, "want a list of cases, each with a name"}
	}
	r := new(reader)
	v := r.flowValue(place{file: path, path: flowPath, key: "cases"}, doc.Content[0])
	if len(r.warnings) > 0 {
		return nil, errors.New(r.warnings[0].String())
	}
	return json.Marshal(v)
}

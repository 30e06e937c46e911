package flows

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// An InputError is why a payload does not fit the input of a flow. No run begins with it.
type InputError struct {
	Flow  string
	Field string // such as payload.order
	Text  string // what is wrong with it, without its value
}

func (e *InputError) Error() string {
	return fmt.Sprintf("the input of the flow %s: %s %s", e.Flow, e.Field, e.Text)
}

// payloadKey is the payload in the Field of an InputError.
const payloadKey = "payload"

// Refuses returns what of a payload does not fit the input of the flow, the first field in the order of the
// file; nil where all fits, and for a flow without an input. Fields that the input does not name fit.
func (f *Flow) Refuses(payload json.RawMessage) *InputError {
	if len(f.Input) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(payload))
	d.UseNumber()
	var object map[string]any
	if err := d.Decode(&object); err != nil || object == nil {
		names := make([]string, len(f.Input))
		for i, field := range f.Input {
			names[i] = field.Name
		}
		return &InputError{f.Name, payloadKey, "must be a JSON object with " + strings.Join(names, ", ")}
	}
	for _, field := range f.Input {
		value, given := object[field.Name]
		switch {
		case !given:
			return &InputError{f.Name, payloadKey + "." + field.Name, "is missing; want " + field.Wants()}
		case !field.Fits(value):
			return &InputError{f.Name, payloadKey + "." + field.Name, "does not fit; want " + field.Wants()}
		}
	}
	return nil
}

// Wants says in words what fits into the field.
func (f Field) Wants() string {
	switch {
	case f.Type == FieldWord:
		return "one of " + strings.Join(f.Of, ", ")
	case f.Form != "":
		return "a text that matches the regular expression " + f.Form
	case f.Type == FieldDate:
		return "a date such as 2026-01-31"
	}
	return f.Type
}

// Fits reports whether a value fits into the field. Numbers are of the type json.Number.
func (f Field) Fits(value any) bool {
	switch v := value.(type) {
	case string:
		switch f.Type {
		case FieldWord:
			return slices.Contains(f.Of, v)
		case FieldDate:
			_, err := time.Parse(time.DateOnly, v)
			return err == nil
		case FieldText:
			re, err := regexp.Compile(f.Form)
			return err == nil && re.MatchString(v)
		}
	case json.Number:
		_, err := v.Int64()
		return f.Type == FieldNumber || f.Type == FieldInteger && err == nil
	case bool:
		return f.Type == FieldBoolean
	case []any:
		return f.Type == FieldList
	case map[string]any:
		return f.Type == FieldObject
	}
	return false
}

// CheckInputs returns the faults of nodes that start another flow without what its input names, by the names
// of the flows. What templates make of the values is not known before a run.
func CheckInputs(all map[string]*Flow) map[string][]Fault {
	faults := make(map[string][]Fault)
	check := func(in string, key string, n *Node) {
		s, ok := n.Spec.(*Child)
		if !ok || all[s.Flow] == nil {
			return
		}
		given, object := s.Payload.(map[string]any)
		if s.Payload != nil && !object {
			return // a template
		}
		for _, field := range all[s.Flow].Input {
			if _, ok := given[field.Name]; !ok {
				line := max(n.Lines["payload"], n.Lines[""], 1)
				faults[in] = append(faults[in], Fault{Line: line, Key: key + ".payload." + field.Name, Text: fmt.Sprintf("is missing: the input of the flow %s needs it", s.Flow)})
			}
		}
	}
	for name, f := range all {
		for i := range f.Nodes {
			n := &f.Nodes[i]
			check(name, "nodes."+n.Name, n)
			if p, ok := n.Spec.(*Parallel); ok {
				for j := range p.Branches {
					check(name, "nodes."+n.Name+".branches."+p.Branches[j].Name, &p.Branches[j])
				}
			}
		}
	}
	return faults
}

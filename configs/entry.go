package configs

import (
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// An EntryKind is a kind of part of which a file has any number, each under a name or in a list.
type EntryKind struct {
	Name   string // such as telegram, mcp or profile
	Group  string // in which its entries stand
	List   bool   // Group is a list of entries, and names none of them
	Local  bool   // only the machine of claybot may add one
	Fields []EntryField
}

// An EntryField is a key of an entry that a form can have: one with a single value, or a list of them.
type EntryField struct {
	Name string
	Form Form
	Help Help
	Main bool // most entries set it
	// Local says that only the machine of claybot may set it, as IsLocal does of a key.
	Local bool
}

// mainFields are the keys that most entries set, besides secrets.
var mainFields = []string{"match", "model", "command", "url", "scheme", "channel", "callback", "receive", "name", "provider", "file", "per", "every", "usd", "tokens"}

// listKinds are the lists whose entries are kinds. In one that is named, each entry has a name of its own.
var listKinds = []struct {
	name, group string
	of          reflect.Type
	named       bool
}{
	{"fallback", "model.fallback", reflect.TypeFor[Model](), false},
	{"search", "web.search", reflect.TypeFor[SearchEngine](), false},
	{"budget", "budgets", reflect.TypeFor[Budget](), false},
	{"relay", "relay", reflect.TypeFor[Relay](), true},
}

// EntryKinds returns all kinds with their keys, from the declarations.
func EntryKinds() (all []EntryKind) {
	for _, t := range connectorTypes {
		all = append(all, EntryKind{t.name, "connectors", false, IsLocal("connectors"), fieldsOf(reflect.TypeOf(t.plain()).Elem(), t.path)})
	}
	all = append(all,
		EntryKind{"mcp", "mcp", false, IsLocal("mcp"), fieldsOf(reflect.TypeFor[MCPServer](), "mcp.<name>")},
		EntryKind{"profile", "agents", false, IsLocal("agents"), fieldsOf(reflect.TypeFor[Profile](), profilePath)})
	for _, l := range listKinds {
		all = append(all, EntryKind{l.name, l.group, true, IsLocal(l.group), fieldsOf(l.of, l.group+"[]")})
	}
	return all
}

// EntryGroup reports whether a key is, or is in, the group of a kind that only the machine adds, or that is a list.
func EntryGroup(key string) bool {
	return slices.ContainsFunc(EntryKinds(), func(k EntryKind) bool {
		return (k.Local || k.List) && (key == k.Group || strings.HasPrefix(key, k.Group+"."))
	})
}

func fieldsOf(t reflect.Type, path string) (all []EntryField) {
	for _, k := range keysOf(t) {
		f := EntryField{Name: k.name, Form: k.form(), Main: slices.Contains(mainFields, k.name), Local: k.isLocal()}
		f.Help = HelpOf(strings.Replace(joinPath(path, k.name), "connectors.webhook.", "connectors.<name>.", 1))
		switch below, _ := k.below(); {
		case k.typ == reflect.TypeFor[[]Secret](): // a field shows what it takes
			continue
		case k.typ == reflect.TypeFor[Secret]():
			f.Form, f.Main = Form{Kind: FormSecret}, true
		case k.kind == "model": // its name alone stands for it
			f.Form = Form{Kind: FormText}
		case below != nil || f.Form.Kind == FormGroup:
			continue
		}
		all = append(all, f)
	}
	slices.SortStableFunc(all, func(a, b EntryField) int {
		switch {
		case a.Main == b.Main:
			return 0
		case a.Main:
			return -1
		}
		return 1
	})
	return all
}

// Entry returns the key and the value of a new entry with values for its fields, of which empty ones are left out; of
// a list, the key is that of the list, or relay.crm where its entries have names, see ListOf. A secret is a reference: env:NAME or file:path. faults says what is wrong, by field; "name" is that of the entry. The
// value is to be checked with the rest of the file.
func Entry(kind, name string, values map[string]string) (key, value string, faults map[string]string) {
	faults = make(map[string]string)
	i := slices.IndexFunc(EntryKinds(), func(k EntryKind) bool { return k.Name == kind })
	if i < 0 {
		faults["kind"] = "there is no such kind"
		return "", "", faults
	}
	k := EntryKinds()[i]
	form, most := instanceName, "32"
	if k.Group == "mcp" {
		form, most = mcpName, "24"
	}
	if !k.List && !form.MatchString(name) {
		faults["name"] = "a name has at most " + most + " of a-z, 0-9 and -"
	}
	if k.Group == "agents" && name == DefaultProfile {
		faults["name"] = "the profile default is always there; its page in the map has its settings"
	}
	entry := &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
	add := func(name string, n *yaml.Node) {
		entry.Content = append(entry.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, n)
	}
	if k.Group == "connectors" {
		add("type", &yaml.Node{Kind: yaml.ScalarNode, Value: kind})
	}
	for _, f := range k.Fields {
		text := strings.TrimSpace(values[f.Name])
		if text == "" {
			continue
		}
		n, fault := f.node(text)
		if fault != "" {
			faults[f.Name] = fault
			continue
		}
		add(f.Name, n)
	}
	b, err := yaml.Marshal(entry)
	if err != nil { // it is a list that cannot be written
		faults["name"] = err.Error()
	}
	if k.List {
		faults = noEntry(entry, k.Fields[0].Name, faults)
		if name = strings.TrimSpace(values["name"]); !itemOfKind(k.Group, name) {
			name = ""
		}
	}
	return strings.TrimSuffix(joinPath(k.Group, name), "."), strings.TrimRight(string(b), "\n"), faults
}

// itemOfKind reports whether a name is one that an entry of a list can have, whose key it is then in.
func itemOfKind(list, name string) bool {
	_, _, ok := ListOf(joinPath(list, name))
	return ok && len(name) <= forms["name"].most && forms["name"].looks.MatchString(name)
}

// noEntry adds, at its first field, that an entry of a list says nothing.
func noEntry(entry *yaml.Node, first string, faults map[string]string) map[string]string {
	if len(entry.Content) == 0 && len(faults) == 0 {
		faults[first] = "fill in at least one field"
	}
	return faults
}

// node returns the value that a text means, or what is wrong with it.
func (f EntryField) node(text string) (n *yaml.Node, fault string) {
	n = &yaml.Node{Kind: yaml.ScalarNode, Value: text}
	switch f.Form.Kind {
	case FormSecret:
		if !strings.HasPrefix(text, "env:") && !strings.HasPrefix(text, "file:") {
			return nil, "want env:NAME or file:path"
		}
	case FormTruth, FormWord:
		if !slices.Contains(f.Form.Words, text) {
			return nil, "want " + strings.Join(f.Form.Words, ", ")
		}
	case FormList:
		if !strings.HasPrefix(text, "[") {
			parts, ok := listParts(text)
			if !ok {
				return nil, "a quote has no end, or text after its end"
			}
			n = &yaml.Node{Kind: yaml.SequenceNode}
			for _, part := range parts {
				n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: part})
			}
			return n, ""
		}
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte(text), &doc); err != nil || len(doc.Content) != 1 || doc.Content[0].Kind != yaml.SequenceNode {
			return nil, "want a list: a, b or [a, b]"
		}
		doc.Content[0].LineComment = ""
		return doc.Content[0], ""
	case FormText:
		n.Tag = "!!str" // also null and 123
		if strings.ContainsAny(text, "\r\n") {
			n.Style = yaml.DoubleQuotedStyle
		}
	}
	return n, ""
}

// listParts returns the parts of a text between its commas. A part that begins with a quote goes to the end of the
// quote, as in YAML, with the commas in it.
func listParts(text string) (parts []string, ok bool) {
	for {
		text = strings.TrimSpace(text)
		part, rest, more := strings.Cut(text, ",")
		if strings.HasPrefix(text, `"`) || strings.HasPrefix(text, "'") {
			end := quoteEnd(text)
			if end < 0 || yaml.Unmarshal([]byte(text[:end]), &part) != nil {
				return nil, false
			}
			var after string
			if after, rest, more = strings.Cut(text[end:], ","); strings.TrimSpace(after) != "" {
				return nil, false
			}
		} else {
			part = strings.TrimSpace(part)
		}
		if parts = append(parts, part); !more {
			return parts, true
		}
		text = rest
	}
}

// quoteEnd returns where the quote ends with which a text begins; -1 if it does not end.
func quoteEnd(text string) int {
	for i := 1; i < len(text); i++ {
		switch {
		case text[0] == '"' && text[i] == '\\', strings.HasPrefix(text, "'") && strings.HasPrefix(text[i:], "''"):
			i++
		case text[i] == text[0]:
			return i + 1
		}
	}
	return -1
}

package configs

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// plainServer is an MCP server of which nothing is set.
func plainServer(name string) MCPServer {
	return MCPServer{Name: name, Process: MCPProcess{Where: MCPWorkspace, Network: NetworkNone}, Timeout: DefaultMCPTimeout}
}

// plainEntry is an entry of a group, of which nothing is set, where the file has each as a whole: those of mcp, and of
// lists whose entries have names; nil for other groups.
func plainEntry(group string) any {
	if group == "mcp" {
		s := plainServer("")
		return &s
	}
	for _, l := range listKinds {
		if l.named && l.group == group {
			return reflect.New(l.of).Interface()
		}
	}
	return nil
}

// entryFields are the keys of an entry of such a group.
func entryFields(group string) []string {
	if plain := plainEntry(group); plain != nil {
		return names(keysOf(reflect.TypeOf(plain).Elem()))
	}
	return nil
}

// entryValue is Value for an entry that the file has as a whole, or a key of it: of what it does not set, the default.
func (c Config) entryValue(key string) []Value {
	group, rest, _ := strings.Cut(key, ".")
	name, own, deep := strings.Cut(rest, ".")
	entry, at := c.entryOf(group, name)
	if plainEntry(group) == nil || entry == nil {
		return nil
	}
	path := strings.Split(own, ".")
	if !deep {
		path = nil
	}
	if there, all := (&file{root: entry}).find(path); there == len(path) {
		n := entry
		if deep {
			n = all[there-1].value
		}
		v := c.writtenValue(strings.TrimSuffix(joinPath(at, own), "."), "", n)
		v.Key = key
		if !v.Refused {
			v.Value = flow(n, hides(key))
		}
		return []Value{v}
	}
	if text, ok := plainValue(group, path); ok {
		return []Value{{Key: key, Value: text, Origin: OriginDefault}}
	}
	return nil
}

// entryOf returns an entry that the file has as a whole, and its key in warnings, such as relay[1]; nil for none.
func (c Config) entryOf(group, name string) (n *yaml.Node, key string) {
	f := &file{root: c.Source.root}
	if list := f.items(group); list != nil {
		if i := slices.IndexFunc(list, func(n *yaml.Node) bool { return itemName(n) == name }); i >= 0 {
			return list[i], fmt.Sprintf("%s[%d]", group, i)
		}
		return nil, ""
	}
	if there, all := f.find([]string{group, name}); there == 2 {
		return all[1].value, joinPath(group, name)
	}
	return nil, ""
}

// plainValue returns the value of a key of an entry, given by its names, that is not set.
func plainValue(group string, path []string) (text string, ok bool) {
	in := plainEntry(group)
	if group == "mcp" && len(path) == 2 {
		switch own := strings.Join(path, "."); {
		case own == "tools.allow" || own == "tools.deny":
			return "", true
		case path[0] == "oauth":
			in, path = &MCPOAuth{Grant: GrantCode}, path[1:]
		}
	}
	all := keysOf(reflect.TypeOf(in).Elem())
	i := slices.IndexFunc(all, func(k key) bool { return k.name == path[0] })
	switch {
	case len(path) != 1 || i < 0:
		return "", false
	case all[i].typ == reflect.TypeFor[struct{}](): // a group of keys
		return "", true
	}
	return all[i].text(in)
}

package configs

import (
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Known reports whether the file may have a key, or a group of keys, also of a profile, a connector or an MCP
// server with a name of its own.
func Known(name string) bool {
	group, rest, within := strings.Cut(name, ".")
	_, own, deep := strings.Cut(rest, ".")
	switch {
	case within && !deep && slices.Contains(named, group), group == "connectors" && own == "type":
		return true
	case group == "mcp" && deep:
		field, _, _ := strings.Cut(own, ".")
		return slices.ContainsFunc(keysOf(reflect.TypeFor[MCPServer]()), func(k key) bool { return k.name == field })
	}
	return slices.ContainsFunc(pathsOf(name), declaredPath)
}

// declaredPath reports whether a path is that of a key, of a group, or of a name that people choose.
func declaredPath(path string) bool {
	if _, ok := keyAt(path); ok || grouped(path) {
		return true
	}
	for i := strings.LastIndexByte(path, '.'); i > 0; i = strings.LastIndexByte(path[:i], '.') {
		if k, ok := keyAt(path[:i]); ok {
			return k.typ.Kind() == reflect.Map || k.kind == "confirm"
		}
	}
	return false
}

// NearestKey returns the key that key was most likely meant to be, empty when none is close. Names that people choose are
// those in the text of a file.
func NearestKey(text []byte, key string) string {
	group, rest, within := strings.Cut(key, ".")
	name, own, deep := strings.Cut(rest, ".")
	names, fields := namesIn(text, group), entryFields(group)
	if !within || names == nil && fields == nil {
		return nearestKey(key)
	}
	if near := Nearest(name, names); near != "" && !slices.Contains(names, name) {
		name = near
	}
	near := joinPath(group, name)
	switch field, below, _ := strings.Cut(own, "."); {
	case !deep:
	case fields == nil && Known(joinPath(near, own)):
		near = joinPath(near, own)
	case fields == nil:
		near = nearestKey(joinPath(near, own))
	case slices.Contains(fields, field):
		near = joinPath(near, own)
	case below != "" || Nearest(own, fields) == "":
		return ""
	default:
		near = joinPath(near, Nearest(own, fields))
	}
	if near == key || ShownKey(near) != near {
		return ""
	}
	return near
}

// namesIn are the names that the text of a file has in a group of names, or in a list of entries with names.
func namesIn(text []byte, group string) (all []string) {
	f, err := newFile(text)
	if err != nil {
		return nil
	}
	switch group {
	case "agents":
		all = []string{DefaultProfile, foregroundScope}
	case "people": // its keys are persons
		return nil
	}
	if there, entries := f.find([]string{group}); there == 1 && slices.Contains(named, group) && entries[0].value.Kind == yaml.MappingNode {
		for i := 0; i < len(entries[0].value.Content); i += 2 {
			all = append(all, entries[0].value.Content[i].Value)
		}
	}
	if _, _, ok := ListOf(group + ".x"); ok {
		for _, n := range f.items(group) {
			all = append(all, itemName(n))
		}
	}
	return all
}

// nearestKey is NearestKey for a key whose names, if any, are right.
func nearestKey(key string) string {
	for _, path := range pathsOf(key) {
		if path == key {
			return Nearest(key, Keys())
		}
		named := strings.SplitN(key, ".", 3)
		group := strings.TrimSuffix(path, named[2])
		if own, of := strings.CutPrefix(Nearest(path, Keys()), group); of {
			return named[0] + "." + named[1] + "." + own
		}
	}
	return ""
}

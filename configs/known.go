package configs

import (
	"reflect"
	"slices"
	"strings"
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

// NearestKey returns the key that key was most likely meant to be, empty when none is close.
func NearestKey(key string) string {
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

package configs

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// localKinds are the kinds of keys that name an address or a path.
var localKinds = []string{
	"url", "url without slash", "url with slash", "model address", "files address", "listen", "explored hosts",
	"path", "file path", "directory",
}

// IsLocal reports whether only the machine of claybot may change a key: it names an address or
// a path, runs commands, or says who decides for the owner and what needs no decision.
func IsLocal(key string) bool { return slices.ContainsFunc(pathsOf(key), localPath) }

// localPath is IsLocal for a path, see keyAt. A path that is not declared is as the group around it.
func localPath(path string) bool {
	for ; path != ""; path = path[:max(0, strings.LastIndexByte(path, '.'))] {
		if k, ok := keyAt(path); ok {
			return k.isLocal()
		}
	}
	return false
}

// isLocal is IsLocal for a declaration.
func (k key) isLocal() bool { return k.local || slices.Contains(localKinds, k.kind) }

// LocalChange returns the first local key, see IsLocal, whose value differs between two texts of a
// file; empty for none. A list differs as a whole.
func LocalChange(before, after []byte) (string, error) {
	changed, err := Changed(before, after)
	if err != nil {
		return "", err
	}
	for _, text := range [][]byte{before, after} {
		root, err := parse(FileName, text)
		if err != nil {
			return "", err
		}
		found := ""
		Config{}.walk("", "", root, func(key, path string, n *yaml.Node) {
			if found == "" && slices.Contains(changed, key) && (IsLocal(key) || localNode(path, n)) {
				found = key
			}
		})
		if found != "" {
			return found, nil
		}
	}
	return "", nil
}

// localNode reports whether a value sets a local key.
func localNode(path string, n *yaml.Node) bool {
	if IsLocal(path) {
		return true
	}
	for i, x := range n.Content {
		switch {
		case n.Kind == yaml.SequenceNode && localNode(path+"[]", x):
			return true
		case n.Kind == yaml.MappingNode && i%2 == 1 && (n.Content[i-1].Value == "<<" || localNode(joinPath(path, n.Content[i-1].Value), x)):
			return true
		}
	}
	return false
}

// A Reference is one to a secret in the text of a file.
type Reference struct {
	Key, Text string
	Own       bool // to a variable that the key declares
}

// NewReferences returns the references of a text of a file that the one before does not have.
func NewReferences(before, after []byte) ([]Reference, error) {
	was, err := references(before)
	if err != nil {
		return nil, err
	}
	now, err := references(after)
	return slices.DeleteFunc(now, func(r Reference) bool {
		return slices.ContainsFunc(was, func(old Reference) bool { return old.Text == r.Text })
	}), err
}

func references(text []byte) (all []Reference, err error) {
	root, err := parse(FileName, text)
	if err != nil {
		return nil, err
	}
	Config{}.walk("", "", root, func(key, path string, n *yaml.Node) {
		k, _ := keyAt(path)
		for _, v := range scalarsOf(n) {
			if v = strings.TrimSpace(v); isReference(v) {
				all = append(all, Reference{key, v, k.env != "" && v == "env:"+k.env})
			}
		}
	})
	return all, nil
}

// scalarsOf returns the values in a node, and the names of its keys.
func scalarsOf(n *yaml.Node) []string {
	if n.Kind == yaml.ScalarNode {
		return []string{n.Value}
	}
	var all []string
	for _, x := range n.Content {
		all = append(all, scalarsOf(x)...)
	}
	return all
}

// isReference reports whether a value refers to a secret.
func isReference(v string) bool { return strings.HasPrefix(v, "env:") || strings.HasPrefix(v, "file:") }

package configs

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/claybot/claybot/lazyregexp"
)

// A Value is one key as it is in force.
type Value struct {
	Key string `json:"key"`
	// Value is as the file would say it, on one line; empty for none. A secret is shown as the
	// reference to it, or as (secret).
	Value string `json:"value"`
	// Origin is OriginDefault, a flag, a variable of the environment, or file:line.
	Origin string `json:"origin"`
	// Refused says that what stands at the origin is not valid; it is not shown.
	Refused bool `json:"refused,omitempty"`
	// Above says that the origin is a flag or a variable, which wins over the file.
	Above bool `json:"-"`
}

// Plain is the value without the quotes of YAML; a list or a group is as in Value.
func (v Value) Plain() string {
	var plain string
	if yaml.Unmarshal([]byte(v.Value), &plain) != nil {
		return v.Value
	}
	return plain
}

// OriginDefault is the origin of a value that is not set anywhere.
const OriginDefault = "default"

// Hidden stands for a secret of which there is no reference.
const Hidden = "(secret)"

// An origin is a flag or a variable that sets a key.
type origin struct{ name, value string }

// above returns the origins with one more, which does not change copies of s.
func (s Source) above(path, name, value string) map[string]origin {
	next := map[string]origin{path: {name, value}}
	for p, o := range s.set {
		if p != path {
			next[p] = o
		}
	}
	return next
}

// ofModel is above for what the environment says about the common model, as far as it is in
// force.
func (s Source) ofModel(m Model) map[string]origin {
	if name := m.Key.String(); slices.Contains([]string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY"}, name) {
		s.set = s.above("model.key", name, Hidden)
	}
	if m.where == variableBase {
		s.set = s.above("model.base_url", m.where, m.BaseURL)
	}
	return s.set
}

// Values lists every key with its value in force, in the order of Keys. Of the profiles and
// connectors that have names of their own, it has the keys that are set.
func (c Config) Values() []Value {
	var all []Value
	c.walk("", "", c.Source.root, func(key, path string, n *yaml.Node) {
		if _, overridden := c.Source.set[key]; !overridden {
			all = append(all, c.writtenValue(key, path, n))
		}
	})
	for path, o := range c.Source.set {
		all = append(all, c.setValue(path, o))
	}
	for _, path := range c.listed() {
		list := ""
		if path, list, _ = strings.Cut(path, "[]"); list != "" && slices.ContainsFunc(all, func(v Value) bool { return v.Key == path }) {
			continue
		}
		if slices.ContainsFunc(all, func(v Value) bool { return within(v.Key, path) }) {
			continue
		}
		if text, ok := c.inForce(path); ok {
			all = append(all, Value{Key: path, Value: text, Origin: OriginDefault})
		}
	}
	slices.SortStableFunc(all, func(a, b Value) int { return rank(a.Key) - rank(b.Key) })
	return all
}

// within reports whether key is path, or one below it.
func within(key, path string) bool {
	rest, ok := strings.CutPrefix(key, path)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// named are groups whose keys are names that the operator chose.
var named = []string{"agents", "connectors", "mcp", "people"}

// short are the keys that a group means which is written as a single value.
var short = map[string]string{"model": "name", "access": "mode", "http": "addr"}

// groups are the paths of all groups of keys that are no lists.
var groups = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{"": true}
	for path := range declarations().keys {
		for i, c := range path {
			if c == '.' && !strings.HasSuffix(path[:i], "[]") {
				all[path[:i]] = true
			}
		}
	}
	return all
})

// grouped reports whether a path, as keyAt takes it, is that of a group of keys.
func grouped(path string) bool {
	if own, ok := strings.CutPrefix(path, profilePath+"."); ok && (own == "model" || own == "workspace") {
		return true
	}
	return groups()[path] || slices.Contains(named, path)
}

// walk calls f with each key that the file sets, and the path that declares it.
func (c Config) walk(key, path string, n *yaml.Node, f func(key, path string, n *yaml.Node)) {
	if n == nil || n.Kind != yaml.MappingNode || !grouped(path) {
		if name, ok := short[path]; ok && n != nil && n.Kind == yaml.ScalarNode {
			key, path = key+"."+name, path+"."+name
		}
		if n != nil {
			f(key, path, n)
		}
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i].Value
		c.walk(joinPath(key, name), pathOf(path, name, n.Content[i+1]), n.Content[i+1], f)
	}
}

// pathOf returns the path of the key of a group, see keyAt.
func pathOf(group, name string, n *yaml.Node) string {
	switch group {
	case "agents":
		if name != foregroundScope {
			name = DefaultProfile
		}
	case "connectors":
		if t, err := instanceType(name, n); err == nil {
			return connectorTypes[slices.IndexFunc(connectorTypes, func(x connectorType) bool { return x.name == t })].path
		}
	}
	return joinPath(group, name)
}

// rank orders keys as they are declared.
func rank(key string) int {
	best, long := len(Keys()), -1
	for i, path := range Keys() {
		p, _, _ := strings.Cut(path, "[]")
		for ; p != ""; p = p[:max(0, strings.LastIndexByte(p, '.'))] {
			if within(key, p) && len(p) > long {
				best, long = i, len(p)
			}
		}
	}
	return best
}

// writtenValue is a key as the file sets it.
func (c Config) writtenValue(key, path string, n *yaml.Node) Value {
	v := Value{Key: key, Origin: fmt.Sprintf("%s:%d", c.Source.File, n.Line)}
	for _, w := range c.Source.Warnings {
		v.Refused = v.Refused || w.File != "" && within(w.Key, key)
	}
	if !v.Refused {
		v.Value = flow(n, hides(key))
	}
	return v
}

// setValue is a key that a flag or a variable sets.
func (c Config) setValue(path string, o origin) Value {
	v := Value{Key: path, Origin: o.name, Value: o.value, Above: true}
	for _, w := range c.Source.Warnings {
		v.Refused = v.Refused || w.File == "" && w.Key == o.name
	}
	switch {
	case v.Refused:
		v.Value = ""
	case IsSecret(path) || shapes.MatchString(v.Value):
		v.Value = Hidden
	default:
		v.Value = masked(v.Value)
	}
	return v
}

// shapes are what tokens, and accounts in addresses, look like anywhere in a text.
var shapes = lazyregexp.New(`//[^/@\s]+@|(?:\b|_)(?i:sk|ghp|gho|ghs|github_pat|glpat|xox[a-z])[-_.][A-Za-z0-9_-]{6}|xapp-|AKIA[A-Z0-9]{8}|(?i:bearer|basic)\s+\S{4}|[0-9]{6,}:[A-Za-z0-9_-]{20}|[A-Za-z0-9_-]{23,}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{20}`)

// guarded reports whether the value of a key or a variable may be a secret, by its name.
func guarded(name string) bool { return guardedNames.MatchString(name) && name != "max_tokens" }

var guardedNames = lazyregexp.New(`(?i)(^|[._-])(token|keys?|secrets?|passw(or)?d|headers|authorization|auth|cookie)$|_(token|key|secret)`)

// IsSecret reports whether the value of a key is a secret, of which the file has a reference.
func IsSecret(key string) bool {
	k, below, ok := holderOf(key)
	switch {
	case ok && !below:
		return k.typ == reflect.TypeFor[Secret]() || slices.Contains([]string{"model key", "account", "speech account", "model keys", "secret variables"}, k.kind) || k.headers()
	case ok && k.kind == "secret variables":
		return true
	}
	return guarded(belowEntry(key))
}

// hides reports whether the value of a key is not shown: it is a secret, or stands below a name that may be that of one.
func hides(key string) bool {
	names := strings.Split(belowEntry(key), ".")
	return IsSecret(key) || slices.ContainsFunc(names[:len(names)-1], guarded)
}

// belowEntry returns a key without the group and the name of the entry that it is in, if any: the name, which the operator
// chose, says nothing of what stands below it.
func belowEntry(key string) string {
	group, rest, _ := strings.Cut(key, ".")
	if _, _, list := ListOf(joinPath(group, "x")); !list && !slices.Contains(named, group) {
		return key
	}
	_, own, _ := strings.Cut(rest, ".")
	return own
}

// TakesSecret reports whether the value of a key is, or can be, a secret of which the file has a reference: headers
// have both.
func TakesSecret(key string) bool {
	k, _, ok := holderOf(key)
	return ok && k.headers() || IsSecret(key)
}

// SecretGroup reports whether a key is a group of secrets with names of their own.
func SecretGroup(key string) bool {
	k, below, ok := holderOf(key)
	return ok && !below && (k.headers() || k.kind == "secret variables")
}

func (k key) headers() bool {
	return slices.Contains([]string{"model headers", "headers", "OTLP headers"}, k.kind)
}

// holderOf returns the key that is declared for a key of the file, or for the nearest group around it.
func holderOf(name string) (k key, below, ok bool) {
	if own := strings.SplitN(name, ".", 4); own[0] == "mcp" && len(own) > 2 {
		all := keysOf(reflect.TypeFor[MCPServer]())
		if i := slices.IndexFunc(all, func(k key) bool { return k.name == own[2] }); i >= 0 {
			return all[i], len(own) > 3, true
		}
		return key{}, false, false
	}
	for _, whole := range pathsOf(name) {
		for path := whole; path != ""; path = path[:max(0, strings.LastIndexByte(path, '.'))] {
			if k, ok := keyAt(path); ok && (path == whole || k.typ.Kind() == reflect.Map) {
				return k, path != whole, true
			}
		}
	}
	return key{}, false, false
}

// pathsOf returns the paths that may declare a key, see keyAt.
func pathsOf(key string) []string {
	group, rest, _ := strings.Cut(key, ".")
	_, own, within := strings.Cut(rest, ".")
	switch {
	case group == "agents" && within:
		return []string{profilePath + "." + own}
	case group == "connectors" && within:
		all := make([]string, len(connectorTypes))
		for i, t := range connectorTypes {
			all[i] = joinPath(t.path, own)
		}
		return all
	}
	return []string{key}
}

// flow writes a value on one line, without what is or looks like a secret.
func flow(n *yaml.Node, secret bool) string {
	b, err := yaml.Marshal(public(n, secret))
	if err != nil {
		return Hidden
	}
	return strings.TrimRight(string(b), "\n")
}

// public returns a copy of a value without comments and secrets. References to secrets stay.
func public(n *yaml.Node, secret bool) *yaml.Node {
	c := &yaml.Node{Kind: n.Kind, Tag: n.Tag, Value: n.Value, Style: yaml.FlowStyle}
	switch n.Kind {
	case yaml.AliasNode: // they are refused
		return &yaml.Node{Kind: yaml.ScalarNode, Value: "*" + n.Value}
	case yaml.ScalarNode:
		c.Style = n.Style &^ (yaml.LiteralStyle | yaml.FoldedStyle)
		if strings.Contains(n.Value, "\n") {
			c.Style = yaml.DoubleQuotedStyle
		}
		reference := strings.HasPrefix(n.Value, "env:") || strings.HasPrefix(n.Value, "file:")
		if !secret && !reference {
			c.Value = masked(n.Value)
		}
		if !reference && (secret && n.Value != "" || shapes.MatchString(n.Value)) {
			c.Value, c.Tag, c.Style = Hidden, "!!str", 0
		}
	}
	for i, x := range n.Content {
		name := n.Kind == yaml.MappingNode && i%2 == 0
		below := secret || n.Kind == yaml.MappingNode && guarded(n.Content[i-i%2].Value)
		c.Content = append(c.Content, public(x, below && !name))
	}
	return c
}

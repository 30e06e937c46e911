package configs

import (
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// group reads the keys of a mapping into the struct that to points to, except those
// named. Each value that is not valid is a warning and costs nothing but itself.
func (r *reader) group(at place, n *yaml.Node, to any, except ...string) {
	keys := slices.DeleteFunc(slices.Clone(keysOf(reflect.TypeOf(to).Elem())), func(k key) bool { return slices.Contains(except, k.name) })
	if empty(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		r.warn(at, "want a group of keys (%s), found %s; ignored", strings.Join(names(keys), ", "), kindOf(n))
		return
	}
	for m := range r.each(at, n) {
		i := slices.IndexFunc(keys, func(k key) bool { return k.name == m.name })
		before := len(r.warnings)
		switch {
		case i < 0 && m.warned == 0:
			r.unknown(at, m, names(keys))
			if path, ok := closing(at, m, r.warnings[before].meant, names(keys)); ok {
				r.close(to, m.at, path, before)
			}
		case m.warned > 0:
			path := m.at.path
			if m.name == merge {
				path = r.merged(at, m, names(keys))
			}
			r.close(to, m.at, path, before-m.warned)
		case empty(m.value):
			if !bare(m.at.path) {
				r.warn(m.at, noValue+"; ignored")
				r.close(to, m.at, m.at.path, before)
			}
		default:
			setterOf(keys[i])(r, m.at, m.value, keys[i], to)
			refused := r.close(to, m.at, m.at.path, before)
			if o, ok := to.(owner); ok && !refused && len(r.warnings) == before {
				o.on(m.at.path)
			}
		}
	}
}

// isGroup warns of a value that is not a group of the keys of a T.
func isGroup[T any](r *reader, at place, n *yaml.Node, except ...string) bool {
	if n.Kind == yaml.MappingNode {
		return true
	}
	var to T
	if empty(n) { // which group passes over
		n = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str"}
	}
	r.group(at, n, &to, except...)
	return false
}

// entries reads a list of groups of keys. An entry that is not valid is left out, whole:
// half of one might do more than was meant. check says what is wrong with the keys of
// an entry together, and name is unique among the entries.
func entries[T any](r *reader, at place, n *yaml.Node, what string, check func(*T) string, name func(T) string) (list []T, ok bool) {
	if n.Kind != yaml.SequenceNode {
		r.warn(at, "want a list of %ss, found %s; ignored", what, kindOf(n))
		return nil, false
	}
	lines := make(map[string]int)
	for i, e := range n.Content {
		where, before := place{file: at.file, line: e.Line, key: fmt.Sprintf("%s[%d]", at.key, i)}, len(r.warnings)
		var entry T
		if isGroup[T](r, where, e) {
			r.group(where, e, &entry)
		}
		if len(r.warnings) == before {
			if why := check(&entry); why != "" {
				r.warn(where, "%s; ignored", why)
			} else if name := name(entry); name != "" && lines[name] != 0 {
				r.warn(where, "the name %s was given in line %d already; ignored", quote(name), lines[name])
			} else {
				lines[name] = e.Line
				list = append(list, entry)
			}
		}
		instead(r, before, "the "+what+" is left out")
	}
	return list, true
}

// merge is the key of YAML that copies the keys of other groups into its own.
const merge = "<<"

// merged returns the path that a merge key switches off: what would be merged may be
// any key of the group. At the root it may say where claybot keeps its data.
func (r *reader) merged(group place, m member, known []string) string {
	if group.key == "" {
		r.reject(fmt.Errorf("%s:%d: %s", m.at.file, m.at.line, unreadMerge))
	}
	for _, k := range known {
		if path := joinPath(group.path, k); !classOf(group.path).closes() && classOf(path).closes() {
			return path
		}
	}
	return group.path
}

// A member is one key of a mapping with its value.
type member struct {
	at    place
	name  string
	value *yaml.Node
	// warned is how many warnings say why the key is not read; 0 when it is.
	warned int
}

// members yields the keys of a mapping that can be read. A key that occurs twice
// counts the first time.
func (r *reader) members(at place, n *yaml.Node) iter.Seq[member] {
	return func(yield func(member) bool) {
		for m := range r.each(at, n) {
			if m.warned == 0 && !yield(m) {
				return
			}
		}
	}
}

// each is members that also yields the keys that cannot be read, after a warning.
func (r *reader) each(at place, n *yaml.Node) iter.Seq[member] {
	return func(yield func(member) bool) {
		seen := make(map[string]int)
		for i := 0; i+1 < len(n.Content); i += 2 {
			k, v := n.Content[i], n.Content[i+1]
			m := member{at: at.sub(k.Value, k.Line), name: k.Value, value: v, warned: 1}
			switch {
			case k.Kind != yaml.ScalarNode:
				m.at = place{file: at.file, line: k.Line, key: at.key}
				r.warn(m.at, unreadWord+", found %s; ignored", kindOf(k))
			case k.Value == merge:
				r.warn(m.at, unreadMerge+"; ignored")
			case v.Kind == yaml.AliasNode:
				r.warn(m.at, unreadAlias+", write the value out; ignored")
			case seen[k.Value] != 0:
				r.warn(m.at, unreadTwice+" %d already, which holds; ignored", seen[k.Value])
			default:
				seen[k.Value] = k.Line
				m.warned = 0
			}
			if !yield(m) {
				return
			}
		}
	}
}

// unknown warns about a key that is not read, with the nearest of its group,
// or the key of another group that has its name.
func (r *reader) unknown(group place, m member, known []string) {
	w := Warning{File: m.at.file, Line: m.at.line, Key: m.at.key, Text: unreadUnknown + "; ignored", code: CodeKey}
	own := within(group.path, flowPath)
	if other := alias(group, m.name); other != "" && !own {
		w.Near, w.meant = other, other
		if below, ok := strings.CutPrefix(other, profilePath); ok {
			w.Near = group.key + below
		}
	} else if near, sole := nearest(m.name, known); near != "" {
		w.Near = group.sub(near, 0).key
		if group.path != "" || group.key == "" { // else of an entry of a list, which is refused whole
			w.meant = joinPath(group.path, near)
			w.slip = sole && isSlip(m.name, near, known) && mild(w.meant)
		}
	} else if !own {
		for _, path := range Keys() {
			if strings.HasPrefix(path, "connectors.") { // of one type of connector
				continue
			}
			if plain(path[strings.LastIndexByte(path, '.')+1:]) == plain(m.name) {
				w.Near, w.meant = path, path
				break
			}
		}
	}
	r.warnings = append(r.warnings, w)
}

// unread reports a warning about a key of the group at p that was not read at
// all, and what is wrong with it: what it was to set is unknown.
func unread(w Warning, p place) (text string, ok bool) {
	text, ok = ignored(w)
	if !ok || w.Key != p.key && !strings.HasPrefix(w.Key, p.key+".") {
		return "", false
	}
	for _, begin := range []string{unreadUnknown, unreadWord, unreadAlias, unreadTwice, noValue} {
		if strings.HasPrefix(text, begin) {
			return text, true
		}
	}
	return "", false
}

// ignored is a warning without its end, which says that nothing else came of it.
func ignored(w Warning) (text string, ok bool) {
	text, ok = strings.CutSuffix(w.Text, "; ignored")
	return strings.TrimSuffix(text, ", which holds"), ok
}

// How warnings about keys begin that are not read.
const (
	unreadUnknown = "unknown key"
	unreadWord    = "a key must be a single word"
	unreadAlias   = "aliases are not supported"
	unreadMerge   = unreadAlias + ", nor is <<: write the keys out"
	unreadTwice   = "was given in line"
)

// noValue is what is wrong with a key that is written without a value.
const noValue = "has no value; remove the line or give it one"

// sections are groups that may be written without any of their keys, as in a file
// in which all of them are comments: nothing but a group can be meant, and what holds
// without one is what was meant. A model, an access mode, a store or a list is not.
var sections = []string{
	"telegram", "slack", "discord", "connectors", "subagents", "cron", "heartbeat", "prompts", "web", "otlp", "files", "node", "agents", profilePath,
	profilePath + ".deep", profilePath + ".plan", profilePath + ".explore", profilePath + ".approvals", profilePath + ".limits",
}

// bare reports whether the key with a path may be written without a value.
func bare(path string) bool { return classOf(path) == Harmless || slices.Contains(sections, path) }

func names(keys []key) []string {
	list := make([]string, len(keys))
	for i, k := range keys {
		list[i] = k.name
	}
	return list
}

// scalar returns a single value as it was written.
func (r *reader) scalar(at place, n *yaml.Node) (string, bool) {
	if n.Kind != yaml.ScalarNode {
		r.warn(at, "want a single value, found %s; ignored", kindOf(n))
		return "", false
	}
	return strings.TrimSpace(n.Value), true
}

// store assigns v where a check has passed.
func store[T any](to *T, v T, ok bool) {
	if ok {
		*to = v
	}
}

// list returns the single values of a list; one value alone is a list of one.
func (r *reader) list(at place, n *yaml.Node) (items []item, ok bool) {
	if n.Kind == yaml.ScalarNode {
		return []item{{at, strings.TrimSpace(n.Value)}}, true
	}
	if n.Kind != yaml.SequenceNode {
		r.warn(at, "want a list, found %s; ignored", kindOf(n))
		return nil, false
	}
	for _, e := range n.Content {
		where := place{file: at.file, line: e.Line, key: at.key}
		if v, ok := r.scalar(where, e); ok {
			items = append(items, item{where, v})
		}
	}
	return items, true
}

// An item is one value of a list.
type item struct {
	at   place
	text string
}

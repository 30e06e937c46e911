package flows

import (
	"maps"
	"slices"
	"strings"
)

// A templated is one template of a flow, and where it stands.
type templated struct {
	key, text string
	line      int
}

// templatesOf lists the templates of a node.
func templatesOf(n *Node) (all []templated) {
	add := func(key string, v any) {
		eachText(v, key, func(key, text string) {
			top, _, _ := strings.Cut(key, ".")
			all = append(all, templated{"nodes." + n.Name + "." + key, text, n.Lines[top]})
		})
	}
	if a := n.Agent(); a != nil {
		add("prompt", a.Prompt)
		add("system", a.System)
	}
	switch s := n.Spec.(type) {
	case *Parallel:
		for _, b := range n.branches() {
			all = append(all, templatesOf(&b)...)
		}
	case *Each:
		add("over", s.Over)
	case *Tool:
		add("args", s.Args)
	case *HTTP:
		add("url", s.URL)
		add("headers", s.Headers)
		add("body", s.Body)
	case *Template:
		add("value", s.Value)
	case *Switch:
		add("value", s.Value)
	case *Reply:
		add("text", s.Text)
	case *Ask:
		add("text", s.Text)
	case *Child:
		add("text", s.Text)
		add("payload", s.Payload)
	case *Wait:
		add("until", s.Until)
	}
	return all
}

// Reads reports whether a template of the flow may read a field of a node. uses returns the names
// that a template reads.
func (f *Flow) Reads(node, field string, uses func(text string) ([]Use, error)) bool {
	reads := func(u Use) bool {
		path := u.Path
		if path[0] == "nodes" {
			path = path[1:]
		}
		return len(path) == 0 || path[0] == node && (len(path) == 1 || path[1] == field || path[1] == "_"+field)
	}
	for i := range f.Nodes {
		for _, t := range templatesOf(&f.Nodes[i]) {
			if all, err := uses(t.text); err == nil && slices.ContainsFunc(all, reads) {
				return true
			}
		}
	}
	return false
}

// agentFields are those of what an agent puts out, besides the fields that it is asked for. Other
// systems write the last two with a line in front.
var agentFields = []string{"output", "messages", "token_usage", "_messages", "_token_usage"}

// plainOf lists the texts of a node that are no templates, although they could look like some.
func plainOf(n *Node) (all []templated) {
	add := func(key string, line int, texts ...string) {
		for _, text := range texts {
			all = append(all, templated{"nodes." + n.Name + "." + key, text, line})
		}
	}
	switch s := n.Spec.(type) {
	case *Deep:
		for _, h := range s.Subagents {
			add("subagents", n.Lines["subagents"], h.SystemPrompt, h.Description)
		}
	case *Tool:
		add("args", n.Lines["args"], keysOf(s.Args)...)
	case *Template:
		add("value", n.Lines["value"], keysOf(s.Value)...)
	case *Child:
		add("flow", n.Lines["flow"], s.Flow)
		add("payload", n.Lines["payload"], keysOf(s.Payload)...)
	case *Switch:
		for _, x := range s.Cases {
			add("cases", x.Line, x.Is)
		}
	case *Reply:
		add("to", n.Lines["to"], s.To...)
	case *Ask:
		add("options", n.Lines["options"], s.Options...)
	}
	return all
}

// keysOf are the keys of the objects in a value.
func keysOf(v any) (keys []string) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			keys = append(keys, keysOf(e)...)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			keys = append(append(keys, k), keysOf(v[k])...)
		}
	}
	return keys
}

// eachText calls fn for every text in a value, with its key.
func eachText(v any, key string, fn func(key, text string)) {
	switch v := v.(type) {
	case string:
		fn(key, v)
	case []any:
		for _, e := range v {
			eachText(e, key, fn)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			eachText(v[k], key+"."+k, fn)
		}
	}
}

// triggerNames are the fields of trigger.
var triggerNames = []string{"text", "payload", "event", "files", "user", "channel", "connector", "at", "name"}

// templates checks that all templates can be read, and that the names in them are defined on every
// way that leads there.
func (c *checker) templates() {
	if c.world.Uses == nil {
		return
	}
	c.template(templated{"concurrency.key", c.flow.Concurrency.Key, c.flow.Concurrency.Lines["key"]}, nil, nil)
	before := c.before()
	for i := range c.flow.Nodes {
		n := &c.flow.Nodes[i]
		known := before[n.Name]
		if known == nil {
			continue // never reached, which is a fault of its own
		}
		var own []string
		if _, each := n.Spec.(*Each); each {
			own = []string{"item", "index"}
		}
		for _, t := range templatesOf(n) {
			if strings.HasSuffix(t.key, ".over") {
				c.template(t, known, nil)
				continue
			}
			c.template(t, known, own)
		}
	}
}

// template checks one template. known are the nodes that have ended when it is filled, and
// "error" where a node has failed; own are further names.
func (c *checker) template(t templated, known map[string]bool, own []string) {
	uses, err := c.world.Uses(t.text)
	if err != nil {
		c.add(t.line, t.key, "%v", err)
		return
	}
	for _, u := range uses {
		name := u.Path[0]
		switch {
		case u.Optional, slices.Contains(own, name), name == "now", name == "user":
		case name == "trigger":
			if len(u.Path) > 1 && !slices.Contains(triggerNames, u.Path[1]) {
				c.unknown(t.line, t.key, u.Path[1], triggerNames, "trigger has no field %.64q; it has %s", u.Path[1], strings.Join(triggerNames, ", "))
			}
		case name == "error":
			if !known["error"] {
				c.add(t.line, t.key, "error is defined only behind the error edge of a node")
			}
		case name == "nodes" && len(u.Path) > 1:
			c.use(t, u.Path[1:], known)
		default:
			c.use(t, u.Path, known)
		}
	}
}

// use checks a name that can only be that of a node.
func (c *checker) use(t templated, path []string, known map[string]bool) {
	n := c.flow.Node(path[0])
	switch {
	case n == nil:
		names := slices.Clone(reserved[:2])
		for _, x := range c.flow.Nodes {
			names = append(names, x.Name)
		}
		c.unknown(t.line, t.key, path[0], names, "%.64q is neither a node nor a name that templates have", path[0])
	case n.addresses(path[1:]):
	case !known[n.Name]:
		c.add(t.line, t.key, "%s may not have run when this is filled; add | default(…), or an edge", n.Name)
	case len(path) > 1 && n.mayMiss(path[1:]):
		c.add(t.line, t.key, "%s may be missing: not every branch has to succeed; add | default(…)", strings.Join(path, "."))
	case len(path) > 1:
		if fields := n.Fields(); fields != nil && !slices.Contains(fields, path[1]) {
			c.unknown(t.line, t.key, path[1], fields, "%s has no field %.64q; it has %s", n.Name, path[1], strings.Join(fields, ", "))
		}
	}
}

// Fields are the names of what a node puts out; nil where only a run can tell.
func (n *Node) Fields() []string {
	switch spec := n.Spec.(type) {
	case *Agent, *Deep:
		all := slices.Clone(agentFields)
		for _, f := range n.Agent().Output {
			all = append(all, f.Name)
		}
		return all
	case *Switch, *Reply:
		return []string{"output"}
	case *Wait:
		if n.callable() {
			return nil
		}
		return []string{"output"}
	case *Ask:
		return []string{"output", "by", "answered"}
	case *Each:
		if spec.OnError == OnErrorContinue {
			return append(slices.Clone(agentFields), "failed")
		}
		return agentFields
	case *Parallel:
		all := slices.Clone(parallelFields)
		for _, b := range spec.Branches {
			all = append(all, b.Name)
		}
		return all
	}
	return nil // of a tool and a template, an object has its own fields
}

// before returns the nodes that have ended on every way to a node, for each node that is reached.
// Behind the error edge of a node there is "error" in place of what the node puts out.
func (c *checker) before() map[string]map[string]bool {
	type way struct {
		from   string
		failed bool
	}
	into := make(map[string][]way)
	for i := range c.flow.Nodes {
		n := &c.flow.Nodes[i]
		for _, e := range n.Edges() {
			if e.Key != "error" {
				into[e.To] = append(into[e.To], way{n.Name, false})
			}
		}
		if n.Error != "" {
			into[n.Error] = append(into[n.Error], way{n.Name, true})
		}
	}
	before := map[string]map[string]bool{c.flow.Start: {}}
	for changed := true; changed; {
		changed = false
		for i := range c.flow.Nodes {
			name := c.flow.Nodes[i].Name
			var both map[string]bool
			if name == c.flow.Start {
				both = map[string]bool{}
			}
			for _, w := range into[name] {
				from := before[w.from]
				if from == nil {
					continue // not reached yet
				}
				came := maps.Clone(from)
				if w.failed {
					came["error"] = true
				} else {
					came[w.from] = true
				}
				if both == nil {
					both = came
					continue
				}
				maps.DeleteFunc(both, func(k string, _ bool) bool { return !came[k] })
			}
			if both != nil && !maps.Equal(both, before[name]) {
				before[name], changed = both, true
			}
		}
	}
	return before
}

package flows

import "strings"

// isReference reports whether a text is a reference to a secret, env:NAME or file:PATH, and no
// sentence that begins like one.
func isReference(text string) bool {
	kind, what, ok := strings.Cut(text, ":")
	switch {
	case !ok || what == "" || strings.ContainsAny(what, " \t\r\n{}"):
		return false
	case kind == "file":
		return strings.Contains(what, "/")
	}
	return kind == "env" && strings.Trim(what, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") == ""
}

// secrets checks that no text of a node has a secret, that only the headers of http nodes refer to
// one, and that it can be read.
func (c *checker) secrets() {
	for i := range c.flow.Nodes {
		n := &c.flow.Nodes[i]
		_, sends := n.Spec.(*HTTP)
		for _, t := range append(templatesOf(n), plainOf(n)...) {
			switch header := sends && strings.HasPrefix(t.key, "nodes."+n.Name+".headers."); {
			case header && (strings.HasPrefix(t.text, "env:") || strings.HasPrefix(t.text, "file:")):
				c.readable(t)
			case isReference(t.text):
				c.add(t.line, t.key, "only a header of an http node can refer to a secret")
			default:
				c.leak(t)
			}
		}
	}
}

// readable reports a reference whose secret cannot be read.
func (c *checker) readable(t templated) {
	if c.world.Secret == nil {
		return
	}
	if err := c.world.Secret(t.text); err != nil {
		c.add(t.line, t.key, "%v", err)
	}
}

// leak reports a secret that stands in a text.
func (c *checker) leak(t templated) {
	if c.world.Secrets == nil {
		return
	}
	if kinds := c.world.Secrets(t.text); len(kinds) > 0 {
		c.add(t.line, t.key, "has %s; a header of an http node can refer to a secret as env:NAME or file:PATH", strings.Join(kinds, " and "))
	}
}

package flows

import (
	"slices"
	"strings"
)

// askTypes are the types of questions that a flow may ask.
var askTypes = []string{"confirm", "text", "textarea", "number", "date", "time", "datetime", "email", "boolean", "select", "multiselect"}

func (c *checker) ask(n *Node, a *Ask) {
	key := "nodes." + n.Name
	if a.Type != "" && !slices.Contains(askTypes, a.Type) {
		c.unknown(n.Lines["type"], key+".type", a.Type, askTypes, "%.64q is not a type of question; want one of %s", a.Type, strings.Join(askTypes, ", "))
	}
	if choice := a.Type == "select" || a.Type == "multiselect"; choice != (len(a.Options) > 0) {
		c.add(n.Lines[""], key+".options", "are for the types select and multiselect, which need them")
	}
	if a.Denied != "" && a.Type != "" && a.Type != "confirm" {
		c.add(n.Lines["denied"], key+".denied", "only a confirm is denied")
	}
	for _, by := range a.By {
		c.valid(n.Lines["by"], key+".by", by, c.world.Owner)
	}
}

func (c *checker) wait(n *Node, w *Wait) {
	if (w.For == 0) == (w.Until == "") {
		c.add(n.Lines[""], "nodes."+n.Name, "want for, such as 30m, or until, a time")
	}
}

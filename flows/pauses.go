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

// EventCallback is the value of Wait.Event for a call of a program.
const EventCallback = "callback"

// CallbackField is the field of a node that waits for a call which has its address, also before the node has
// ended.
const CallbackField = "callback"

// callable reports whether a program ends the wait of a node.
func (n *Node) callable() bool {
	w, ok := n.Spec.(*Wait)
	return ok && w.Event != ""
}

// addresses reports whether a template reads the address of a node.
func (n *Node) addresses(path []string) bool {
	return n.callable() && len(path) > 0 && path[0] == CallbackField
}

func (c *checker) wait(n *Node, w *Wait) {
	key := "nodes." + n.Name
	switch {
	case w.Event == "" && w.Expired != "":
		c.add(n.Lines["expired"], key+".expired", "belongs to event: callback")
		return
	case w.Event != "" && w.Until != "":
		c.add(n.Lines["until"], key+".until", "belongs to a wait without event; want for, such as 2d")
		return
	case w.Event != "":
		return
	}
	if (w.For == 0) == (w.Until == "") {
		c.add(n.Lines[""], key, "want for, such as 30m, or until, a time")
	}
}

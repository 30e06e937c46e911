package connectors

import "github.com/claybot/claybot"

// A GroupHandler knows the groups whose members share one agent. Handlers implement it; a
// connector that keeps messages of one person in order asks for it by LaneOf.
type GroupHandler interface {
	// Shares reports whether the members of the group or channel of d share one agent.
	Shares(d claybot.Descriptor) bool
}

// LaneOf returns the user whose lane takes what the person of d does in a channel: messages and
// reactions of one lane reach h in the order in which the platform brings them. It is empty where
// the members of a group share one agent, for which the order of all of them counts.
func LaneOf(h Handler, d claybot.Descriptor, group bool) (user string) {
	if g, ok := h.(GroupHandler); ok && group && g.Shares(d) {
		return ""
	}
	return d.UserID
}

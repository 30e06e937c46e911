package connectors

import "github.com/claybot/claybot"

// A Windowed connector shows runs to viewers that are connected to this process.
// In a cluster its Observer, Previewer and Accepter methods are also called for
// runs on other members. Optional.
type Windowed interface {
	// Windows returns the routes with a connected viewer. It must not block.
	Windows() []claybot.Route
	// Changed shows that a person has edited or deleted a message of d's conversation,
	// perhaps on another member, or once more: m is the edit or the deletion. It must not block.
	Changed(d claybot.Descriptor, m claybot.AgentMessage)
}

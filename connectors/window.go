package connectors

import "github.com/claybot/claybot"

// A Windowed connector shows what runs do to whoever looks at it in this process.
// Where several nodes share a store it is told, as Observer, Previewer and
// Accepter, also of runs at which another node is at work. Optional.
type Windowed interface {
	// Windows are the routes that somebody looks at now. It must not block.
	Windows() []claybot.Route
}

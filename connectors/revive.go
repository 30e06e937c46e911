package connectors

import "context"

// A RouteHandler learns that a dead route works again. Handlers implement it; a connector
// whose platform reports that the bot was added again, or unblocked, asks for it by type
// assertion.
type RouteHandler interface {
	// Revive returns nil once messages to a channel are tried again. The messages of people
	// revive their channel by themselves.
	Revive(ctx context.Context, connector, channel string) error
}

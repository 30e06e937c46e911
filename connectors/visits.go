package connectors

import "github.com/claybot/claybot"

// A VisitHandler knows what people may see of claybot where they open it without a message.
// Handlers implement it; a connector whose platform reports such visits asks for it by type
// assertion.
type VisitHandler interface {
	// Welcome reports whether the person of a direct chat has access. outsider is as in
	// claybot.Sender. It does not block.
	Welcome(d claybot.Descriptor, outsider bool) bool
}

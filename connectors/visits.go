package connectors

import (
	"context"

	"github.com/claybot/claybot"
)

// A VisitHandler knows what people may see of claybot where they open it without a message.
// Handlers implement it; a connector whose platform reports such visits asks for it by type
// assertion.
type VisitHandler interface {
	// Welcome reports whether the person of a direct chat has access. outsider is as in
	// claybot.Sender. It does not block.
	Welcome(d claybot.Descriptor, outsider bool) bool
	// Home returns what the person of a direct chat may read about their own work, in their
	// language; none for a person without access. No other person may see it.
	Home(ctx context.Context, d claybot.Descriptor, outsider bool) ([]HomeSection, error)
}

// A HomeSection is a part of what a person reads about their own work.
type HomeSection struct{ Title, Text string } // Text is Markdown

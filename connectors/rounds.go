package connectors

import (
	"context"

	"github.com/claybot/claybot"
)

// A RoundHandler knows the questions that are asked together. Handlers implement it; a connector whose
// buttons have no room for a form asks for it by type assertion.
type RoundHandler interface {
	// Round returns the questions of one form: those that are open in the run of the question that p
	// names, and that the person of p may answer, in their order, but no approvals. It returns none
	// where the run asks nothing more of that person.
	Round(ctx context.Context, p Press) ([]claybot.Question, error)
}

package llm

import (
	"context"

	"github.com/claybot/claybot"
)

// A Purse pays for model calls: it sets the most that a call can cost aside
// before it is made, and books what it cost afterwards.
type Purse interface {
	// Reserve sets aside what a call can take at most, on every budget that it
	// belongs to, or on none. The error is an *Error of class Budget when one of
	// them has not that much left, most often a *LimitError; its text is for the
	// person. A nil Reserved comes with an error only.
	Reserve(ctx context.Context, c Charge) (Reserved, error)
}

// Reserved is money that was set aside for one call.
type Reserved interface {
	// Settle books what the call took instead. It must be called exactly once; what
	// is never settled, as the process died, is booked as it was set aside.
	Settle(ctx context.Context, u claybot.Usage) error
	// Binding reports whether a hard budget pays, so that the call must not take
	// more than was set aside.
	Binding() bool
}

// A Charge is what one call can take at most.
type Charge struct {
	Agent  claybot.AgentID
	Run    claybot.RunID
	Model  string
	Tokens int64 // input and output together
	// CostMicroUSD is what they cost; known is false where no price is known, and
	// budgets in money then refuse the call.
	CostMicroUSD int64
	Priced       bool
	// LeastTokens and LeastMicroUSD are the same with a short answer: with so much
	// room the call can be made. 0: as with the whole answer.
	LeastTokens   int64
	LeastMicroUSD int64
}

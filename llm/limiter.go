package llm

import (
	"context"

	"github.com/claybot/claybot"
)

// A Limiter limits what model calls cost: it reserves the most that a call can cost
// before the call is made, and charges what it cost afterwards.
type Limiter interface {
	// Reserve reserves what a call can take at most on every budget that it belongs to,
	// or on none. The error is an *Error of class Budget when one of them has not that
	// much left, most often a *LimitError; its text is for the person. A nil
	// Reservation comes with an error only.
	Reserve(ctx context.Context, c Charge) (Reservation, error)
}

// A Reservation is what was reserved for one call.
type Reservation interface {
	// Settle charges what the call took instead. Call it exactly once; a reservation
	// that is never settled, because the process died, is charged in full.
	Settle(ctx context.Context, u claybot.Usage) error
	// Binding reports whether a hard budget pays, so that the call must not take more
	// than was reserved.
	Binding() bool
}

// A Charge is what one call can take at most.
type Charge struct {
	Agent  claybot.AgentID
	Run    claybot.RunID
	Model  string
	Tokens int64 // input and output together
	// CostMicroUSD is what they cost. Priced is false where no price is known; budgets
	// in money then refuse the call.
	CostMicroUSD int64
	Priced       bool
	// LeastTokens and LeastMicroUSD are the same with a short answer: with so much
	// room the call can be made. 0: as with the whole answer.
	LeastTokens   int64
	LeastMicroUSD int64
}

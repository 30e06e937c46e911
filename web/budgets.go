package web

import (
	"context"

	"github.com/claybot/claybot/storage"
)

// Budgets are those of the configuration, as they stand.
type Budgets interface {
	// Budgets lists them, the one used last first, at most limit.
	Budgets(ctx context.Context, limit int) ([]storage.Budget, error)
	// Extend raises the limit of one for the rest of its period; storage.ErrNotFound
	// where no call was made on it yet, storage.ErrState where it counts in another
	// unit. The same id again changes nothing.
	Extend(ctx context.Context, e storage.Extension) (storage.Budget, error)
}

// A BudgetList is budgets with what is spent and left.
type BudgetList struct {
	Budgets []BudgetView `json:"budgets" doc:"Most recently used first."`
}

// A BudgetView is one budget and what is left of it.
type BudgetView struct {
	storage.Budget
	Left int64 `json:"left" doc:"What can still be reserved; negative if usage exceeded its reservation."`
}

// An Extension raises the limit of a budget for the rest of its period.
type Extension struct {
	Key    string  `json:"key" doc:"The key of the budget, as listed."`
	USD    float64 `json:"usd,omitempty" doc:"US dollars to add, for a budget in money."`
	Tokens int64   `json:"tokens,omitempty" doc:"Tokens to add, for a budget in tokens."`
	// IdempotencyKey is that of the request.
	IdempotencyKey string `json:"idempotencyKey,omitempty" doc:"Retrying with the same key changes nothing."`
}

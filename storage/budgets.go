package storage

import (
	"context"
	"fmt"

	"github.com/claybot/claybot"
)

// Budgets stores limits, spending, and reservations for calls in flight. A
// reservation is atomic: it counts on all of its budgets or on none, also with
// concurrent calls.
type Budgets interface {
	// Reserve reserves an amount on every level. If a hard level has not enough left, it reserves
	// nothing and returns an *OverBudgetError; from then on that budget can be extended. A repeated
	// id changes nothing while its reservation exists.
	Reserve(ctx context.Context, r Reservation) error
	// Book replaces the reservation of an id with the actual amount and returns
	// the budgets. An id without a reservation changes nothing and returns
	// none.
	Book(ctx context.Context, id string, actual Amount) ([]Budget, error)
	// Abandoned books the reservations of lost members in full and returns their
	// number. Lost are the members, other than node, whose lease has expired or that
	// have left; in a store that one process uses alone, all others. Call it at
	// start and whenever a member is lost.
	Abandoned(ctx context.Context, node string) (int, error)
	// Extend raises the limit of a budget for the rest of its period.
	// ErrNotFound if the budget was never used, ErrState if it counts in
	// another unit. A repeated id changes nothing.
	Extend(ctx context.Context, e Extension) (Budget, error)
	// Budgets lists at most limit budgets, the most recently used first.
	Budgets(ctx context.Context, limit int) ([]Budget, error)
}

// An Amount is the actual or maximum cost of a call.
type Amount struct {
	Tokens   int64 `json:"tokens"` // input and output together
	MicroUSD int64 `json:"microUSD"`
	// Unpriced counts the calls with an unknown price, which are not in
	// MicroUSD.
	Unpriced int64 `json:"unpriced,omitempty"`
}

// Of returns the value of a in a unit.
func (a Amount) Of(u Unit) int64 {
	if u == UnitTokens {
		return a.Tokens
	}
	return a.MicroUSD
}

// A Unit is the unit of a budget.
type Unit string

// The units of budgets.
const (
	UnitMicroUSD Unit = "microUSD" // millionths of a US dollar
	UnitTokens   Unit = "tokens"
)

// PeriodAlways is the period of a budget that never resets.
const PeriodAlways = "always"

// A Level is one budget of a call, as configured at that moment.
type Level struct {
	Key    string // with its period: another day is another budget
	Period string // 2026-01-31, 2026-01, run or always
	Name   string // for people
	Unit   Unit
	Limit  int64
	Hard   bool // else it only warns
}

// A Reservation is the maximum cost of one call.
type Reservation struct {
	ID     string // unique for every call
	Node   string // that makes the call
	Run    claybot.RunID
	Levels []Level
	Amount Amount
}

// An Extension raises the limit of a budget.
type Extension struct {
	ID  string // the same id counts once
	Key string
	By  int64 // in the unit of the budget, above 0
	// Unit must be the unit of the budget; empty skips the check.
	Unit Unit
	Who  string
}

// A Budget is the state of one budget. All amounts are in its unit.
type Budget struct {
	Key       string       `json:"key"`
	Period    string       `json:"period"`
	Name      string       `json:"name"`
	Unit      Unit         `json:"unit"`
	Hard      bool         `json:"hard"`
	Limit     int64        `json:"limit"` // as configured when it was used last
	Extension int64        `json:"extension"`
	Spent     int64        `json:"spent"`
	Reserved  int64        `json:"reserved"`           // for calls under way
	Unpriced  int64        `json:"unpriced,omitempty"` // calls with an unknown price, which are not in Spent
	Used      claybot.Time `json:"usedAt"`
	// Waiting counts the runs that wait for an extension. Stores leave it 0;
	// package budgets fills it in.
	Waiting int `json:"waiting,omitempty"`
}

// Left returns the amount that can still be reserved; negative if calls cost
// more than reserved.
func (b Budget) Left() int64 { return b.Limit + b.Extension - b.Spent - b.Reserved }

// An OverBudgetError names the budget that has not enough left for a
// reservation.
type OverBudgetError struct {
	Budget
	Asked int64
}

func (e *OverBudgetError) Error() string {
	return fmt.Sprintf("budget %s: %d %s asked, %d left", e.Key, e.Asked, e.Unit, e.Left())
}

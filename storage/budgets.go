package storage

import (
	"context"
	"fmt"

	"github.com/claybot/claybot"
)

// Budgets keeps what may be spent, what is spent, and what is set aside for
// calls that are under way. A reservation counts on all of its budgets or on
// none, whoever reserves at the same moment.
type Budgets interface {
	// Reserve sets an amount aside on every level. The error is an
	// *OverBudgetError, and nothing is set aside, when a hard level has not that
	// much left; that budget can be extended from then on. The same id again, while it is set aside, changes nothing.
	Reserve(ctx context.Context, r Reservation) error
	// Book enters what was really taken in place of what an id has set aside,
	// and tells how its budgets stand. An id that is not set aside, or not any
	// more, changes nothing and tells nothing.
	Book(ctx context.Context, id string, actual Amount) ([]Budget, error)
	// Abandoned enters what nodes have set aside that are not there any more, as it
	// was set aside, and returns how many reservations that were. Those are, besides
	// this one, the nodes whose beat has run out or that have left, and in a store
	// that one process uses alone all others. Call it at start and whenever a node
	// has gone.
	Abandoned(ctx context.Context, node string) (int, error)
	// Extend raises the limit of a budget for the rest of its period.
	// ErrNotFound when nothing was ever asked of it, ErrState when it
	// counts in another unit. The same id again changes nothing.
	Extend(ctx context.Context, e Extension) (Budget, error)
	// Budgets lists budgets, the one used last first, at most limit.
	Budgets(ctx context.Context, limit int) ([]Budget, error)
}

// An Amount is what a call takes, or may take at most.
type Amount struct {
	Tokens   int64 `json:"tokens"` // input and output together
	MicroUSD int64 `json:"microUSD"`
	// Unpriced counts the calls whose price is not known; their money is not in
	// MicroUSD.
	Unpriced int64 `json:"unpriced,omitempty"`
}

// Of is the part of a that a budget in a unit counts.
func (a Amount) Of(u Unit) int64 {
	if u == UnitTokens {
		return a.Tokens
	}
	return a.MicroUSD
}

// A Unit is what a budget counts in.
type Unit string

// The units of budgets.
const (
	UnitMicroUSD Unit = "microUSD" // millionths of a US dollar
	UnitTokens   Unit = "tokens"
)

// PeriodAlways is the period of a budget that never begins anew.
const PeriodAlways = "always"

// A Level is one budget that a call belongs to, as the configuration has it at
// that moment.
type Level struct {
	Key    string // with its period: another day is another budget
	Period string // 2026-01-31, 2026-01, run or always
	Name   string // for people
	Unit   Unit
	Limit  int64
	Hard   bool // else it only warns
}

// A Reservation is what one call may take at most.
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
	// Unit is that of the budget; empty where it is known to be.
	Unit Unit
	Who  string
}

// A Budget is how one budget stands. All figures are in its unit.
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
	Unpriced  int64        `json:"unpriced,omitempty"` // calls that are not in Spent, as nobody knows their price
	Used      claybot.Time `json:"usedAt"`
	// Waiting counts the runs that wait for more of it. A store does not know; who
	// lists budgets for people says so.
	Waiting int `json:"waiting,omitempty"`
}

// Left is what may still be set aside; negative when more was taken than was
// to be expected.
func (b Budget) Left() int64 { return b.Limit + b.Extension - b.Spent - b.Reserved }

// An OverBudgetError says which budget has not enough left for a reservation.
type OverBudgetError struct {
	Budget
	Asked int64
}

func (e *OverBudgetError) Error() string {
	return fmt.Sprintf("budget %s: %d %s asked, %d left", e.Key, e.Asked, e.Unit, e.Left())
}

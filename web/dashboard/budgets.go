package dashboard

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/claybot/claybot/lazyregexp"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

const (
	budgetRows   = 50        // that are shown
	maxExtension = 1_000_000 // in the units that people type
)

// budgetPages serves budgets. Without a store there are none.
type budgetPages struct {
	*pages
	store web.Budgets
}

func (b *budgetPages) routes() []web.Route {
	return []web.Route{
		b.part("/ui/usage/budgets", "usage", "budgets", func(r *http.Request) (any, error) { return b.readBudgets(r) }),
		b.act("POST /ui/usage/budgets/extend", web.Admin, b.extendBudget),
	}
}

// A budgetsView lists budgets. Off: none is configured.
type budgetsView struct {
	viewer
	Off  bool
	Rows []budgetRow
	More int
}

// A budgetRow is one budget.
type budgetRow struct{ storage.Budget }

// Amount writes an amount in the unit of the budget.
func (r budgetRow) Amount(n int64) string { return amount(r.Unit, n) }

// amount writes an amount in the unit of a budget.
func amount(u storage.Unit, n int64) string {
	switch {
	case u == storage.UnitTokens:
		return grouped(n) + " tokens"
	case n < 0:
		return "−" + money(-n)
	}
	return money(n)
}

// Most is the limit with its extensions.
func (r budgetRow) Most() int64 { return r.Limit + r.Extension }

// Share is how much of the limit is spent or reserved, in percent, at most 100.
func (r budgetRow) Share() int {
	most := float64(r.Most())
	if most <= 0 {
		return 100
	}
	return int(min(max((float64(r.Spent)+float64(r.Reserved))/most*100, 0), 100))
}

func (r budgetRow) Money() bool { return r.Unit != storage.UnitTokens }

// Tone is the colour of what is left.
func (r budgetRow) Tone() string {
	switch {
	case r.Left() <= 0 && r.Hard:
		return "bad"
	case r.Share() >= 80:
		return "warn"
	}
	return "good"
}

// Resets says when the period of the budget ends.
func (r budgetRow) Resets() string {
	switch {
	case r.Period == storage.PeriodAlways:
		return "never"
	case r.Period == "run":
		return "with each run"
	case len(r.Period) == len("2026-01-31"):
		return "at the end of " + r.Period
	case len(r.Period) == len("2026-01"):
		return "at the end of the month " + r.Period
	}
	return r.Period
}

// Step identifies the state of the budget, so that an extension sent twice counts once.
func (r budgetRow) Step() string { return fmt.Sprintf("%s-%d", r.Period, r.Extension) }

func (b *budgetPages) readBudgets(r *http.Request) (budgetsView, error) {
	v := budgetsView{viewer: viewerOf(r), Off: b.store == nil}
	if v.Off {
		return v, nil
	}
	all, err := b.store.Budgets(r.Context(), budgetRows+1)
	all, v.More = cut(all, budgetRows)
	for _, one := range all {
		v.Rows = append(v.Rows, budgetRow{one})
	}
	return v, err
}

var (
	amountForm = lazyregexp.New(`^[0-9]{1,13}([.,][0-9]{1,6})?$`)
	stepForm   = lazyregexp.New(`^[A-Za-z0-9-]{1,40}$`)
)

func (b *budgetPages) extendBudget(r *http.Request) (string, error) {
	e := storage.Extension{Key: r.Form.Get("key"), Unit: storage.Unit(r.Form.Get("unit")), Who: web.User(r)}
	step, amount := r.Form.Get("step"), strings.TrimSpace(r.Form.Get("amount"))
	n, err := strconv.ParseFloat(strings.Replace(amount, ",", ".", 1), 64)
	switch {
	case b.store == nil:
		return "", errNoBudgets
	case e.Key == "" || !stepForm.MatchString(step):
		return "", errNoBudget
	case err != nil || !amountForm.MatchString(amount) || n <= 0:
		return "", errAmount
	case e.Unit == storage.UnitMicroUSD && n > maxExtension:
		return "", errTooMuch
	case e.Unit == storage.UnitMicroUSD:
		e.By = int64(math.Round(n * 1e6))
	case e.Unit == storage.UnitTokens && (n != math.Trunc(n) || n > maxExtension*1e6):
		return "", errTokens
	case e.Unit == storage.UnitTokens:
		e.By = int64(n)
	default:
		return "", errUnit
	}
	e.ID = fmt.Sprintf("page/%s/%s/%s/%d", e.Who, e.Key, step, e.By)
	after, err := b.store.Extend(r.Context(), e)
	if errors.Is(err, storage.ErrState) {
		err = errOtherUnit
	}
	row := budgetRow{after}
	return fmt.Sprintf(doneExtended, row.Amount(row.Left()), row.Amount(row.Most())), err
}

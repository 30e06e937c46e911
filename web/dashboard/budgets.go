package dashboard

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// budgetRows is how many budgets are shown.
const budgetRows = 50

// budgetPages are the pages of budgets.
type budgetPages struct {
	*pages
	store web.Budgets // nil: there are none
}

func (b *budgetPages) routes() []web.Route {
	return []web.Route{
		b.part("/ui/usage/budgets", "usage", "budgets", b.usageBudgets),
		b.act("POST /ui/usage/budgets/extend", web.Admin, b.extendBudget),
	}
}

// A budgetsView is what may be spent and how far that is done.
type budgetsView struct {
	viewer
	Off  bool // nobody said that anything is limited
	Rows []budgetRow
	More int
}

// A budgetRow is one budget.
type budgetRow struct {
	storage.Budget
}

// Amount writes an amount of the budget's unit.
func (r budgetRow) Amount(n int64) string {
	switch {
	case r.Unit == storage.UnitTokens:
		return grouped(n) + " tokens"
	case n < 0:
		return "−" + money(-n)
	}
	return money(n)
}

// Most is the limit with its extensions.
func (r budgetRow) Most() int64 { return r.Limit + r.Extension }

// Share is how much of the limit is spent or set aside, in percent, at most 100.
func (r budgetRow) Share() int {
	most := float64(r.Most())
	if most <= 0 {
		return 100
	}
	return int(min(max((float64(r.Spent)+float64(r.Reserved))/most*100, 0), 100))
}

// Money reports whether the budget is one in money.
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

// Resets says when the budget begins anew.
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

// Step names how the budget stands, for an extension that is sent twice.
func (r budgetRow) Step() string { return fmt.Sprintf("%s-%d", r.Period, r.Extension) }

func (b *budgetPages) usageBudgets(r *http.Request) (any, error) { return b.readBudgets(r) }

func (b *budgetPages) readBudgets(r *http.Request) (budgetsView, error) {
	v := budgetsView{viewer: viewerOf(r), Off: b.store == nil}
	if v.Off {
		return v, nil
	}
	all, err := b.store.Budgets(r.Context(), budgetRows+1)
	if err != nil {
		return v, err
	}
	all, v.More = cut(all, budgetRows)
	for _, one := range all {
		v.Rows = append(v.Rows, budgetRow{one})
	}
	return v, nil
}

var (
	amountForm = regexp.MustCompile(`^[0-9]{1,13}([.,][0-9]{1,6})?$`)
	stepForm   = regexp.MustCompile(`^[A-Za-z0-9-]{1,40}$`)
)

// maxExtension is more than anybody has, in the units that people type.
const maxExtension = 1_000_000

// extendBudget raises a limit. The same form sent twice counts once: it names how
// the budget stood when it was shown.
func (b *budgetPages) extendBudget(r *http.Request) (string, error) {
	if b.store == nil {
		return "", refused(http.StatusNotFound, "There are no budgets.", "Add some to the configuration.")
	}
	e := storage.Extension{Key: r.Form.Get("key"), Unit: storage.Unit(r.Form.Get("unit")), Who: web.User(r)}
	step, amount := r.Form.Get("step"), strings.TrimSpace(r.Form.Get("amount"))
	if e.Key == "" || !stepForm.MatchString(step) {
		return "", refused(http.StatusBadRequest, "The form does not say which budget.", "Load the page again.")
	}
	n, err := strconv.ParseFloat(strings.Replace(amount, ",", ".", 1), 64)
	if err != nil || !amountForm.MatchString(amount) || n <= 0 {
		return "", refused(http.StatusBadRequest, "Give an amount above 0.", "For example 5 or 2.50.")
	}
	switch e.Unit {
	case storage.UnitMicroUSD:
		if n > maxExtension {
			return "", refused(http.StatusBadRequest, "That is too much at once.", "Give less, or change the configuration.")
		}
		e.By = int64(math.Round(n * 1e6))
	case storage.UnitTokens:
		if n != math.Trunc(n) || n > maxExtension*1e6 {
			return "", refused(http.StatusBadRequest, "Tokens are whole, and not that many.", "")
		}
		e.By = int64(n)
	default:
		return "", refused(http.StatusBadRequest, "There is no such unit.", "Load the page again.")
	}
	e.ID = fmt.Sprintf("page/%s/%s/%s/%d", e.Who, e.Key, step, e.By)
	after, err := b.store.Extend(r.Context(), e)
	if errors.Is(err, storage.ErrState) {
		return "", refused(http.StatusConflict, "That budget counts in another unit by now.", "Load the page again.")
	}
	if err != nil {
		return "", err
	}
	row := budgetRow{after}
	return "Extended. " + row.Amount(row.Left()) + " left of " + row.Amount(row.Most()) + ".", nil
}

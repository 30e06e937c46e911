package api

import (
	"crypto/rand"
	"errors"
	"math"
	"net/http"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

var noBudget = hint{"No such budget.", "GET /budgets lists all budgets. A budget without spending does not exist yet: change its limit in the configuration."}

func viewBudget(b storage.Budget) web.BudgetView { return web.BudgetView{Budget: b, Left: b.Left()} }

// budgetAPI serves budgets; nil: there are none.
type budgetAPI struct{ budgets web.Budgets }

func (a budgetAPI) operations() []operation {
	off := &web.Problem{Status: http.StatusNotFound, Code: "off", Message: "Budgets are off.", Fix: "Add some to the configuration."}
	return whereOn(a.budgets != nil, off, operation{tag: "reports", missing: noBudget}.like(
		returns(http.StatusOK, op("listBudgets", web.Read, "GET /budgets", "List budgets: spent, reserved and left.").
			explained("Money is in millionths of a US dollar. Only budgets with spending are listed; each period starts a new one.").
			query(limitParam).failing(http.StatusNotFound), a.list),
		takes(http.StatusOK, op("extendBudget", web.Admin, "POST /budgets/extend", "Raise the limit of a budget for the rest of its period.").
			query(keyHeaderParam).failing(http.StatusNotFound, http.StatusConflict), a.extend),
	))
}

func (a budgetAPI) list(r *http.Request) (none web.BudgetList, err error) {
	all, err := a.budgets.Budgets(r.Context(), limitOf(r, pageDefault))
	return web.BudgetList{Budgets: each(all, viewBudget)}, err
}

// maxExtension exceeds any real budget.
const maxExtension = 1_000_000

func (a budgetAPI) extend(r *http.Request, in web.Extension) (none web.BudgetView, err error) {
	by := storage.Extension{Key: in.Key, Who: web.CallerOf(r).Name}
	by.Unit = storage.UnitMicroUSD
	switch {
	case in.Key == "":
		return none, bad("key is missing.", "GET /budgets lists the keys.")
	case (in.USD != 0) == (in.Tokens != 0):
		return none, bad("Set either usd or tokens.", "")
	case in.Tokens != 0:
		by.By, by.Unit = in.Tokens, storage.UnitTokens
	case in.USD > 0 && in.USD <= maxExtension:
		by.By = int64(math.Round(in.USD * 1e6))
	}
	if by.By <= 0 || by.By > maxExtension*1e6 {
		return none, bad("The amount must be greater than 0, and not too large.", "")
	}
	in.IdempotencyKey = keyOf(r, in.IdempotencyKey)
	if in.IdempotencyKey != "" && (len(in.IdempotencyKey) > 128 || !keyForm.MatchString(in.IdempotencyKey)) {
		return none, bad("idempotencyKey must be 1 to 128 letters, digits and . _ : -", "")
	}
	by.ID = "api/" + by.Who + "/" + in.IdempotencyKey
	if in.IdempotencyKey == "" {
		by.ID = "api/" + rand.Text()
	}
	b, err := a.budgets.Extend(r.Context(), by)
	if errors.Is(err, storage.ErrState) {
		err = conflict("That budget does not count in "+string(by.Unit)+".", "Give usd for a budget in money, tokens for one in tokens.")
	}
	return viewBudget(b), err
}

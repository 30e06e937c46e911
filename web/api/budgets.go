package api

import (
	"context"
	"crypto/rand"
	"errors"
	"math"
	"net/http"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// Budgets are those of the configuration, as they stand.
type Budgets interface {
	// Budgets lists them, the one used last first, at most limit.
	Budgets(ctx context.Context, limit int) ([]storage.Budget, error)
	// Extend raises the limit of one for the rest of its period; storage.ErrNotFound
	// where no call was made on it yet. The same id again changes nothing.
	Extend(ctx context.Context, e storage.Extension) (storage.Budget, error)
}

var noBudget = hint{"There is no such budget.", "GET /budgets lists them. One that nothing was spent on is not there yet: change its limit in the configuration."}

type (
	budgetList struct {
		Budgets []budgetView `json:"budgets" doc:"The one used last first."`
	}
	budgetView struct {
		storage.Budget
		Left int64 `json:"left" doc:"What may still be set aside; negative when more was taken than was to be expected."`
	}
	extension struct {
		Key    string  `json:"key" doc:"Of the budget, as listed."`
		USD    float64 `json:"usd,omitempty" doc:"How many US dollars more, for a budget in money."`
		Tokens int64   `json:"tokens,omitempty" doc:"How many tokens more, for a budget in tokens."`
		// IdempotencyKey is that of the request.
		IdempotencyKey string `json:"idempotencyKey,omitempty" doc:"A repeat under the same key changes nothing."`
	}
)

func viewBudget(b storage.Budget) budgetView { return budgetView{b, b.Left()} }

func (a *api) budgetOperations() []operation {
	return []operation{
		{
			id: "listBudgets", method: http.MethodGet, path: "/budgets", tag: "reports", scope: web.Read, summary: "Budgets: what is spent, set aside and left.",
			about:   "Money is in millionths of a US dollar. Only budgets that something was spent on are listed; with each period begins a new one.",
			params:  []param{limitParam},
			answers: []answer{{status: http.StatusOK, value: budgetList{}}}, fails: []int{http.StatusNotFound}, missing: noBudget, serve: a.withBudgets(listBudgets),
		},
		{
			id: "extendBudget", method: http.MethodPost, path: "/budgets/extend", tag: "reports", scope: web.Admin,
			summary: "Raise the limit of a budget for the rest of its period.", params: []param{keyHeaderParam}, body: extension{},
			answers: []answer{{status: http.StatusOK, value: budgetView{}}}, fails: []int{http.StatusNotFound, http.StatusConflict}, missing: noBudget,
			serve: a.withBudgets(extendBudget),
		},
	}
}

// withBudgets serves fn while there are budgets.
func (a *api) withBudgets(fn func(http.ResponseWriter, *http.Request, Budgets) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if a.Budgets == nil {
			return &problem{status: http.StatusNotFound, Code: "off", Message: "Budgets are off.", Fix: "Add some to the configuration."}
		}
		return fn(w, r, a.Budgets)
	}
}

func listBudgets(w http.ResponseWriter, r *http.Request, all Budgets) error {
	n, err := limitOf(r, pageDefault)
	if err != nil {
		return err
	}
	list, err := all.Budgets(r.Context(), n)
	if err != nil {
		return err
	}
	out := budgetList{Budgets: make([]budgetView, len(list))}
	for i, b := range list {
		out.Budgets[i] = viewBudget(b)
	}
	return reply(w, http.StatusOK, out)
}

// maxExtension is more than anybody has.
const maxExtension = 1_000_000

func extendBudget(w http.ResponseWriter, r *http.Request, all Budgets) error {
	var in extension
	if err := readBody(r, &in); err != nil {
		return err
	}
	by := storage.Extension{Key: in.Key, Who: web.CallerOf(r).Name}
	by.Unit = storage.UnitMicroUSD
	switch {
	case in.Key == "":
		return bad("key is missing.", "GET /budgets lists the keys.")
	case (in.USD != 0) == (in.Tokens != 0):
		return bad("Give either usd or tokens.", "")
	case in.Tokens != 0:
		by.By, by.Unit = in.Tokens, storage.UnitTokens
	case in.USD > 0 && in.USD <= maxExtension:
		by.By = int64(math.Round(in.USD * 1e6))
	}
	if by.By <= 0 || by.By > maxExtension*1e6 {
		return bad("That amount is not above 0, or too large.", "")
	}
	in.IdempotencyKey = keyOf(r, in.IdempotencyKey)
	if in.IdempotencyKey != "" && (len(in.IdempotencyKey) > 128 || !keyForm.MatchString(in.IdempotencyKey)) {
		return bad("idempotencyKey must be 1 to 128 letters, digits and . _ : -", "")
	}
	by.ID = "api/" + by.Who + "/" + in.IdempotencyKey
	if in.IdempotencyKey == "" {
		by.ID = "api/" + rand.Text()
	}
	b, err := all.Extend(r.Context(), by)
	switch {
	case errors.Is(err, storage.ErrState):
		return conflict("That budget does not count in "+string(by.Unit)+".", "Give usd for a budget in money, tokens for one in tokens.")
	case err != nil:
		return err
	}
	return reply(w, http.StatusOK, viewBudget(b))
}

package main

import (
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

type budgetsCmd struct {
	List   budgetsListCmd   `cmd:"" default:"withargs" help:"List budgets with spent, reserved and remaining amounts, most recently used first."`
	Extend budgetsExtendCmd `cmd:"" help:"Raise the limit of a budget until its period ends."`
}

type (
	budgetsListCmd struct {
		Limit int  `default:"50" help:"Maximum number of budgets, up to 500."`
		JSON  bool `name:"json" help:"Print JSON."`
	}
	budgetsExtendCmd struct {
		Key    string  `arg:"" name:"budget" help:"Key of the budget, as listed by budgets."`
		USD    float64 `name:"usd" help:"US dollars to add, for a budget in money."`
		Tokens int64   `help:"Tokens to add, for a budget in tokens."`
		JSON   bool    `name:"json" help:"Print JSON."`
	}
)

// Run lists the budgets.
func (c budgetsListCmd) Run(e *env) error {
	if c.Limit < 1 || c.Limit > 500 {
		return usageError{errors.New("--limit must be within 1 and 500")}
	}
	return show(e, c.JSON, to(fmt.Sprintf("/budgets?limit=%d", c.Limit)), func(out web.BudgetList) error {
		rows := [][]string{{"BUDGET", "SPENT", "ASIDE", "LEFT", "LIMIT", "WAITING", "AT THE LIMIT", "BEGINS ANEW"}}
		for _, b := range out.Budgets {
			rows = append(rows, budgetRow(b))
		}
		return e.list(rows, "No budget has been used yet.\n")
	})
}

// budgetRow is a budget as a line of a table.
func budgetRow(b web.BudgetView) []string {
	spent, limit, end := amount(b.Unit, b.Spent), amount(b.Unit, b.Limit), "stops"
	if b.Unpriced > 0 {
		spent = fmt.Sprintf("≥ %s, %s unpriced", spent, calls(b.Unpriced))
	}
	if b.Extension > 0 {
		limit += " + " + amount(b.Unit, b.Extension)
	}
	if !b.Hard {
		end = "warns"
	}
	return []string{b.Key, spent, amount(b.Unit, b.Reserved), amount(b.Unit, b.Left), limit, budgetWaiting(b), end, anew(b.Period)}
}

// budgetWaiting says how many runs wait for more of the budget.
func budgetWaiting(b web.BudgetView) string {
	if b.Waiting == 0 {
		return "-"
	}
	return count(b.Waiting, "run")
}

func amount(u storage.Unit, n int64) string {
	if u == storage.UnitTokens {
		return fmt.Sprint(n)
	}
	return llm.Dollars(n)
}

// anew says when a budget begins anew, by its period.
func anew(period string) string {
	switch {
	case period == storage.PeriodAlways:
		return "never"
	case period == "run":
		return "with each run"
	case len(period) == len("2006-01"):
		return "after " + period
	}
	return "after the day " + period
}

// Run extends a budget. Each call counts, so a key of its own keeps only the
// request itself from counting twice.
func (c budgetsExtendCmd) Run(e *env) error {
	if (c.USD > 0) == (c.Tokens > 0) || c.USD < 0 || c.Tokens < 0 {
		return usageError{errors.New("say how much more: --usd or --tokens, above 0")}
	}
	in := web.Extension{Key: c.Key, USD: c.USD, Tokens: c.Tokens, IdempotencyKey: rand.Text()}
	out, err := ask[web.BudgetView](e, "POST", to("/budgets/extend"), in)
	if err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(out)
	}
	return e.text(fmt.Sprintf("%s: %s of %s are spent, %s are left. Runs that wait for it try again.\n",
		out.Key, amount(out.Unit, out.Spent), amount(out.Unit, out.Limit+out.Extension), amount(out.Unit, out.Left)))
}

package budgets

import (
	"cmp"
	"fmt"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/storage"
)

// limitError says in words why the store refused a call. name is what the payer calls
// the budget.
func limitError(o *storage.OverBudgetError, name string, c llm.Charge) *llm.LimitError {
	e := &llm.LimitError{
		Key: o.Key, Name: name, Of: o.Name, Tokens: o.Unit == storage.UnitTokens,
		Limit: o.Limit + o.Extension, Spent: o.Spent, Left: o.Left(), Asked: o.Asked, Least: c.LeastMicroUSD,
	}
	if e.Tokens {
		e.Least = c.LeastTokens
	}
	e.Least = cmp.Or(e.Least, e.Asked)
	if e.Spent >= e.Limit {
		e.Text = fmt.Sprintf("%s is used up: %s.", connectors.Capital(name), e.Standing())
		return e
	}
	aside := ""
	if o.Reserved > 0 {
		aside = ", " + e.Amount(o.Reserved) + " more is set aside for other runs"
	}
	takes := "needs at least " + e.Amount(e.Least)
	if e.Least <= e.Limit-e.Spent { // it fits as soon as others settle
		takes = "may take up to " + e.Amount(e.Asked)
	}
	e.Text = fmt.Sprintf("%s is too small for the next step: %s%s, and the step %s.", connectors.Capital(name), e.Standing(), aside, takes)
	return e
}

// refusal is the error of a call to which a rule with a Fault applies. Only operators
// read the fault.
func (l *Limiter) refusal(who payer, fault string) *llm.LimitError {
	text := "A budget is not configured correctly, so nothing may be spent; the operator can see why with `claybot status`."
	if l.cfg.People.IsOperator(who.root.OwnerID()) {
		text += "\n\n" + fault
	}
	return &llm.LimitError{Name: "a budget", Text: text}
}

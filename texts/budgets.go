package texts

import (
	"fmt"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/llm"
)

// BudgetFault refuses a model call under a budget whose configuration is invalid.
const BudgetFault = "A budget is not configured correctly, so I can't spend anything; operators can see why with `claybot status`."

// BudgetDefault says where the budget comes from that claybot sets by itself.
const BudgetDefault = "This is the default limit for each person; operators change it with `budgets` in the configuration."

// OverBudget says why a budget refuses the model call of e; others is what other runs have
// reserved of it.
func OverBudget(e *llm.LimitError, others int64) string {
	name := connectors.Capital(e.Name)
	if e.Spent >= e.Limit {
		return fmt.Sprintf("%s is used up: %s.", name, e.Standing())
	}
	aside := ""
	if others > 0 {
		aside = ", " + e.Amount(others) + " more is reserved for other runs"
	}
	takes := "needs at least " + e.Amount(e.Least)
	if e.Least <= e.Limit-e.Spent { // it fits as soon as others settle
		takes = "may take up to " + e.Amount(e.Asked)
	}
	return fmt.Sprintf("%s is too small for the next step: %s%s, and the step %s.", name, e.Standing(), aside, takes)
}

// BudgetWarning says that most of a budget is spent; standing says how much, and hard that
// the limit stops runs.
func BudgetWarning(name, standing string, hard bool) string {
	text := connectors.Capital(name) + ": " + standing + "."
	if hard {
		return text + " At the limit I'll stop and ask."
	}
	return text + " This is only a warning; I'll continue."
}

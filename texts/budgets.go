package texts

import (
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/llm"
)

// BudgetFault refuses a model call under a budget whose configuration is invalid.
const BudgetFault = "A budget is not configured correctly, so I can't spend anything; operators can see why with `claybot status`."

// BudgetDefault says where the budget comes from that claybot sets by itself.
const BudgetDefault = "This is the default limit for each person; operators change it with `budgets` in the configuration."

// OverBudget says why a budget refuses the model call of e; others is what other runs have
// reserved of it.
func (v Voice) OverBudget(e *llm.LimitError, others int64) string {
	name, standing := connectors.Capital(v.In(e.Name)), v.standing(e.Tokens, e.Spent, e.Limit)
	switch {
	case e.Spent >= e.Limit:
		return v.Say("%s is used up: %s.", name, standing)
	case others > 0:
		standing = v.Say("%s, %s more is reserved for other runs", standing, v.amount(e.Tokens, others))
	}
	if e.Least <= e.Limit-e.Spent { // it fits as soon as others settle
		return v.Say("%s is too small for the next step: %s, and the step may take up to %s.", name, standing, v.amount(e.Tokens, e.Asked))
	}
	return v.Say("%s is too small for the next step: %s, and the step needs at least %s.", name, standing, v.amount(e.Tokens, e.Least))
}

// BudgetWarning says that most of a budget is spent, and hard that the limit stops runs.
func (v Voice) BudgetWarning(name string, tokens bool, spent, limit int64, hard bool) string {
	text := connectors.Capital(v.In(name)) + ": " + v.standing(tokens, spent, limit) + ". "
	if hard {
		return text + v.Say("At the limit I'll stop and ask.")
	}
	return text + v.Say("This is only a warning; I'll continue.")
}

// standing says how much of a limit is spent; see llm.Standing.
func (v Voice) standing(tokens bool, spent, limit int64) string {
	of := v.amount(tokens, limit)
	switch {
	case spent == 0:
		return v.Say("nothing of %s is spent", of)
	case tokens:
		return v.Say("%s of %s are spent", llm.Grouped(spent), of)
	}
	return v.Say("%s of %s is spent", llm.Dollars(spent), of)
}

// amount is llm.Amount.
func (v Voice) amount(tokens bool, n int64) string {
	if !tokens {
		return llm.Dollars(n)
	}
	if v.grammar().plural(n) == 0 {
		return v.Say("1 token")
	}
	return v.Say("%s tokens", llm.Grouped(n))
}

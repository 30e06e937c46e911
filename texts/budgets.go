package texts

import (
	"cmp"
	"strings"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/lazyregexp"
	"github.com/claybot/claybot/llm"
)

// BudgetFault refuses a model call under a budget whose configuration is invalid.
const BudgetFault = "A budget is not configured correctly, so I can't spend anything; operators can see why with `claybot status`."

// BudgetDefault says where the budget comes from that claybot sets by itself.
const BudgetDefault = "This is the default limit for each person; operators change it with `budgets` in the configuration."

// OverBudget says why a budget refuses the model call of e; others is what other runs have
// reserved of it.
func (v Voice) OverBudget(e *llm.LimitError, others int64) string {
	name, standing := connectors.Capital(v.BudgetName(e.Name)), v.standing(e.Tokens, e.Spent, e.Limit)
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
	text := connectors.Capital(v.BudgetName(name)) + ": " + v.standing(tokens, spent, limit) + ". "
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
		return v.Say("%s of %s are spent", v.grouped(llm.Grouped(spent)), of)
	}
	return v.Say("%s of %s is spent", v.Dollars(spent), of)
}

// amount is llm.Amount.
func (v Voice) amount(tokens bool, n int64) string {
	if !tokens {
		return v.Dollars(n)
	}
	if v.grammar().plural(n) == 0 {
		return v.Say("1 token")
	}
	return v.Say("%s tokens", v.grouped(llm.Grouped(n)))
}

// ShallExtend asks a person whose budget is used up, and NotExtended says how that ended.
const (
	ShallExtend = "Shall I ask an operator to extend it?"
	NotExtended = "It was not extended."
)

// ExtendBudget asks operators to extend a budget by an amount, so that a run of who can go on; an
// empty who is the reader.
func (v Voice) ExtendBudget(l *llm.LimitError, budget string, by int64, who string) string {
	text := v.Say("Extend %s by %s? So far %s, and the next step needs at least %s.",
		v.BudgetName(budget), v.amount(l.Tokens, by), v.standing(l.Tokens, l.Spent, l.Limit), v.amount(l.Tokens, cmp.Or(l.Least, l.Asked)))
	if who == "" {
		return text + " " + v.Say("Your run waits for it.")
	}
	return text + " " + v.Say("A run of %s waits for it.", connectors.Literal(who, 200))
}

// budgetNames are the names of budgets; what ends with a value stands before what ends earlier.
var budgetNames = []string{
	"the budget of one run", "the budget of all agents", "the budget of this agent", "the budget of this channel", "the budget of this task", "your budget", "a budget",
	"the budget of the agent of %s", "the budget of the agent %s", "the budget of the channel %s", "the budget of the task %s", "the budget of the token %s",
	"the budget of a run of %s", "the budget of %s",
}

// budgetPeriods are what follows a name.
var budgetPeriods = []string{"%s for today", "%s for this month", "%s for %s"}

// BudgetName is the name of a budget, which is stored in English.
func (v Voice) BudgetName(name string) string {
	for _, period := range budgetPeriods[:2] {
		if rest, ok := strings.CutSuffix(name, strings.TrimPrefix(period, "%s")); ok {
			return v.Say(period, v.BudgetName(rest))
		}
	}
	if m := dated.FindStringSubmatch(name); m != nil {
		return v.Say(budgetPeriods[2], v.BudgetName(m[1]), v.date(m[2]))
	}
	for _, text := range budgetNames {
		head, value := strings.CutSuffix(text, "%s")
		switch rest, ok := strings.CutPrefix(name, head); {
		case ok && value:
			return v.Say(text, connectors.Literal(rest, 200))
		case ok && rest == "":
			return v.In(text)
		}
	}
	return name
}

// dated is the name of a budget of a day or a month, with that.
var dated = lazyregexp.New(`^(.*)\x20for\x20((?:\d{1,2}\x20)?[A-Z][a-z]+\x20\d{4})$`)

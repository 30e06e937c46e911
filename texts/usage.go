package texts

import (
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/llm"
)

// What /usage answers.
const (
	NoUsage        = "Usage isn't available here."
	UsageOwn       = "What I have cost you, in all our conversations:"
	UsageHere      = "What I have cost in this conversation:"
	UsageElsewhere = "Send me /usage in a direct message to see all that is yours."
)

// Spent says what models took since a time.
func (v Voice) Spent(since claybot.Time, u claybot.Usage) string {
	if u.LLMCalls == 0 && u.CostMicroUSD == 0 {
		return v.Say("Nothing since %s.", v.Moment(since))
	}
	tokens, calls := v.amount(true, u.Input+u.Output), v.Count(u.LLMCalls, "%d model call|%d model calls")
	var text string
	if u.Unpriced > 0 && u.CostMicroUSD == 0 {
		text = v.Say("Since %s: %s in %s.", v.Moment(since), tokens, calls)
	} else {
		text = v.Say("Since %s: %s for %s in %s.", v.Moment(since), llm.Dollars(u.CostMicroUSD), tokens, calls)
	}
	if u.Unpriced > 0 {
		text += " " + v.Count(u.Unpriced, "I don't know the price of %d of them.|I don't know the price of %d of them.")
	}
	return text
}

// Budget says how a budget stands, and when it begins anew; resets may be zero.
func (v Voice) Budget(name string, tokens bool, spent, limit int64, resets time.Time) string {
	text := connectors.Capital(v.BudgetName(name)) + ": " + v.standing(tokens, spent, limit) + "."
	if left := limit - spent; left > 0 && spent > 0 {
		text += " " + v.Say("Left: %s.", v.amount(tokens, left))
	}
	if !resets.IsZero() {
		text += " " + v.Say("A new one begins %s.", v.When(claybot.At(resets)))
	}
	return text
}

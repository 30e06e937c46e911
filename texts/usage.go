package texts

import (
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
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
		text = v.Say("Since %s: %s for %s in %s.", v.Moment(since), v.Dollars(u.CostMicroUSD), tokens, calls)
	}
	if u.Unpriced > 0 {
		text += " " + v.Count(u.Unpriced, "I don't know the price of %d of them.|I don't know the price of %d of them.")
	}
	return text
}

// FilesSent says how many bytes the files take that a person has sent; limit 0: any number.
func (v Voice) FilesSent(sent, limit int64) string {
	if limit == 0 {
		return v.Say("Files that you sent me: %s.", v.Size(sent))
	}
	return v.Say("Files that you sent me: %[1]s of %[2]s.", v.Size(sent), v.Size(limit))
}

// FilesLeftOut tells a person that the files of a message exceed their quota.
func (v Voice) FilesLeftOut(files []string, limit int64) string {
	return v.Say("I've left out %[1]s, because the files that you sent me take up the %[2]s that they may take. An operator can raise `limits.files_per_owner`, or delete agents that you no longer need with `claybot agents delete`.",
		strings.Join(files, ", "), v.Size(limit))
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

package configs

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

// The values of Budget.Per and Budget.Every.
const (
	BudgetAgent   = "agent"
	BudgetOwner   = "owner"
	BudgetChannel = "channel"
	BudgetTask    = "task"
	BudgetRun     = "run"
	BudgetAll     = "all"

	EveryRun    = "run"
	EveryDay    = "day"
	EveryMonth  = "month"
	EveryAlways = "always"
)

// The values of Budget.OnLimit.
const (
	LimitHard = "hard" // nothing is spent beyond it
	LimitWarn = "warn" // a person is told
)

// A Budget bounds what models may take. Exactly one of MicroUSD and Tokens is
// above 0.
type Budget struct {
	Per      string `key:"per" words:"agent,owner,channel,task,run,all"`    // whom it is for
	Every    string `key:"every" words:"run,day,month,always"`              // how often it starts over
	MicroUSD int64  `key:"usd" kind:"micro-USD" limits:"0.000001..1000000"` // millionths of a US dollar
	Tokens   int64  `key:"tokens" limits:"1..1000000000000"`                // input and output together
	OnLimit  string `key:"on_limit" words:"hard,warn"`
	// Match narrows it to the agents of a profile, a connector,
	// "connector:channel", cron or heartbeat; empty: all.
	Match string `key:"match" kind:"match"`
	// Fault says what is wrong with it. Nothing may be spent then by those whom it is
	// for; it has no limit that could be extended.
	Fault string
}

const maxBudgets = 100

// setBudgets reads the list of budgets. One with a mistake allows nothing to those
// whom it is for: without it, what they spend would have no limit.
func setBudgets(r *reader, at place, n *yaml.Node, c *Config) {
	if n.Kind != yaml.SequenceNode {
		r.warn(at, "want a list of budgets, found %s; ignored", kindOf(n))
		return
	}
	c.Agents.Budgets, r.budgetAt = []Budget{}, nil // an empty list is a decision as well
	for i, e := range n.Content {
		where := place{file: at.file, line: e.Line, key: fmt.Sprintf("%s[%d]", at.key, i), path: "budgets[]"}
		if i >= maxBudgets {
			before := len(r.warnings)
			r.warn(where, "there are more than %d budgets; ignored", maxBudgets)
			r.seal(c, "budgets", before)
			return
		}
		b := readBudget(r, where, e)
		same := slices.IndexFunc(c.Agents.Budgets, func(x Budget) bool { return x.same(b) })
		if same < 0 || b.Fault != "" {
			c.Agents.Budgets, r.budgetAt = append(c.Agents.Budgets, b), append(r.budgetAt, where)
			continue
		}
		r.warn(where, "there is a budget for the same already; the smaller one holds")
		x := &c.Agents.Budgets[same]
		x.MicroUSD, x.Tokens = min(x.MicroUSD, b.MicroUSD), min(x.Tokens, b.Tokens)
	}
}

// same reports whether two budgets would count in one place.
func (b Budget) same(x Budget) bool {
	return b.Per == x.Per && b.Every == x.Every && b.OnLimit == x.OnLimit && b.Match == x.Match && (b.Tokens > 0) == (x.Tokens > 0) && b.Fault == x.Fault
}

// readBudget reads one entry.
func readBudget(r *reader, at place, n *yaml.Node) (b Budget) {
	before := len(r.warnings)
	if !isGroup[Budget](r, at, n) {
		return brokenBudget(r, at, b, before)
	}
	r.group(at, n, &b)
	if b.OnLimit == "" {
		b.OnLimit = LimitHard
	}
	if b.Per == BudgetRun {
		b.Every = EveryRun
	}
	if b.Every == "" {
		b.Every = EveryDay
	}
	switch {
	case len(r.warnings) > before:
	case b.Per == "":
		r.warn(at, "does not say whom it is for; add per: all, or one of %s; ignored", "agent, owner, channel, task, run, all")
	case (b.MicroUSD > 0) == (b.Tokens > 0):
		r.warn(at, "wants either usd or tokens; ignored")
	}
	if len(r.warnings) > before {
		return brokenBudget(r, at, b, before)
	}
	return b
}

// brokenBudget is a budget in which something is wrong: money must not flow because of a
// mistyped word. As long as it says for whom and how much, it holds for everybody and
// for ever. Otherwise it refuses those whom it is for; all, where that is in doubt.
func brokenBudget(r *reader, at place, b Budget, before int) Budget {
	sure, amount := b.Per != "", (b.MicroUSD > 0) != (b.Tokens > 0)
	why := ""
	for i := range r.warnings[before:] {
		w := &r.warnings[before+i]
		if text, ok := ignored(*w); ok {
			w.Text = text
		}
		if why == "" {
			why = w.String()
		}
		key := lastName(w.Key)
		amount = amount && key != "usd" && key != "tokens"
		sure = sure && (key == "usd" || key == "tokens" || key == "every" || key == "on_limit" || w.Key == at.key)
	}
	b.OnLimit = LimitHard
	now := "nothing may be spent by those whom it is for"
	switch {
	case b.Per != "" && amount:
		now = "the budget is hard, for all and for ever,"
		if b.Match = ""; b.Per != BudgetRun {
			b.Every = EveryAlways
		}
	case !sure:
		now, b.Per, b.Match = "nothing may be spent", BudgetAll, ""
		fallthrough
	default:
		b.Fault, b.MicroUSD, b.Tokens = why, 0, 0
	}
	for i := range r.warnings[before:] {
		w := &r.warnings[before+i]
		w.Text, w.Off = w.Text+"; "+now+until, true
	}
	return b
}

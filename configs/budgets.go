package configs

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

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
	LimitWarn = "warn" // somebody is told
)

// A Budget bounds what models may take. Exactly one of MicroUSD and Tokens is
// above 0.
type Budget struct {
	Per      string // whom it is for: agent, owner, channel, task, run or all
	Every    string // how often it begins anew: run, day, month or always
	MicroUSD int64  // millionths of a US dollar
	Tokens   int64  // input and output together
	OnLimit  string // hard or warn
	// Match narrows it to the agents of a profile, a connector,
	// "connector:channel", cron or heartbeat; empty: all.
	Match string
	// Fault says what is wrong with it. Nothing may be spent then by those whom it is
	// for; it has no limit that could be extended.
	Fault string
}

const (
	maxBudgets      = 100
	maxBudgetUSD    = 1e6
	maxBudgetTokens = 1e12
)

// setBudgets reads the list of budgets. One with a mistake allows nothing to those
// whom it is for: without it, what they spend would have no limit.
func setBudgets(r *reader, at place, n *yaml.Node, c *Config) {
	if n.Kind != yaml.SequenceNode {
		r.warn(at, "want a list of budgets, found %s; ignored", kind(n))
		return
	}
	c.Agents.Budgets, r.budgetAt = nil, nil
	for i, e := range n.Content {
		where := place{file: at.file, line: e.Line, key: fmt.Sprintf("%s[%d]", at.key, i), path: "budgets[]"}
		if i >= maxBudgets {
			before := len(r.warnings)
			r.warn(where, "there are more than %d budgets; ignored", maxBudgets)
			r.seal(c, "budgets", before)
			return
		}
		b := r.budget(where, e)
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

// budget reads one entry.
func (r *reader) budget(at place, n *yaml.Node) (b Budget) {
	before := len(r.warnings)
	if n.Kind != yaml.MappingNode {
		r.warn(at, "want a group of keys (%s), found %s; ignored", strings.Join(names(budgetKeys()), ", "), kind(n))
		return r.broken(at, b, before)
	}
	group(r, at, n, &b, budgetKeys())
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
		r.warn(at, "does not say whom it is for; add per: all, or one of %s; ignored", strings.Join(budgetPer, ", "))
	case (b.MicroUSD > 0) == (b.Tokens > 0):
		r.warn(at, "wants either usd or tokens; ignored")
	}
	if len(r.warnings) > before {
		return r.broken(at, b, before)
	}
	return b
}

// broken is a budget in which something is wrong: money must not flow because of a
// mistyped word. As long as it says for whom and how much, it holds for everybody and
// for ever. Otherwise it refuses those whom it is for; all, where that is in doubt.
func (r *reader) broken(at place, b Budget, before int) Budget {
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

var decimalForm = regexp.MustCompile(`^([0-9]+\.?[0-9]*|\.[0-9]+)$`)

// decimal reads an amount in plain decimal notation, as people write it: what looks
// otherwise may be a slip.
func decimal(v string) (float64, bool) {
	f, err := strconv.ParseFloat(v, 64)
	return f, err == nil && decimalForm.MatchString(v)
}

var (
	budgetPer   = []string{BudgetAgent, BudgetOwner, BudgetChannel, BudgetTask, BudgetRun, BudgetAll}
	budgetEvery = []string{EveryRun, EveryDay, EveryMonth, EveryAlways}
)

func budgetKeys() []key[Budget] {
	return []key[Budget]{
		text("per", func(r *reader, at place, v string, b *Budget) {
			word, ok := r.word(at, v, budgetPer...)
			store(&b.Per, word, ok)
		}),
		text("every", func(r *reader, at place, v string, b *Budget) {
			word, ok := r.word(at, v, budgetEvery...)
			store(&b.Every, word, ok)
		}),
		text("usd", func(r *reader, at place, v string, b *Budget) {
			f, ok := decimal(v)
			if !ok || !(f >= 1e-6 && f <= maxBudgetUSD) {
				r.warn(at, "%s is not an amount in US dollars from 0.000001 to %.0f; ignored", quote(v), float64(maxBudgetUSD))
				return
			}
			b.MicroUSD = int64(math.Round(f * 1e6))
		}),
		text("tokens", func(r *reader, at place, v string, b *Budget) {
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil || n < 1 || n > maxBudgetTokens {
				r.warn(at, "%s is not a whole number from 1 to %.0f; ignored", quote(v), float64(maxBudgetTokens))
				return
			}
			b.Tokens = n
		}),
		text("on_limit", func(r *reader, at place, v string, b *Budget) {
			word, ok := r.word(at, v, LimitHard, LimitWarn)
			store(&b.OnLimit, word, ok)
		}),
		text("match", func(r *reader, at place, v string, b *Budget) {
			if v == "" || len(v) > 200 || strings.ContainsAny(v, "\r\n\x00") {
				r.warn(at, "%s is not a profile, a connector, connector:channel, cron or heartbeat; ignored", quote(v))
				return
			}
			b.Match = v
		}),
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/claybot/claybot/budgets"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/sqlite"
)

const (
	// markBudget is the mark of the database that has the default budget of this
	// installation: tokens a day for each person, or noBudget.
	markBudget = "budget/default"
	noBudget   = "none"
	// ownerTokens is the default budget of a new installation: 250 steps with 20,000 tokens
	// of conversation each, which is above a working day of one person.
	ownerTokens = 5_000_000
)

// defaultBudget returns the default budget of this installation, 0 for none.
func (s *stores) defaultBudget(ctx context.Context) (tokens int64, err error) {
	mark, err := s.settled(ctx, markBudget, strconv.Itoa(ownerTokens), noBudget)
	return budgetOf(mark), err
}

// budgetOf returns the tokens of a mark. Another mark than this program writes is no budget.
func budgetOf(mark string) int64 {
	n, err := strconv.ParseInt(mark, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// withDefault adds the default budget to the rules, unless the configuration has a budget
// per owner, or an empty list of budgets.
func withDefault(rules []budgets.Rule, c configs.Config, tokens int64) []budgets.Rule {
	if tokens == 0 || ownBudget(c) {
		return rules
	}
	return append(rules, budgets.Rule{
		Per: budgets.PerOwner, Every: budgets.EveryDay, Unit: storage.UnitTokens, Limit: tokens, Hard: true, Default: true,
	})
}

// ownBudget reports whether a configuration says itself what a person may take.
func ownBudget(c configs.Config) bool {
	all := c.Agents.Budgets
	return all != nil && len(all) == 0 || slices.ContainsFunc(all, func(b configs.Budget) bool { return b.Per == configs.BudgetOwner })
}

// budgets checks whether anything limits what one person may spend.
func (d *doctor) budgets(ctx context.Context) bool {
	if ownBudget(d.config) || d.config.Model.Demo() {
		return true
	}
	mark, err := sqlite.LookUp(ctx, filepath.Join(d.config.DataDir, "claybot.db"), d.holder == "", markBudget)
	switch n := budgetOf(mark); {
	case errors.Is(err, fs.ErrNotExist):
		return true // the first start sets one
	case err != nil:
		return d.warn("record-unreadable", "cannot read the default budget: "+reason(err), "")
	case n > 0:
		return d.ok(fmt.Sprintf("each person may take %s tokens a day, the default; a budget per owner in the configuration replaces it", llm.Grouped(n)))
	}
	return d.warn("budget-none", "no budget limits what one person may take of models in a day",
		fmt.Sprintf("add to the configuration: budgets: [{per: owner, every: day, tokens: %d}]; to have no limit, budgets: []", ownerTokens))
}

package main

import (
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/storage"
)

// newPurse builds what pays for models from the budgets of the configuration.
func (d *daemon) newPurse() *agentsystem.Purse {
	return agentsystem.NewPurse(d.system, agentsystem.PurseConfig{
		Store: d.db, Rules: d.budgetRules, Operators: func() []string { return d.config.Load().Operators },
	})
}

func (d *daemon) budgetRules() []agentsystem.BudgetRule {
	all := d.config.Load().Budgets
	rules := make([]agentsystem.BudgetRule, len(all))
	for i, b := range all {
		rules[i] = agentsystem.BudgetRule{
			Per: b.Per, Every: b.Every, Unit: storage.UnitMicroUSD, Limit: b.MicroUSD, Hard: b.OnLimit != configs.LimitWarn, Match: b.Match, Fault: b.Fault,
		}
		if b.Tokens > 0 {
			rules[i].Unit, rules[i].Limit = storage.UnitTokens, b.Tokens
		}
	}
	return rules
}

package main

import (
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/budgets"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/storage"
)

// newLimiter builds what enforces the budgets of the configuration.
func (d *daemon) newLimiter() *budgets.Limiter {
	return agentsystem.NewLimiter(d.system, budgets.Config{
		Store: d.db, Rules: d.budgetRules, Operators: func() []string { return d.config.Load().Access.Operators },
	})
}

func (d *daemon) budgetRules() []budgets.Rule {
	all := d.config.Load().Agents.Budgets
	rules := make([]budgets.Rule, len(all))
	for i, b := range all {
		rules[i] = budgets.Rule{
			Per: b.Per, Every: b.Every, Unit: storage.UnitMicroUSD, Limit: b.MicroUSD, Hard: b.OnLimit != configs.LimitWarn, Match: b.Match, Fault: b.Fault,
		}
		if b.Tokens > 0 {
			rules[i].Unit, rules[i].Limit = storage.UnitTokens, b.Tokens
		}
	}
	return rules
}

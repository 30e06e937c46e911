package configs

import (
	"slices"
	"strings"
	"testing"
)

// Amounts are in decimal notation, as people write them.
func TestDecimals(t *testing.T) {
	for v, ok := range map[string]bool{"0.5": true, "5": true, "5.": true, ".5": true, "0x1p4": false, "1e3": false, "+5": false, "-5": false, "inf": false, "1_000": false, "nan": false} {
		if _, got := plainDecimal(v); got != ok {
			t.Errorf("%s: %v, want %v", v, got, ok)
		}
		if c, _ := load(t, "budgets: [{per: all, usd: "+v+"}]\n", nil); (c.Agents.Budgets[0].Fault == "") != ok {
			t.Errorf("a budget of %s: %+v", v, c.Agents.Budgets)
		}
	}
}

func TestBudgets(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []Budget
		warns      string // a part of the only warning; empty: there is none
	}{
		{"all kinds", `budgets:
  - {per: all, every: month, usd: 20}
  - {per: owner, usd: 0.5, match: telegram}
  - {per: run, tokens: 200000, on_limit: warn}
  - {per: task, every: always, usd: 1.000001}
`, []Budget{
			{Per: "all", Every: "month", MicroUSD: 20_000_000, OnLimit: "hard"},
			{Per: "owner", Every: "day", MicroUSD: 500_000, OnLimit: "hard", Match: "telegram"},
			{Per: "run", Every: "run", Tokens: 200_000, OnLimit: "warn"},
			{Per: "task", Every: "always", MicroUSD: 1_000_001, OnLimit: "hard"},
		}, ""},
		{"a run begins anew with each run", "budgets: [{per: run, every: month, usd: 1}]", []Budget{{Per: "run", Every: "run", MicroUSD: 1_000_000, OnLimit: "hard"}}, ""},
		{"no list", "budgets: {per: all, usd: 1}", nil, "budgets: want a list of budgets"},
		{"no group", "budgets: [5]", nil, "budgets[0]: want a group of keys (per, every, usd, tokens, on_limit, match)"},
		{"without a subject", "budgets: [{usd: 1}]", nil, "does not say whom it is for"},
		{"of nothing", "budgets: [{per: all}]", nil, "either usd or tokens"},
		{"of both", "budgets: [{per: all, usd: 1, tokens: 1}]", nil, "either usd or tokens"},
		{"an unknown whom", "budgets: [{per: user, usd: 1}]", nil, `budgets[0].per: "user" is not one of agent, owner`},
		{"an unknown time", "budgets: [{per: all, every: week, usd: 1}]", []Budget{{Per: "all", Every: "always", MicroUSD: 1_000_000, OnLimit: "hard"}}, `"week" is not one of run, day`},
		{"an unknown limit", "budgets: [{per: all, usd: 1, on_limit: maybe}]", []Budget{{Per: "all", Every: "always", MicroUSD: 1_000_000, OnLimit: "hard"}}, `"maybe" is not one of hard, warn`},
		{"a key of no budget", "budgets: [{per: all, usd: 1, evry: day}]", []Budget{{Per: "all", Every: "always", MicroUSD: 1_000_000, OnLimit: "hard"}}, "budgets[0].evry: unknown key"},
		{"less than nothing", "budgets: [{per: all, usd: -1}]", nil, "not an amount in US dollars"},
		{"nothing", "budgets: [{per: all, usd: 0}]", nil, "not an amount in US dollars"},
		{"no number", "budgets: [{per: all, usd: .nan}]", nil, "not an amount in US dollars"},
		{"endless", "budgets: [{per: all, usd: .inf}]", nil, "not an amount in US dollars"},
		{"half a token", "budgets: [{per: all, tokens: 1.5}]", nil, "not a whole number"},
		{"too many tokens", "budgets: [{per: all, tokens: 9223372036854775808}]", nil, "not a whole number"},
		{"the same twice", "budgets: [{per: all, usd: 1}, {per: all, usd: 2}]", []Budget{{Per: "all", Every: "day", MicroUSD: 1_000_000, OnLimit: "hard"}}, "for the same already"},
		{"the same twice, the smaller one last", "budgets: [{per: all, usd: 2}, {per: all, usd: 1}]", []Budget{{Per: "all", Every: "day", MicroUSD: 1_000_000, OnLimit: "hard"}}, "the smaller one holds"},
		{"an amount twice", "budgets: [{per: all, usd: 2, usd: 1}]", nil, "was given in line 1 already"},
		{"for a profile that is not there", "budgets: [{per: all, usd: 2, match: telegarm}]", nil, `"telegarm" is neither a profile nor a connector`},
		{"mistyped", "bugdets: [{per: all, usd: 2}]", nil, "did you mean budgets?"},
		{"money and tokens", "budgets: [{per: all, usd: 1}, {per: all, tokens: 2}]", []Budget{
			{Per: "all", Every: "day", MicroUSD: 1_000_000, OnLimit: "hard"}, {Per: "all", Every: "day", Tokens: 2, OnLimit: "hard"},
		}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, warnings := load(t, tt.text, nil)
			switch {
			case tt.want == nil: // nothing may be spent
				if len(c.Agents.Budgets) != 1 || c.Agents.Budgets[0].Fault == "" || c.Agents.Budgets[0].Per != BudgetAll || !warnings[0].Off {
					t.Errorf("got %+v, want one budget that refuses everybody", c.Agents.Budgets)
				}
			case !slices.Equal(c.Agents.Budgets, tt.want):
				t.Errorf("got %+v, want %+v", c.Agents.Budgets, tt.want)
			}
			switch {
			case tt.warns == "" && len(warnings) > 0, tt.warns != "" && len(warnings) != 1:
				t.Errorf("warnings %v", warnings)
			case tt.warns != "" && !strings.Contains(warnings[0].String(), tt.warns):
				t.Errorf("warns %s, want %s", warnings[0], tt.warns)
			}
		})
	}
}

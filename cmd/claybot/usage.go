package main

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claybot/claybot"
	api "github.com/claybot/claybot/client"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

type usageCmd struct {
	By   []string `default:"day" enum:"day,agent,owner,channel,connector,model,type" help:"Columns to group by: day, agent, owner, channel, connector, model, type; separate several with commas."`
	Days int      `default:"30" help:"Number of days, including today."`
	CSV  bool     `name:"csv" help:"Print comma-separated values."`
	JSON bool     `name:"json" help:"Print JSON."`
}

// Run prints token usage and cost.
func (c usageCmd) Run(e *env) error {
	if c.Days < 1 || c.Days > 400 {
		return usageError{fmt.Errorf("invalid --days %d: must be from 1 to 400", c.Days)}
	}
	q := url.Values{
		"by":   {strings.Join(c.By, ",")},
		"from": {time.Now().UTC().AddDate(0, 0, 1-c.Days).Format(time.DateOnly)},
	}
	if c.CSV {
		text, err := ask[api.Raw](e, "GET", to("/usage?format=csv&"+q.Encode()), nil)
		if err != nil {
			return err
		}
		return e.text(string(text))
	}
	return show(e, c.JSON, to("/usage").with(q), func(out web.UsageReport) error {
		head := strings.ToUpper(strings.Join(c.By, ",")) + ",RUNS,CALLS,INPUT,CACHED,WRITTEN,OUTPUT,REASONING,COST"
		var prices llm.Prices
		if slices.Contains(c.By, "model") {
			var err error
			if prices, err = e.prices(); err != nil {
				return err
			}
			head += ",SAVED"
		}
		return e.list(head, "No usage in that period.\n", each(out.Usage, func(s storage.Spent) []string {
			var cells []string
			all := map[string]string{"day": s.Day, "agent": string(s.Agent), "owner": s.Owner, "model": s.Model, "type": string(s.Type), "channel": s.Channel, "connector": s.Connector}
			for _, by := range c.By {
				cells = append(cells, cmp.Or(all[by], "-"))
			}
			u := s.Usage
			for _, n := range []int64{s.Runs, u.LLMCalls, u.Input, u.CachedInput, u.CacheWrite, u.Output, u.Reasoning} {
				cells = append(cells, strconv.FormatInt(n, 10))
			}
			if u.CachedInput > 0 {
				cells[len(c.By)+3] += fmt.Sprintf(" (%d %%)", u.CachedInput*100/max(u.Input, 1))
			}
			cells = append(cells, spentText(s))
			if prices != nil {
				cells = append(cells, savedText(prices, s))
			}
			return cells
		}))
	})
}

// prices returns the prices of all configured models.
func (e *env) prices() (llm.Prices, error) {
	config, _, err := e.load()
	if err != nil {
		return nil, err
	}
	return pricesIn(config), nil
}

// pricesIn returns the known prices, with those of a configuration: of profiles in the order of their names, then, above them, of
// the common model.
func pricesIn(c configs.Config) llm.Prices {
	all := llm.DefaultPrices()
	for _, name := range slices.Sorted(maps.Keys(c.Agents.Profiles)) {
		for _, r := range c.Agents.Profiles[name].Model.Routes() {
			all = all.With(ownPrices(r))
		}
	}
	return all.With(ownPrices(c.Model))
}

// savedText formats what the provider's cache saved, at the prices that are set now.
func savedText(prices llm.Prices, s storage.Spent) string {
	saved, known := prices.Saved(s.Model, s.Usage)
	switch {
	case !known:
		return "-"
	case saved < 0:
		return "-" + dollars(-saved)
	}
	return dollars(saved)
}

// spentText formats the cost of a row. Calls without a known price never count as free.
func spentText(s storage.Spent) string {
	u := s.Usage
	switch {
	case u.Unpriced == 0:
		return dollars(u.CostMicroUSD)
	case u.CostMicroUSD == 0:
		return fmt.Sprintf("unknown, %s unpriced", count(int(u.Unpriced), "call"))
	}
	return fmt.Sprintf("≥ %s, %s unpriced", dollars(u.CostMicroUSD), count(int(u.Unpriced), "call"))
}

// cost formats what a run cost.
func cost(u claybot.Usage) string {
	switch {
	case u.CostMicroUSD == 0 && u.Input+u.Output > 0:
		return "no price known"
	case u.Unpriced > 0:
		return spentText(storage.Spent{Usage: u})
	}
	return dollars(u.CostMicroUSD)
}

// dollars formats millionths of a dollar.
func dollars(micro int64) string { return fmt.Sprintf("$%.4f", float64(micro)/1e6) }

type budgetsCmd struct {
	List   budgetsListCmd   `cmd:"" default:"withargs" eg:"budgets" help:"List budgets with spent, reserved and remaining amounts, most recently used first."`
	Extend budgetsExtendCmd `cmd:"" eg:"budgets extend BUDGET --usd 5" help:"Raise the limit of a budget until its period ends."`
}

type (
	budgetsListCmd struct {
		Limit int  `default:"50" help:"Maximum number of budgets, up to 500."`
		JSON  bool `name:"json" help:"Print JSON."`
	}
	budgetsExtendCmd struct {
		Key    string  `arg:"" name:"budget" help:"Key of the budget, as listed by budgets."`
		USD    float64 `name:"usd" help:"US dollars to add, for a budget in money."`
		Tokens int64   `help:"Tokens to add, for a budget in tokens."`
		JSON   bool    `name:"json" help:"Print JSON."`
	}
)

// Run lists the budgets.
func (c budgetsListCmd) Run(e *env) error {
	if c.Limit < 1 || c.Limit > 500 {
		return usageError{fmt.Errorf("invalid --limit %d: must be from 1 to 500", c.Limit)}
	}
	return show(e, c.JSON, to(fmt.Sprintf("/budgets?limit=%d", c.Limit)), func(out web.BudgetList) error {
		return e.list("BUDGET,SPENT,RESERVED,LEFT,LIMIT,WAITING,AT THE LIMIT,RESETS", "No budget has been used yet.\n", each(out.Budgets, budgetRow))
	})
}

func budgetRow(b web.BudgetView) []string {
	spent, limit, end, waiting := amount(b.Unit, b.Spent), amount(b.Unit, b.Limit), "stops", "-"
	if b.Unpriced > 0 {
		spent = fmt.Sprintf("≥ %s, %s unpriced", spent, count(int(b.Unpriced), "call"))
	}
	if b.Extension > 0 {
		limit += " + " + amount(b.Unit, b.Extension)
	}
	if !b.Hard {
		end = "warns"
	}
	if b.Waiting > 0 {
		waiting = count(b.Waiting, "run")
	}
	return []string{b.Key, spent, amount(b.Unit, b.Reserved), amount(b.Unit, b.Left), limit, waiting, end, resets(b.Period)}
}

func amount(u storage.Unit, n int64) string {
	if u == storage.UnitTokens {
		return fmt.Sprint(n)
	}
	return llm.Dollars(n)
}

// resets says when a budget of a period resets.
func resets(period string) string {
	switch {
	case period == storage.PeriodAlways:
		return "never"
	case period == "run":
		return "with each run"
	case len(period) == len("2006-01"):
		return "after " + period
	}
	return "after the day " + period
}

// Run extends a budget. Each command counts; its key only keeps a retry of the request
// from counting twice.
func (c budgetsExtendCmd) Run(e *env) error {
	if (c.USD > 0) == (c.Tokens > 0) || c.USD < 0 || c.Tokens < 0 {
		return usageError{errors.New("give the amount to add: --usd or --tokens, above 0")}
	}
	in := web.Extension{Key: c.Key, USD: c.USD, Tokens: c.Tokens, IdempotencyKey: rand.Text()}
	out, err := ask[web.BudgetView](e, "POST", to("/budgets/extend"), in)
	if err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(out)
	}
	return e.text(fmt.Sprintf("%s: %s of %s spent, %s left. Runs that wait for it are retried.\n",
		out.Key, amount(out.Unit, out.Spent), amount(out.Unit, out.Limit+out.Extension), amount(out.Unit, out.Left)))
}

package main

import (
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

func TestBudgetCommands(t *testing.T) {
	d := openDesk(t, map[string]string{
		"GET /budgets": `{"budgets":[
			{"key":"owner/telegram/42/2026-11-22/microUSD","period":"2026-11-22","name":"n","unit":"microUSD","hard":true,"limit":2000000,"extension":500000,"spent":1234567,"reserved":40000,"left":1225433,"unpriced":3,"waiting":2,"usedAt":1},
			{"key":"all/-/always/tokens/warn","period":"always","name":"n","unit":"tokens","hard":false,"limit":900,"extension":0,"spent":1000,"reserved":0,"left":-100,"usedAt":1}]}`,
		"POST /budgets/extend": `{"key":"a/b","period":"2026-11","name":"n","unit":"microUSD","hard":true,"limit":1000000,"extension":250000,"spent":1000000,"reserved":0,"left":250000,"usedAt":1}`,
	})
	code, out, errs, asked := d.use("budgets")
	if code != exitOK || strings.Join(asked, "|") != "GET /budgets?limit=50" {
		t.Errorf("exit %d, asked %q, %s", code, asked, errs)
	}
	for _, want := range []string{
		"owner/telegram/42/2026-11-22/microUSD  ≥ $1.23, 3 calls unpriced  $0.04     $1.23  $2.00 + $0.50  2 runs   stops         after the day 2026-11-22",
		"all/-/always/tokens/warn               1000                       0         -100   900            -        warns         never",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	d.wantJSON(t, `"reserved"`, "budgets", "--json")
	d.deals(t, []deal{
		{args: "budgets|--limit|0", code: exitUsage, warns: "--limit 0: must be from 1 to 500"},
		{args: "budgets|extend|a/b", code: exitUsage, warns: "give the amount to add"},
		{args: "budgets|extend|a/b|--usd|1|--tokens|1", code: exitUsage, warns: "give the amount to add"},
		{args: "budgets|extend|a/b|--usd=-1", code: exitUsage, warns: "give the amount to add"},
	})
	code, out, errs, asked = d.use("budgets", "extend", "a/b", "--usd", "0.25")
	if code != exitOK || len(asked) != 1 || !strings.Contains(asked[0], `"key":"a/b"`) || !strings.Contains(asked[0], `"usd":0.25`) ||
		!strings.Contains(out, "a/b: $1.00 of $1.25 spent, $0.25 left.") {
		t.Errorf("exit %d, asked %q, said %s%s", code, asked, out, errs)
	}
	none := openDesk(t, map[string]string{"GET /budgets": `{"budgets":[]}`})
	none.deals(t, []deal{
		{args: "budgets", asks: "GET /budgets?limit=50", says: "No budget has been used yet."},
	})
}

func TestSpentText(t *testing.T) {
	for want, u := range map[string]claybot.Usage{
		"$0.0000":                     {},
		"$0.1200":                     {CostMicroUSD: 120_000, LLMCalls: 4},
		"≥ $0.1200, 3 calls unpriced": {CostMicroUSD: 120_000, LLMCalls: 4, Unpriced: 3},
		"unknown, 1 call unpriced":    {LLMCalls: 1, Unpriced: 1, Input: 5},
	} {
		if got := spentText(storage.Spent{Usage: u}); got != want {
			t.Errorf("%+v is %q, want %q", u, got, want)
		}
	}
}

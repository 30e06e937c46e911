package api_test

import (
	"net/http"
	"testing"

	"github.com/claybot/claybot/storage"
)

func TestBudgets(t *testing.T) {
	r := start(t)
	type budget struct {
		Key, Period, Name, Unit                           string
		Hard                                              bool
		Limit, Extension, Spent, Reserved, Unpriced, Left int64
	}
	var all struct{ Budgets []budget }
	r.ask("GET", "/budgets", "", http.StatusOK, &all)
	if all.Budgets == nil || len(all.Budgets) != 0 {
		t.Errorf("at first %+v", all)
	}
	for i, l := range []storage.Level{
		{Key: "all/-/2026-11/microUSD", Period: "2026-11", Name: "the budget of all agents", Unit: storage.UnitMicroUSD, Limit: 2_000_000, Hard: true},
		{Key: "run/r1/run/tokens/warn", Period: "run", Name: "the budget of one run", Unit: storage.UnitTokens, Limit: 500},
	} {
		id := string(rune('a' + i))
		err := r.db.Reserve(t.Context(), storage.Reservation{ID: id, Node: "n", Levels: []storage.Level{l}, Amount: storage.Amount{MicroUSD: 700_000, Tokens: 90}})
		if err == nil && i == 0 {
			_, err = r.db.Book(t.Context(), id, storage.Amount{MicroUSD: 300_000, Unpriced: 1})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	byKey := func() map[string]budget {
		r.ask("GET", "/budgets?limit=10", "", http.StatusOK, &all)
		got := make(map[string]budget)
		for _, b := range all.Budgets {
			got[b.Key] = b
		}
		return got
	}
	money := budget{"all/-/2026-11/microUSD", "2026-11", "the budget of all agents", "microUSD", true, 2_000_000, 0, 300_000, 0, 1, 1_700_000}
	tokens := budget{"run/r1/run/tokens/warn", "run", "the budget of one run", "tokens", false, 500, 0, 0, 90, 0, 410}
	if got := byKey(); len(got) != 2 || got[money.Key] != money || got[tokens.Key] != tokens {
		t.Errorf("%+v", got)
	}
	var one budget
	const path = "/budgets/extend"
	for range 2 { // the same again
		r.ask("POST", path, `{"key":"all/-/2026-11/microUSD","usd":0.25,"idempotencyKey":"k1"}`, http.StatusOK, &one)
		if one.Extension != 250_000 || one.Left != 1_950_000 {
			t.Errorf("extended %+v", one)
		}
	}
	for range 2 { // each counts
		r.ask("POST", path, `{"key":"run/r1/run/tokens/warn","tokens":10}`, http.StatusOK, &one)
	}
	if one.Extension != 20 || one.Left != 430 {
		t.Errorf("extended %+v", one)
	}
	for body, code := range map[string]string{
		`{"key":"all/-/2026-11/microUSD","tokens":5}`:                   "state",
		`{"key":"nothing","usd":1}`:                                     "not_found",
		`{"key":"all/-/2026-11/microUSD"}`:                              "bad_request",
		`{"key":"all/-/2026-11/microUSD","usd":1,"tokens":1}`:           "bad_request",
		`{"key":"all/-/2026-11/microUSD","usd":-1}`:                     "bad_request",
		`{"key":"all/-/2026-11/microUSD","usd":1e300}`:                  "bad_request",
		`{"key":"all/-/2026-11/microUSD","usd":0.0000001}`:              "bad_request",
		`{"key":"all/-/2026-11/microUSD","tokens":-5}`:                  "bad_request",
		`{"key":"all/-/2026-11/microUSD","tokens":9223372036854775807}`: "bad_request",
		`{"usd":1}`: "bad_request",
		`{"key":"all/-/2026-11/microUSD","usd":1,"idempotencyKey":"a b"}`: "bad_request",
		`{"key":"all/-/2026-11/microUSD","usd":1,"by":"me"}`:              "bad_request",
	} {
		status := map[string]int{"state": http.StatusConflict, "not_found": http.StatusNotFound, "bad_request": http.StatusBadRequest}[code]
		r.refused("POST", path, body, status, code, "")
	}
	if got := byKey(); got[money.Key].Extension != 250_000 {
		t.Errorf("after refusals %+v", got)
	}
}

func TestNoBudgets(t *testing.T) {
	r := start(t, func(r *rig) { r.bare = true })
	r.refused("GET", "/budgets", "", http.StatusNotFound, "off", "Budgets are off")
	r.refused("POST", "/budgets/extend", `{"key":"a","usd":1}`, http.StatusNotFound, "off", "")
}

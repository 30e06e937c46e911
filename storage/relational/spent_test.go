package relational_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/relational"
)

// spend puts sums into the store as the runs of one transaction do.
func spend(t *testing.T, db *store, keys ...relational.SpentKey) {
	t.Helper()
	do(t, db, func(c *relational.Conn) error {
		for i, k := range keys {
			u := claybot.Usage{Input: int64(i), Output: 1, CachedInput: 2, CostMicroUSD: int64(i % 7), LLMCalls: 1, ToolCalls: int64(i % 3), Estimated: i%50 == 0}
			c.Spend(k, u, int64(i%2))
		}
		return nil
	})
}

func TestSpentIsBounded(t *testing.T) {
	db := openFresh(t)
	change(t, db, `INSERT INTO spent (day, agent, owner, model, type, input, output, cached, cost, calls, tools, estimated, runs)
		WITH RECURSIVE k (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < ?)
		SELECT '2026-01-01', 'a' || i, '', 'big', 'user', i, 1, 2, i % 7, 1, i % 3, 0, i % 2 FROM k`, storage.SpentRows)
	byAgent := storage.SpentQuery{By: []string{storage.ByAgent}}
	check := func(limit, want int) {
		t.Helper()
		byAgent.Limit = limit
		switch list, err := db.Spent(t.Context(), byAgent); {
		case want == 0 && (!errors.Is(err, storage.ErrTooMany) || list != nil):
			t.Errorf("at most %d: %d rows, %v", limit, len(list), err)
		case want > 0 && (err != nil || len(list) != want):
			t.Errorf("at most %d: %d rows, %v", limit, len(list), err)
		}
	}
	check(0, storage.SpentRows)
	check(storage.SpentRows, storage.SpentRows)
	check(storage.SpentRows-1, storage.SpentRows-1)
	check(1, 1)
	spend(t, db, relational.SpentKey{Day: "2026-01-01", Agent: "another", Kind: "user", Model: "big"})
	check(0, 0)
	check(-1, 0)
	check(storage.SpentRows, storage.SpentRows)
	check(storage.SpentRows+1, storage.SpentRows+1)
	check(2*storage.SpentRows, storage.SpentRows+1)
	if list, err := db.Spent(t.Context(), storage.SpentQuery{By: []string{storage.ByDay}, Limit: 1}); err != nil || len(list) != 1 {
		t.Errorf("one Day: %+v, %v", list, err)
	}
}

// TestSumsAgree: sums that are kept by day are those of the rows of the agents.
func TestSumsAgree(t *testing.T) {
	db := openFresh(t)
	draw := rand.New(rand.NewPCG(5, 4))
	for range 30 {
		keys := make([]relational.SpentKey, 1+draw.IntN(60))
		for i := range keys {
			agent := draw.IntN(40)
			keys[i] = relational.SpentKey{
				Day: fmt.Sprintf("2026-01-%02d", 1+draw.IntN(9)), Agent: claybot.AgentID(fmt.Sprint("a", agent)), Owner: fmt.Sprint("o", agent%5),
				Kind: []string{"user", "cron", "subagent"}[agent%3], Model: []string{"", "big", "small"}[draw.IntN(3)],
			}
		}
		spend(t, db, keys...)
	}
	var removed int
	do(t, db, func(c *relational.Conn) (err error) { removed, err = c.PruneUsage("2026-01-02"); return err })
	if removed == 0 {
		t.Fatal("nothing was removed")
	}
	sums := func(table string) (list [][]any) {
		t.Helper()
		rows(t, db, `SELECT day, model, type, sum(input), sum(output), sum(cached), sum(cost), sum(calls), sum(tools), max(estimated), sum(runs)
			FROM `+table+" GROUP BY day, model, type ORDER BY day, model, type", func(r relational.Row) { list = append(list, slices.Clone(r)) })
		return list
	}
	detail, kept := sums("spent"), sums("spent_days")
	if len(detail) != 8*9 || !reflect.DeepEqual(detail, kept) {
		t.Errorf("got\n%v\nwant\n%v", kept, detail)
	}
}

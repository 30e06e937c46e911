package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// lengthy takes much longer than anybody here waits for it.
const lengthy = "WITH RECURSIVE k (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < 400000) "

// TestReadEndsWithItsContext: a read that had begun went on to its end, and kept
// one of two connections for as long.
func TestReadEndsWithItsContext(t *testing.T) {
	db := openFresh(t)
	cause := errors.New("nobody waits for it any more")
	for _, on := range []func(context.Context, func(*conn) error) error{db.read, db.report} {
		for range 3 * readers { // each connection, again and again
			// The driver misses an interruption that comes just before it begins;
			// then the read goes on to its end.
			var err error
			for try := 0; try < 10 && err == nil; try++ {
				ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, cause)
				err = on(ctx, func(c *conn) error {
					return c.each(lengthy+"SELECT sum(i * 2) FROM k WHERE i % 3 = 1", func(row) error { return nil })
				})
				cancel()
			}
			if !errors.Is(err, cause) {
				t.Errorf("a sum ended with %v", err)
			}
			ctx, cancelRows := context.WithCancelCause(t.Context())
			rows := 0
			err = on(ctx, func(c *conn) error {
				return c.each(lengthy+"SELECT i FROM k", func(row) error {
					if rows++; rows == 100 {
						cancelRows(cause)
					}
					return nil
				})
			})
			if cancelRows(nil); !errors.Is(err, cause) || rows != 100 {
				t.Errorf("a list ended after %d rows with %v", rows, err)
			}
			err = on(t.Context(), func(c *conn) error {
				found, err := c.first("SELECT 1", func(row) error { return nil })
				if !found {
					t.Error("nothing found afterwards")
				}
				return err
			})
			if err != nil {
				t.Errorf("afterwards: %v", err)
			}
		}
	}
}

// TestReportsKeepToThemselves: reports and the reads of runs do not wait for
// each other.
func TestReportsKeepToThemselves(t *testing.T) {
	db := openFresh(t)
	ctx := t.Context()
	reports := func(ctx context.Context) error {
		_, err := db.Spent(ctx, storage.SpentQuery{By: []string{storage.ByAgent}})
		_, err2 := db.Latencies(ctx, "", "")
		return errors.Join(err, err2)
	}
	heavy := <-db.reporter // as if a report ran
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if err := reports(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second report beside the first: %v", err)
	}
	if _, err := db.RunPage(ctx, storage.RunQuery{}); err != nil {
		t.Error(err)
	}
	db.reporter <- heavy
	first, second := <-db.readers, <-db.readers // as if two reads ran
	if err := reports(ctx); err != nil {
		t.Error(err)
	}
	db.readers <- first
	db.readers <- second
}

// spend puts sums into the store as the runs of one transaction do.
func spend(t *testing.T, db *DB, keys ...spentKey) {
	t.Helper()
	_, err := write(t.Context(), db, func(c *conn) (struct{}, error) {
		for i, k := range keys {
			u := claybot.Usage{Input: int64(i), Output: 1, CachedInput: 2, CostMicroUSD: int64(i % 7), LLMCalls: 1, ToolCalls: int64(i % 3), Estimated: i%50 == 0}
			c.meter.spend(k, u, int64(i%2))
		}
		return struct{}{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestSpentIsBounded(t *testing.T) {
	db := openFresh(t)
	keys := make([]spentKey, storage.SpentRows)
	for i := range keys {
		keys[i] = spentKey{day: "2026-01-01", agent: claybot.AgentID(fmt.Sprint("a", i)), kind: "user", model: "big"}
	}
	spend(t, db, keys...)
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
	spend(t, db, spentKey{day: "2026-01-01", agent: "another", kind: "user", model: "big"})
	check(0, 0)
	check(-1, 0)
	check(storage.SpentRows, storage.SpentRows)
	check(storage.SpentRows+1, storage.SpentRows+1)
	check(2*storage.SpentRows, storage.SpentRows+1)
	if list, err := db.Spent(t.Context(), storage.SpentQuery{By: []string{storage.ByDay}, Limit: 1}); err != nil || len(list) != 1 {
		t.Errorf("one day: %+v, %v", list, err)
	}
}

// TestSumsAgree: sums that are kept by day are those of the rows of the agents.
func TestSumsAgree(t *testing.T) {
	db := openFresh(t)
	draw := rand.New(rand.NewPCG(5, 4))
	for range 30 {
		keys := make([]spentKey, 1+draw.IntN(60))
		for i := range keys {
			agent := draw.IntN(40)
			keys[i] = spentKey{
				day: fmt.Sprintf("2026-01-%02d", 1+draw.IntN(9)), agent: claybot.AgentID(fmt.Sprint("a", agent)), owner: fmt.Sprint("o", agent%5),
				kind: []string{"user", "cron", "subagent"}[agent%3], model: []string{"", "big", "small"}[draw.IntN(3)],
			}
		}
		spend(t, db, keys...)
	}
	if n, err := write(t.Context(), db, func(c *conn) (int, error) { return c.pruneUsage("2026-01-02") }); err != nil || n == 0 {
		t.Fatalf("removed %d, %v", n, err)
	}
	sums := func(table string) (list [][]any) {
		t.Helper()
		err := db.read(t.Context(), func(c *conn) error {
			return c.each(`SELECT day, model, type, sum(input), sum(output), sum(cached), sum(cost), sum(calls), sum(tools), max(estimated), sum(runs)
				FROM `+table+" GROUP BY day, model, type ORDER BY day, model, type", func(r row) error {
				line := make([]any, len(r))
				for i, v := range r {
					line[i] = v
				}
				list = append(list, line)
				return nil
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	detail, kept := sums("spent"), sums("spent_days")
	if len(detail) != 8*9 || !reflect.DeepEqual(detail, kept) {
		t.Errorf("got\n%v\nwant\n%v", kept, detail)
	}
}

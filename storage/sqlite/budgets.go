package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

var _ storage.Budgets = (*DB)(nil)

// maxAmount bounds an amount, so that no sum of them overflows.
const maxAmount = 1 << 50

func checkAmount(a storage.Amount) error {
	for _, n := range []int64{a.Tokens, a.MicroUSD, a.Unpriced} {
		if n < 0 || n > maxAmount {
			return fmt.Errorf("an amount of %d is not within 0 and %d", n, int64(maxAmount))
		}
	}
	return nil
}

const budgetColumns = "key, period, name, unit, hard, most, extension, spent, reserved, unpriced, used_at"

func decodeBudget(r row) storage.Budget {
	return storage.Budget{
		Key: r.str(0), Period: r.str(1), Name: r.str(2), Unit: storage.Unit(r.str(3)), Hard: r.int(4) != 0, Limit: r.int(5),
		Extension: r.int(6), Spent: r.int(7), Reserved: r.int(8), Unpriced: r.int(9), Used: claybot.Time(r.int(10)),
	}
}

// budget reads one; false when nothing was ever set aside on it.
func (c *conn) budget(key string) (b storage.Budget, found bool, err error) {
	found, err = c.first("SELECT "+budgetColumns+" FROM budgets WHERE key = ?", func(r row) error {
		b = decodeBudget(r)
		return nil
	}, key)
	return b, found, err
}

// Reserve implements storage.Budgets. Those of one moment share a commit.
func (db *DB) Reserve(ctx context.Context, r storage.Reservation) error {
	if err := checkAmount(r.Amount); err != nil {
		return fmt.Errorf("reserve: %w", err)
	}
	_, err := write(ctx, db, func(c *conn) (struct{}, error) { return struct{}{}, c.reserve(r) })
	if err == nil {
		return nil
	}
	// A refusal writes nothing, so a budget that is new has to be made for itself.
	if over, ok := errors.AsType[*storage.OverBudgetError](err); ok && over.Used == 0 {
		if _, err := write(ctx, db, func(c *conn) (struct{}, error) { return struct{}{}, c.known(over.Budget) }); err != nil {
			return fmt.Errorf("reserve: %w", err)
		}
	}
	return fmt.Errorf("reserve: %w", err)
}

// known makes a budget on which nothing is spent, so that it can be seen and
// extended.
func (c *conn) known(b storage.Budget) error {
	_, err := c.exec(`INSERT INTO budgets (key, period, name, unit, hard, most, used_at) VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (key) DO NOTHING`, b.Key, b.Period, b.Name, string(b.Unit), b.Hard, b.Limit, now())
	return err
}

// reserve looks at all levels before it writes, so that a refusal spoils no
// transaction.
func (c *conn) reserve(r storage.Reservation) error {
	known, err := c.first("SELECT 1 FROM reservations WHERE id = ?", func(row) error { return nil }, r.ID)
	if err != nil || known {
		return err
	}
	keys := make([]string, 0, len(r.Levels))
	for _, l := range r.Levels {
		if slices.Contains(keys, l.Key) {
			return fmt.Errorf("budget %s is named twice", l.Key)
		}
		keys = append(keys, l.Key)
		b, _, err := c.budget(l.Key)
		if err != nil {
			return err
		}
		b.Key, b.Period, b.Name, b.Unit, b.Hard, b.Limit = l.Key, l.Period, l.Name, l.Unit, l.Hard, l.Limit
		if asked := r.Amount.Of(l.Unit); l.Hard && asked > b.Left() {
			return &storage.OverBudgetError{Budget: b, Asked: asked}
		}
	}
	list, err := json.Marshal(keys)
	if err != nil {
		return err
	}
	for _, l := range r.Levels {
		_, err := c.exec(`INSERT INTO budgets (key, period, name, unit, hard, most, reserved, used_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
			ON CONFLICT (key) DO UPDATE SET name = ?3, hard = ?5, most = ?6, reserved = reserved + ?7, used_at = ?8`,
			l.Key, l.Period, l.Name, string(l.Unit), l.Hard, l.Limit, r.Amount.Of(l.Unit), now())
		if err != nil {
			return err
		}
	}
	_, err = c.exec("INSERT INTO reservations (id, node, run, tokens, micro_usd, unpriced, keys, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
		r.ID, r.Node, r.Run, r.Amount.Tokens, r.Amount.MicroUSD, r.Amount.Unpriced, list, now())
	return err
}

// Book implements storage.Budgets.
func (db *DB) Book(ctx context.Context, id string, actual storage.Amount) ([]storage.Budget, error) {
	if err := checkAmount(actual); err != nil {
		return nil, fmt.Errorf("book: %w", err)
	}
	list, err := write(ctx, db, func(c *conn) ([]storage.Budget, error) { return c.book(id, &actual) })
	if err != nil {
		return nil, fmt.Errorf("book: %w", err)
	}
	return list, nil
}

// book enters an amount in place of what was set aside; nil books that.
func (c *conn) book(id string, actual *storage.Amount) ([]storage.Budget, error) {
	var aside storage.Amount
	var list string
	known, err := c.first("SELECT tokens, micro_usd, unpriced, keys FROM reservations WHERE id = ?", func(r row) error {
		aside = storage.Amount{Tokens: r.int(0), MicroUSD: r.int(1), Unpriced: r.int(2)}
		list = r.str(3)
		return nil
	}, id)
	if err != nil || !known {
		return nil, err
	}
	if actual == nil {
		actual = &aside
	}
	var keys []string
	if err := unmarshal(list, &keys); err != nil {
		return nil, err
	}
	all := make([]storage.Budget, 0, len(keys))
	for _, key := range keys {
		b, found, err := c.budget(key)
		if err != nil {
			return nil, err
		}
		if !found {
			continue
		}
		taken, unpriced := actual.Of(b.Unit), actual.Unpriced
		if b.Unit == storage.UnitTokens {
			unpriced = 0
		}
		b.Spent, b.Reserved, b.Unpriced, b.Used = b.Spent+taken, b.Reserved-aside.Of(b.Unit), b.Unpriced+unpriced, claybot.Time(now())
		_, err = c.exec("UPDATE budgets SET spent = ?, reserved = ?, unpriced = ?, used_at = ? WHERE key = ?",
			b.Spent, b.Reserved, b.Unpriced, b.Used, key)
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	_, err = c.exec("DELETE FROM reservations WHERE id = ?", id)
	return all, err
}

// Abandoned implements storage.Budgets.
func (db *DB) Abandoned(ctx context.Context, node string) (int, error) {
	total := 0
	for {
		n, err := write(ctx, db, func(c *conn) (int, error) {
			var ids []string
			err := c.each("SELECT id FROM reservations WHERE node <> ? LIMIT 0+?", func(r row) error {
				ids = append(ids, r.str(0))
				return nil
			}, node, pruneChunk)
			if err != nil {
				return 0, err
			}
			for _, id := range ids {
				if _, err := c.book(id, nil); err != nil {
					return 0, err
				}
			}
			return len(ids), nil
		})
		if err != nil {
			return total, fmt.Errorf("book what dead processes set aside: %w", err)
		}
		if n == 0 {
			return total, nil
		}
		total += n
	}
}

// Extend implements storage.Budgets.
func (db *DB) Extend(ctx context.Context, e storage.Extension) (storage.Budget, error) {
	if e.ID == "" || e.By <= 0 || e.By > maxAmount {
		return storage.Budget{}, errors.New("extend a budget: want an id and an amount above 0")
	}
	b, err := write(ctx, db, func(c *conn) (storage.Budget, error) {
		b, found, err := c.budget(e.Key)
		if err := need(found, err); err != nil {
			return b, err
		}
		if e.Unit != "" && e.Unit != b.Unit {
			return b, fmt.Errorf("%w: it counts in %s", storage.ErrState, b.Unit)
		}
		n, err := c.exec("INSERT INTO extensions (id, key, by, who, at) VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
			e.ID, e.Key, e.By, e.Who, now())
		if err != nil || n == 0 {
			return b, err
		}
		b.Extension = min(b.Extension+e.By, maxAmount)
		_, err = c.exec("UPDATE budgets SET extension = ? WHERE key = ?", b.Extension, e.Key)
		return b, err
	})
	if err != nil {
		return b, fmt.Errorf("extend budget %s: %w", e.Key, err)
	}
	return b, nil
}

// Budgets implements storage.Budgets.
func (db *DB) Budgets(ctx context.Context, limit int) (list []storage.Budget, err error) {
	err = db.read(ctx, func(c *conn) error {
		return c.each("SELECT "+budgetColumns+" FROM budgets ORDER BY used_at DESC, key LIMIT 0+?", func(r row) error {
			list = append(list, decodeBudget(r))
			return nil
		}, limit)
	})
	if err != nil {
		return nil, fmt.Errorf("budgets: %w", err)
	}
	return list, nil
}

// pruneBudgets removes some budgets that nobody used since t. Those without a
// period stay: they never begin anew.
func (c *conn) pruneBudgets(t claybot.Time) (int, error) {
	var keys []string
	err := c.each("SELECT key FROM budgets WHERE used_at < ? AND period <> ? AND reserved = 0 ORDER BY used_at LIMIT 0+?", func(r row) error {
		keys = append(keys, r.str(0))
		return nil
	}, t, storage.PeriodAlways, pruneChunk)
	if err != nil {
		return 0, err
	}
	for _, key := range keys {
		for _, q := range []string{"DELETE FROM budgets WHERE key = ?", "DELETE FROM extensions WHERE key = ?"} {
			if _, err := c.exec(q, key); err != nil {
				return 0, err
			}
		}
	}
	return len(keys), nil
}

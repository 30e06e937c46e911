package relational

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

var _ storage.Budgets = (*Store)(nil)

// maxAmount limits an amount, so that sums do not overflow.
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

func decodeBudget(r Row) storage.Budget {
	return storage.Budget{
		Key: r.Str(0), Period: r.Str(1), Name: r.Str(2), Unit: storage.Unit(r.Str(3)), Hard: r.Int(4) != 0, Limit: r.Int(5),
		Extension: r.Int(6), Spent: r.Int(7), Reserved: r.Int(8), Unpriced: r.Int(9), Used: claybot.Time(r.Int(10)),
	}
}

// loadBudget reads a budget; found is false if it was never used.
func loadBudget(c *Conn, key string) (b storage.Budget, found bool, err error) {
	found, err = c.first("SELECT "+budgetColumns+" FROM budgets WHERE key = ?"+c.locked(), func(r Row) error {
		b = decodeBudget(r)
		return nil
	}, key)
	return b, found, err
}

// Reserve implements storage.Budgets. Concurrent calls share a commit.
func (db spending) Reserve(ctx context.Context, r storage.Reservation) error {
	if err := checkAmount(r.Amount); err != nil {
		return fmt.Errorf("reserve: %w", err)
	}
	err := db.update(ctx, func(c *Conn) error { return reserveBudgets(c, r) })
	if err == nil {
		return nil
	}
	// A refusal writes nothing, so a new budget has to be inserted separately.
	if over, ok := errors.AsType[*storage.OverBudgetError](err); ok && over.Used == 0 {
		if err := db.update(ctx, func(c *Conn) error { return insertBudget(c, over.Budget) }); err != nil {
			return fmt.Errorf("reserve: %w", err)
		}
	}
	return fmt.Errorf("reserve: %w", err)
}

// insertBudget inserts a budget without spending, so that it can be listed and
// extended.
func insertBudget(c *Conn, b storage.Budget) error {
	return c.do(`INSERT INTO budgets (key, period, name, unit, hard, most, used_at) VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (key) DO NOTHING`, b.Key, b.Period, b.Name, string(b.Unit), b.Hard, b.Limit, c.now())
}

// lockBudgets locks budgets against concurrent reservations, in a fixed order to
// avoid deadlocks.
func lockBudgets(c *Conn, keys []string) error {
	for _, key := range slices.Sorted(slices.Values(keys)) {
		if err := c.lock("budget/" + key); err != nil {
			return err
		}
	}
	return nil
}

// reserveBudgets checks all levels before it writes, so that a refusal leaves the
// transaction unchanged.
func reserveBudgets(c *Conn, r storage.Reservation) error {
	known, err := c.first("SELECT 1 FROM reservations WHERE id = ?", func(Row) error { return nil }, r.ID)
	if err != nil || known {
		return err
	}
	keys := make([]string, 0, len(r.Levels))
	for _, l := range r.Levels {
		keys = append(keys, l.Key)
	}
	if err := lockBudgets(c, keys); err != nil {
		return err
	}
	keys = keys[:0]
	for _, l := range r.Levels {
		if slices.Contains(keys, l.Key) {
			return fmt.Errorf("budget %s is named twice", l.Key)
		}
		keys = append(keys, l.Key)
		b, _, err := loadBudget(c, l.Key)
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
		err := c.do(`INSERT INTO budgets (key, period, name, unit, hard, most, reserved, used_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
			ON CONFLICT (key) DO UPDATE SET name = ?3, hard = ?5, most = ?6, reserved = budgets.reserved + ?7, used_at = ?8`,
			l.Key, l.Period, l.Name, string(l.Unit), l.Hard, l.Limit, r.Amount.Of(l.Unit), c.now())
		if err != nil {
			return err
		}
	}
	return c.do("INSERT INTO reservations (id, node, run, tokens, micro_usd, unpriced, keys, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
		r.ID, r.Node, r.Run, r.Amount.Tokens, r.Amount.MicroUSD, r.Amount.Unpriced, list, c.now())
}

// Book implements storage.Budgets. A loss of power may undo it: then the reservation is booked
// in full at the next start, as after a crash.
func (db spending) Book(ctx context.Context, id string, actual storage.Amount) ([]storage.Budget, error) {
	if err := checkAmount(actual); err != nil {
		return nil, fmt.Errorf("book: %w", err)
	}
	list, err := lightly(ctx, db, func(c *Conn) ([]storage.Budget, error) { return bookReservation(c, id, &actual) })
	return result(list, err, "book")
}

// bookReservation replaces a reservation by an amount; nil books the reservation
// in full.
func bookReservation(c *Conn, id string, actual *storage.Amount) ([]storage.Budget, error) {
	var aside storage.Amount
	var list string
	known, err := c.first("SELECT tokens, micro_usd, unpriced, keys FROM reservations WHERE id = ?"+c.locked(), func(r Row) error {
		aside = storage.Amount{Tokens: r.Int(0), MicroUSD: r.Int(1), Unpriced: r.Int(2)}
		list = r.Str(3)
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
	if err := lockBudgets(c, keys); err != nil {
		return nil, err
	}
	all := make([]storage.Budget, 0, len(keys))
	for _, key := range keys {
		b, found, err := loadBudget(c, key)
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
		b.Spent, b.Reserved, b.Unpriced, b.Used = b.Spent+taken, b.Reserved-aside.Of(b.Unit), b.Unpriced+unpriced, claybot.Time(c.now())
		err = c.do("UPDATE budgets SET spent = ?, reserved = ?, unpriced = ?, used_at = ? WHERE key = ?",
			b.Spent, b.Reserved, b.Unpriced, b.Used, key)
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	err = c.do("DELETE FROM reservations WHERE id = ?", id)
	return all, err
}

func (db spending) Abandoned(ctx context.Context, node string) (int, error) {
	total := 0
	for {
		n, err := write(ctx, db, func(c *Conn) (int, error) {
			var ids []string
			keep := func(r Row) error {
				ids = append(ids, r.Str(0))
				return nil
			}
			var err error
			if c.dialect.Alone {
				err = c.each("SELECT id FROM reservations WHERE node <> ? LIMIT 0+?", keep, node, pruneChunk)
			} else {
				err = c.each(`SELECT id FROM reservations WHERE node <> ? AND NOT EXISTS (SELECT 1 FROM nodes WHERE id = reservations.node AND until > ?)
					LIMIT 0+?`+c.locked(), keep, node, c.now(), pruneChunk)
			}
			if err != nil {
				return 0, err
			}
			for _, id := range ids {
				if _, err := bookReservation(c, id, nil); err != nil {
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

func (db spending) Extend(ctx context.Context, e storage.Extension) (storage.Budget, error) {
	if e.ID == "" || e.By <= 0 || e.By > maxAmount {
		return storage.Budget{}, errors.New("extend a budget: want an id and an amount above 0")
	}
	b, err := write(ctx, db, func(c *Conn) (storage.Budget, error) {
		b, found, err := loadBudget(c, e.Key)
		if err := need(found, err); err != nil {
			return b, err
		}
		if e.Unit != "" && e.Unit != b.Unit {
			return b, fmt.Errorf("%w: it counts in %s", storage.ErrState, b.Unit)
		}
		n, err := c.exec("INSERT INTO extensions (id, key, by, who, at) VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
			e.ID, e.Key, e.By, e.Who, c.now())
		if err != nil || n == 0 {
			return b, err
		}
		b.Extension = min(b.Extension+e.By, maxAmount)
		err = c.do("UPDATE budgets SET extension = ? WHERE key = ?", b.Extension, e.Key)
		return b, err
	})
	return b, failed(err, "extend budget %s", e.Key)
}

func (db spending) Budgets(ctx context.Context, limit int) (list []storage.Budget, err error) {
	err = db.read(ctx, func(c *Conn) error {
		return c.each("SELECT "+budgetColumns+" FROM budgets ORDER BY used_at DESC, key LIMIT 0+?", func(r Row) error {
			list = append(list, decodeBudget(r))
			return nil
		}, limit)
	})
	return result(list, err, "budgets")
}

// pruneBudgets removes some budgets that were not used since t. Those without a
// period stay, because they never reset.
func pruneBudgets(c *Conn, t claybot.Time) (int, error) {
	var keys []string
	err := c.each("SELECT key FROM budgets WHERE used_at < ? AND period <> ? AND reserved = 0 ORDER BY used_at LIMIT 0+?", func(r Row) error {
		keys = append(keys, r.Str(0))
		return nil
	}, t, storage.PeriodAlways, pruneChunk)
	if err != nil {
		return 0, err
	}
	for _, key := range keys {
		for _, q := range []string{"DELETE FROM budgets WHERE key = ?", "DELETE FROM extensions WHERE key = ?"} {
			if err := c.do(q, key); err != nil {
				return 0, err
			}
		}
	}
	return len(keys), nil
}

// errReserved means that the run id of a message is taken.
var errReserved = errors.New("its run id is taken")

// reservedBy returns the run id that m reserves, empty for none. The Run of an
// answer is the run that it answers instead.
func reservedBy(m claybot.AgentMessage) claybot.RunID {
	if m.Type == claybot.MessageUser || m.Type == claybot.MessageSystem {
		return m.Run
	}
	return ""
}

// checkReserved returns errReserved if another message or a run has the id.
func checkReserved(c *Conn, id claybot.RunID) error {
	if id == "" {
		return nil
	}
	taken, err := c.first("SELECT 1 FROM messages WHERE reserved = ?1 UNION ALL SELECT 1 FROM runs WHERE id = ?1",
		func(Row) error { return nil }, id)
	if err == nil && taken {
		return fmt.Errorf("run %s: %w", id, errReserved)
	}
	return err
}

// cancelReserved inserts a canceled run for a message that reserved its id and
// ended without a run, so that watchers of the id see the end.
func cancelReserved(c *Conn, agent claybot.AgentID, id claybot.RunID, m claybot.MessageID, reason string) error {
	run := claybot.Run{ID: id, Agent: agent, Messages: []claybot.MessageID{m}}
	ids, err := json.Marshal(run.Messages)
	if err != nil {
		return err
	}
	n, err := c.exec(`INSERT INTO runs (id, agent, state, messages, started, ended) VALUES (?, ?, ?, ?, 0, ?) ON CONFLICT (id) DO NOTHING`,
		id, agent, claybot.RunCanceled, ids, c.now())
	if err != nil || n == 0 {
		return err
	}
	c.tally.run("", claybot.RunCanceled)
	return appendEvents(c, &run, event(claybot.EventRunCanceled, map[string]any{"by": reason}))
}

// runOrReserved loads a run by its id or by an id that a message reserved.
func runOrReserved(c *Conn, id claybot.RunID) (claybot.Run, error) {
	run, err := loadRun(c, id)
	if !errors.Is(err, storage.ErrNotFound) {
		return run, err
	}
	var joined claybot.RunID
	found, ferr := c.first("SELECT id, agent, run, skipped FROM messages WHERE reserved = ?", func(r Row) error {
		joined = claybot.RunID(r.Str(2))
		if r.Null(2) && r.Null(3) {
			run = pendingRun(id, claybot.AgentID(r.Str(1)), claybot.MessageID(r.Str(0)))
		}
		return nil
	}, id)
	switch {
	case ferr != nil:
		return claybot.Run{}, ferr
	case found && joined != "":
		return loadRun(c, joined)
	case found && run.State == claybot.RunPending:
		return run, nil
	}
	return claybot.Run{}, err
}

// pendingRun returns the run that a pending message has reserved.
func pendingRun(id claybot.RunID, agent claybot.AgentID, m claybot.MessageID) claybot.Run {
	return claybot.Run{ID: id, Agent: agent, State: claybot.RunPending, Messages: []claybot.MessageID{m}}
}

package relational_test

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/claybot/claybot/storage"
)

// A ledger is what a store of budgets is to know, said as simply as can be.
type ledger struct {
	limit map[string]int64 // of hard budgets, with their extensions
	aside map[string]held
	spent map[string]int64
}

type held struct {
	keys   []string
	amount int64
}

func (l *ledger) reserved(key string) (n int64) {
	for _, h := range l.aside {
		if slices.Contains(h.keys, key) {
			n += h.amount
		}
	}
	return n
}

// fits reports whether something may be set aside on all of some budgets.
func (l *ledger) fits(keys []string, amount int64) bool {
	return !slices.ContainsFunc(keys, func(k string) bool { return l.spent[k]+l.reserved(k)+amount > l.limit[k] })
}

func (l *ledger) book(id string, amount int64) {
	for _, k := range l.aside[id].keys {
		l.spent[k] += amount
	}
	delete(l.aside, id)
}

// check compares all budgets, and that none was ever promised beyond its limit.
func (l *ledger) check(t *rapid.T, db *store) {
	list, err := db.Budgets(t.Context(), len(l.limit)) // those used last are of this round
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range list {
		if _, mine := l.limit[b.Key]; !mine {
			continue
		}
		if b.Spent != l.spent[b.Key] || b.Reserved != l.reserved(b.Key) || b.Limit+b.Extension != l.limit[b.Key] {
			t.Fatalf("%+v, want spent %d, reserved %d of %d", b, l.spent[b.Key], l.reserved(b.Key), l.limit[b.Key])
		}
		if b.Spent+b.Reserved > b.Limit+b.Extension {
			t.Fatalf("more was promised than there is: %+v", b)
		}
	}
}

// Any sequence of reservations, bookings, extensions and restarts comes to what
// the ledger says, and keeps every limit as long as no call takes more than was
// set aside for it.
func TestBudgetsLikeALedger(t *testing.T) {
	path := filepath.Join(t.TempDir(), "claybot.db")
	db := openAt(t, path)
	round, node := 0, 0
	outer := t
	rapid.Check(t, func(t *rapid.T) {
		round++
		node++ // which is another process, as far as the store can tell
		if _, err := db.Abandoned(t.Context(), fmt.Sprint(node)); err != nil {
			t.Fatal(err)
		}
		base := make(map[string]int64)
		for name, limit := range map[string]int64{"a": 100, "b": 60, "c": 1000} {
			base[fmt.Sprint(name, round)] = limit
		}
		keys := slices.Sorted(maps.Keys(base))
		l := &ledger{limit: maps.Clone(base), aside: make(map[string]held), spent: make(map[string]int64)}
		seen := make(map[string]bool)
		n := round * 1_000_000
		t.Repeat(map[string]func(*rapid.T){
			"reserve": func(t *rapid.T) {
				n++
				on := rapid.SliceOfNDistinct(rapid.SampledFrom(keys), 1, 3, rapid.ID[string]).Draw(t, "on")
				amount := rapid.Int64Range(0, 70).Draw(t, "amount")
				r := storage.Reservation{ID: fmt.Sprint("c", n), Node: fmt.Sprint(node), Amount: storage.Amount{MicroUSD: amount}}
				for _, k := range on {
					r.Levels = append(r.Levels, storage.Level{Key: k, Period: "run", Name: k, Unit: storage.UnitMicroUSD, Limit: base[k], Hard: true})
				}
				err := db.Reserve(t.Context(), r)
				if fits := l.fits(on, amount); fits != (err == nil) || err != nil && !errors.As(err, new(*storage.OverBudgetError)) {
					t.Fatalf("reserved %d on %v: %v, want it to fit: %v", amount, on, err, fits)
				}
				over, refused := errors.AsType[*storage.OverBudgetError](err)
				if refused {
					seen[over.Key] = true
				}
				if err == nil {
					l.aside[r.ID] = held{on, amount}
					for _, k := range on {
						seen[k] = true
					}
				}
			},
			"book": func(t *rapid.T) {
				if len(l.aside) == 0 {
					t.Skip("nothing is set aside")
				}
				id := rapid.SampledFrom(slices.Sorted(maps.Keys(l.aside))).Draw(t, "id")
				took := rapid.Int64Range(0, l.aside[id].amount).Draw(t, "took")
				for range rapid.IntRange(1, 2).Draw(t, "times") {
					if _, err := db.Book(t.Context(), id, storage.Amount{MicroUSD: took}); err != nil {
						t.Fatal(err)
					}
				}
				l.book(id, took)
			},
			"extend": func(t *rapid.T) {
				key, by := rapid.SampledFrom(keys).Draw(t, "key"), rapid.Int64Range(1, 40).Draw(t, "by")
				n++
				for range 2 {
					_, err := db.Extend(t.Context(), storage.Extension{ID: fmt.Sprint("q", n), Key: key, By: by})
					if seen[key] != (err == nil) {
						t.Fatalf("extend %s: %v, seen %v", key, err, seen[key])
					}
				}
				if seen[key] {
					l.limit[key] += by
				}
			},
			"restart": func(t *rapid.T) {
				if rapid.IntRange(0, 15).Draw(t, "reopen") == 0 { // which takes long
					if err := db.Close(); err != nil {
						t.Fatal(err)
					}
					db = openAt(outer, path)
				}
				node++
				if got, err := db.Abandoned(t.Context(), fmt.Sprint(node)); err != nil || got != len(l.aside) {
					t.Fatalf("%d of %d were abandoned, %v", got, len(l.aside), err)
				}
				for id, h := range maps.Clone(l.aside) {
					l.book(id, h.amount)
				}
			},
			"": func(t *rapid.T) { l.check(t, db) },
		})
	})
}

// However many calls come at the same moment, the sum never passes the limit, and what is
// booked is what the calls took.
func TestBudgetsUnderConcurrency(t *testing.T) {
	db := openAt(t, filepath.Join(t.TempDir(), "claybot.db"))
	const limit = 10_000
	level := storage.Level{Key: "all", Period: "run", Unit: storage.UnitMicroUSD, Limit: limit, Hard: true}
	var took, refused int64
	var mu sync.Mutex
	var wg sync.WaitGroup
	for w := range 20 {
		wg.Go(func() {
			for i := range 30 {
				id := fmt.Sprintf("%d/%d", w, i)
				worst, taken := int64(50+i), int64(20+i)
				own := storage.Level{Key: fmt.Sprint("own", w), Period: "run", Unit: storage.UnitMicroUSD, Limit: 900, Hard: true}
				err := db.Reserve(t.Context(), storage.Reservation{ID: id, Node: "n", Levels: []storage.Level{own, level}, Amount: storage.Amount{MicroUSD: worst}})
				if err == nil {
					_, err = db.Book(t.Context(), id, storage.Amount{MicroUSD: taken})
				}
				mu.Lock()
				switch {
				case err == nil:
					took += taken
				case errors.As(err, new(*storage.OverBudgetError)):
					refused++
				default:
					t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	list, err := db.Budgets(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	var own int64
	for _, b := range list {
		switch {
		case b.Reserved != 0 || b.Spent > b.Limit:
			t.Errorf("%+v", b)
		case b.Key == "all" && b.Spent != took:
			t.Errorf("booked %d, took %d", b.Spent, took)
		case b.Key != "all":
			own += b.Spent
		}
	}
	if own != took || took > limit || refused == 0 {
		t.Errorf("booked %d on their own, took %d of %d, refused %d", own, took, limit, refused)
	}
}

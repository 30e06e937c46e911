package storagetest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// dollars is a level of a whole dollar on a day.
func dollars(key string, limit int64, hard bool) storage.Level {
	return storage.Level{Key: key, Period: dayOne, Name: "budget " + key, Unit: storage.UnitMicroUSD, Limit: limit, Hard: hard}
}

func tokensOf(key string, limit int64) storage.Level {
	return storage.Level{Key: key, Period: storage.PeriodAlways, Name: "tokens", Unit: storage.UnitTokens, Limit: limit, Hard: true}
}

func aside(id string, micro, tokens int64, levels ...storage.Level) storage.Reservation {
	return storage.Reservation{ID: id, Node: nodeOne, Run: "r1", Levels: levels, Amount: storage.Amount{MicroUSD: micro, Tokens: tokens}}
}

// figures are limit, extension, spent, reserved and unpriced of a budget.
type figures [5]int64

func (b *bed) budget(key string, want figures) {
	b.Helper()
	for _, x := range ok(b.Budgets(b.ctx, 100))(b) {
		if x.Key == key {
			b.equal("budget "+key, figures{x.Limit, x.Extension, x.Spent, x.Reserved, x.Unpriced}, want)
			return
		}
	}
	b.Fatalf("there is no budget %s", key)
}

// refused requires that a reservation is refused for one budget.
func (b *bed) refused(r storage.Reservation, key string, left, asked int64) {
	b.Helper()
	err := b.Reserve(b.ctx, r)
	over, is := errors.AsType[*storage.OverBudgetError](err)
	if !is || over.Key != key || over.Left() != left || over.Asked != asked {
		b.Fatalf("reserve: %v, want a refusal of %s with %d left and %d asked", err, key, left, asked)
	}
}

var budgetTests = []storeTest{
	{"set aside and booked", func(b *bed) {
		all, mine := dollars("all", 100, true), dollars("mine", 60, true)
		b.noError(b.Reserve(b.ctx, aside("c1", 40, 7, all, mine)))
		b.noError(b.Reserve(b.ctx, aside("c1", 40, 7, all, mine))) // the same again
		b.budget("all", figures{100, 0, 0, 40, 0})
		b.refused(aside("c2", 21, 0, all, mine), "mine", 20, 21)
		b.budget("all", figures{100, 0, 0, 40, 0}) // nothing of what was refused
		b.noError(b.Reserve(b.ctx, aside("c2", 20, 0, all, mine)))
		b.refused(aside("c3", 1, 0, all, mine), "mine", 0, 1)
		b.noError(b.Reserve(b.ctx, aside("c0", 0, 0, all, mine))) // costs nothing
		got := ok(b.Book(b.ctx, "c1", storage.Amount{MicroUSD: 10, Unpriced: 1}))(b)
		b.equal("booked", []any{len(got), got[0].Key, got[0].Spent, got[0].Left(), got[1].Key, got[1].Spent}, []any{2, "all", int64(10), int64(70), "mine", int64(10)})
		b.equal("booked again", len(ok(b.Book(b.ctx, "c1", storage.Amount{MicroUSD: 99}))(b)), 0)
		b.equal("never set aside", len(ok(b.Book(b.ctx, "cx", storage.Amount{MicroUSD: 99}))(b)), 0)
		b.again()
		b.budget("all", figures{100, 0, 10, 20, 1})
		b.budget("mine", figures{60, 0, 10, 20, 1})
	}},
	{"more than was set aside", func(b *bed) {
		b.noError(b.Reserve(b.ctx, aside("c1", 50, 0, dollars("all", 100, true))))
		got := ok(b.Book(b.ctx, "c1", storage.Amount{MicroUSD: 150}))(b)
		b.equal("left", got[0].Left(), int64(-50))
		b.refused(aside("c2", 0, 0, dollars("all", 100, true)), "all", -50, 0)
	}},
	{"tokens", func(b *bed) {
		b.noError(b.Reserve(b.ctx, aside("c1", 900, 7, tokensOf("t", 10), dollars("d", 1000, true))))
		b.refused(aside("c2", 0, 4, tokensOf("t", 10), dollars("d", 1000, true)), "t", 3, 4)
		ok(b.Book(b.ctx, "c1", storage.Amount{Tokens: 5, MicroUSD: 300, Unpriced: 1}))(b)
		b.budget("t", figures{10, 0, 5, 0, 0})
		b.budget("d", figures{1000, 0, 300, 0, 1})
	}},
	{"a budget that only warns", func(b *bed) {
		soft, hard := dollars("soft", 5, false), dollars("hard", 50, true)
		b.noError(b.Reserve(b.ctx, aside("c1", 20, 0, soft, hard)))
		b.refused(aside("c2", 31, 0, soft, hard), "hard", 30, 31)
		got := ok(b.Book(b.ctx, "c1", storage.Amount{MicroUSD: 20}))(b)
		b.equal("how it stands", []any{got[0].Hard, got[0].Spent, got[0].Left()}, []any{false, int64(20), int64(-15)})
	}},
	{"a limit that changes", func(b *bed) {
		b.noError(b.Reserve(b.ctx, aside("c1", 50, 0, dollars("all", 100, true))))
		b.refused(aside("c2", 11, 0, dollars("all", 60, true)), "all", 10, 11)
		b.noError(b.Reserve(b.ctx, aside("c2", 100, 0, dollars("all", 150, true))))
		b.budget("all", figures{150, 0, 0, 150, 0})
	}},
	{"extended", func(b *bed) {
		all := dollars("all", 10, true)
		_, err := b.Extend(b.ctx, storage.Extension{ID: "q1", Key: "all", By: 5, Who: "ann"})
		b.is(err, storage.ErrNotFound)
		b.refused(aside("c0", 11, 0, dollars("new", 10, true)), "new", 10, 11)
		b.budget("new", figures{10, 0, 0, 0, 0})
		ok(b.Extend(b.ctx, storage.Extension{ID: "q0", Key: "new", By: 1}))(b)
		b.noError(b.Reserve(b.ctx, aside("c0", 11, 0, dollars("new", 10, true))))
		b.noError(b.Reserve(b.ctx, aside("c1", 10, 0, all)))
		b.refused(aside("c2", 5, 0, all), "all", 0, 5)
		for range 2 { // the same question again
			got := ok(b.Extend(b.ctx, storage.Extension{ID: "q1", Key: "all", By: 5, Who: "ann"}))(b)
			b.equal("extension", got.Extension, int64(5))
		}
		_, err = b.Extend(b.ctx, storage.Extension{ID: "qt", Key: "all", By: 5, Unit: storage.UnitTokens})
		b.is(err, storage.ErrState)
		b.noError(b.Reserve(b.ctx, aside("c2", 5, 0, all)))
		b.refused(aside("c3", 1, 0, all), "all", 0, 1)
		b.again()
		got := ok(b.Extend(b.ctx, storage.Extension{ID: "q2", Key: "all", By: 1, Who: "bob"}))(b)
		b.equal("extension", got.Extension, int64(6))
		for _, bad := range []storage.Extension{{Key: "all", By: 1}, {ID: "q3", Key: "all"}, {ID: "q3", Key: "all", By: -1}, {ID: "q3", Key: "all", By: 1 << 62}} {
			if _, err := b.Extend(b.ctx, bad); err == nil {
				b.Fatalf("extended with %+v", bad)
			}
		}
	}},
	{"odd amounts", func(b *bed) {
		for _, n := range []int64{-1, 1 << 62} {
			if b.Reserve(b.ctx, aside("c", n, 0, dollars("all", 10, true))) == nil || b.Reserve(b.ctx, aside("c", 0, n, dollars("all", 10, true))) == nil {
				b.Fatalf("%d was set aside", n)
			}
			if _, err := b.Book(b.ctx, "c", storage.Amount{MicroUSD: n}); err == nil {
				b.Fatalf("%d was booked", n)
			}
		}
		if b.Reserve(b.ctx, aside("c", 1, 0, dollars("all", 10, true), dollars("all", 10, true))) == nil {
			b.Fatalf("one budget was named twice")
		}
		b.noError(b.Reserve(b.ctx, aside("none", 1, 1)))
		b.equal("budgets", len(ok(b.Budgets(b.ctx, 100))(b)), 0)
	}},
	{"a dead process", func(b *bed) {
		all := dollars("all", 100, true)
		for i := range 3 {
			b.noError(b.Reserve(b.ctx, aside(fmt.Sprint("old", i), 10, 0, all)))
		}
		ok(b.Book(b.ctx, "old0", storage.Amount{MicroUSD: 1}))(b)
		b.again()
		mine := aside("new", 5, 0, all)
		mine.Node = nodeTwo
		b.noError(b.Reserve(b.ctx, mine))
		b.equal("dead", ok(b.Abandoned(b.ctx, nodeTwo))(b), 2)
		b.equal("once", ok(b.Abandoned(b.ctx, nodeTwo))(b), 0)
		b.budget("all", figures{100, 0, 21, 5, 0})
		b.equal("booked late", len(ok(b.Book(b.ctx, "old1", storage.Amount{}))(b)), 0)
		b.budget("all", figures{100, 0, 21, 5, 0})
	}},
	{"many at once", func(b *bed) {
		var wg sync.WaitGroup
		var mu sync.Mutex
		taken := 0
		for i := range 100 {
			wg.Go(func() {
				err := b.Reserve(b.ctx, aside(fmt.Sprint("c", i), 7, 0, dollars("all", 100, true), dollars(fmt.Sprint("own", i%10), 1000, true)))
				if err == nil {
					mu.Lock()
					taken++
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		b.equal("taken", taken, 14)
		b.budget("all", figures{100, 0, 0, 98, 0})
	}},
	{"listed and kept", func(b *bed) {
		for i, key := range []string{"a", "b", "c"} {
			l := dollars(key, 10, true)
			if key == "b" {
				l.Period = storage.PeriodAlways
			}
			b.noError(b.Reserve(b.ctx, aside(key, 1, 0, l)))
			if key != "c" {
				ok(b.Book(b.ctx, key, storage.Amount{MicroUSD: int64(i)}))(b)
			}
			time.Sleep(time.Hour)
		}
		ok(b.Extend(b.ctx, storage.Extension{ID: "q", Key: "a", By: 1}))(b)
		list := ok(b.Budgets(b.ctx, 2))(b)
		b.equal("the newest", []any{len(list), list[0].Key, list[1].Key, list[1].Period, list[1].Unit, list[1].Hard, list[1].Name},
			[]any{2, "c", "b", storage.PeriodAlways, storage.UnitMicroUSD, true, "budget b"})
		b.equal("used", list[0].Used, claybot.At(time.Now().Add(-time.Hour)))
		b.noError(b.Prune(b.ctx, time.Now().Add(399*24*time.Hour), Retention))
		b.equal("kept", len(ok(b.Budgets(b.ctx, 9))(b)), 3)
		b.noError(b.Prune(b.ctx, time.Now().Add(401*24*time.Hour), Retention))
		// b never begins anew, and something is set aside on c.
		list = ok(b.Budgets(b.ctx, 9))(b)
		b.equal("left", []any{len(list), list[0].Key, list[1].Key}, []any{2, "c", "b"})
	}},
}

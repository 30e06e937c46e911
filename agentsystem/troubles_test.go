package agentsystem_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/budgets"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

// Operators read of a hard budget that stops other people, once for each limit; not of one that
// stops only themselves.
func TestSpentBudgetIsTold(t *testing.T) {
	banking(t, talks(900), func(b *bank) {
		b.line = func(l *line) connectors.Connector { return l }
		b.rules = []budgets.Rule{{Per: budgets.PerOwner, Every: budgets.EveryAlways, Unit: storage.UnitTokens, Limit: 10, Hard: true}}
		n := b.bossy()
		if got := b.bossReads(n); len(got) != 0 {
			b.Errorf("the operator reads of their own budget: %q", got)
		}
		for range 2 {
			for _, name := range []string{"eve", "bob"} {
				b.post(claybot.User("chat", name, name), msg(string(claybot.NewID()), "tell me more"))
			}
			synctest.Wait()
			time.Sleep(2 * time.Hour)
			want := []string{"2 budgets are used up and stop work. `claybot budgets list` shows which, and `claybot budgets extend` raises one."}
			if got := b.bossReads(n); !slices.Equal(got, want) {
				b.Errorf("the operator reads %q, want %q", got, want)
			}
			b.restart()
		}
	})
}

// A crash right after a budget stopped a run does not keep operators from reading of it, and no
// operator reads of it twice.
func TestSpentBudgetIsToldAfterACrash(t *testing.T) {
	banking(t, talks(900), func(b *bank) {
		b.line = func(l *line) connectors.Connector { return l }
		b.rules = []budgets.Rule{{Per: budgets.PerOwner, Every: budgets.EveryAlways, Unit: storage.UnitTokens, Limit: 10, Hard: true}}
		n := b.bossy()
		b.post(claybot.User("chat", "eve", "eve"), msg("e", "tell me more"))
		synctest.Wait()
		for range 2 {
			b.crash()
			b.start()
			time.Sleep(2 * time.Hour)
			want := []string{"1 budget is used up and stops work. `claybot budgets list` shows which, and `claybot budgets extend` raises one."}
			if got := b.bossReads(n); !slices.Equal(got, want) {
				b.Errorf("the operator reads %q, want %q", got, want)
			}
		}
		if left, err := b.db.ListCheckpoints(b.Context(), "notice/budget/"); err != nil || len(left) > 0 {
			b.Errorf("what operators know is kept: %q, %v", left, err)
		}
	})
}

package agentsystem_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/budgets"
	"github.com/claybot/claybot/storage"
)

// TestUsageCommand: /usage tells a person what is theirs, and a group what belongs to it.
func TestUsageCommand(t *testing.T) {
	t.Parallel()
	group := claybot.User("chat", "-100", "ann")
	rules := []budgets.Rule{
		{Per: budgets.PerOwner, Every: budgets.EveryDay, Unit: storage.UnitMicroUSD, Limit: 10_000_000, Hard: true},
		{Per: budgets.PerAll, Every: budgets.EveryMonth, Unit: storage.UnitTokens, Limit: 1_000_000},
		{Per: budgets.PerAgent, Every: budgets.EveryAlways, Unit: storage.UnitTokens, Limit: 500_000, Hard: true},
	}
	for name, tt := range map[string]struct {
		to          claybot.Descriptor
		talks       bool
		rules       []budgets.Rule
		says, hides []string
	}{
		"nothing yet": {to: ann, says: []string{"in all our conversations:", "- Nothing since today at 0:00 UTC."}, hides: []string{"budget", "month"}},
		"a person": {
			to: ann, talks: true, rules: rules,
			says: []string{
				"- Since today at 0:00 UTC: $", "tokens in 1 model call.", "- Your budget for today: $", " of $10.00 is spent. Left: $", ". A new one begins tomorrow at 0:00 UTC.",
				"- The budget of this agent: ", " of 500,000 tokens are spent.",
			},
			hides: []string{"all agents"},
		},
		"an operator": {
			to: claybot.User("chat", "dm-boss", "boss"), talks: true, rules: rules,
			says: []string{"- The budget of all agents for this month: ", " of 1,000,000 tokens are spent.", "A new one begins on Tuesday, 1 February at 0:00 UTC."},
		},
		"a group": {
			to: group, talks: true, rules: rules,
			says:  []string{"in this conversation:", "- Since today", "- The budget of this agent: ", "Send me /usage in a direct message"},
			hides: []string{"Your budget", "all agents", "$10.00"},
		},
		"a bad budget": {
			to: ann, rules: []budgets.Rule{{Per: budgets.PerAll, Every: budgets.EveryAlways, Fault: "usd: five is not an amount"}},
			says: []string{"- Nothing since", "- A budget is not configured correctly"}, hides: []string{"five"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			banking(t, talks(5), func(b *bank) {
				b.reports.Spent = func(ctx context.Context, q storage.SpentQuery) ([]storage.Spent, error) { return b.db.Spent(ctx, q) }
				b.reports.Budgets = func(ctx context.Context, ids ...claybot.AgentID) (map[claybot.AgentID][]budgets.Standing, error) {
					return b.paying().Standings(ctx, ids...)
				}
				m, c := msg("m", "hello"), command("c", "usage")
				if tt.to == group {
					b.instances = map[string]string{"chat": "telegram"}
					m.Context.Group, c.Context.Group = true, true
				}
				b.rules = tt.rules
				b.start()
				if tt.talks {
					b.post(tt.to, m)
				}
				synctest.Wait()
				said := len(b.chat.seen())
				_, calls := b.server.Tokens()
				b.post(tt.to, c, c) // redelivered
				synctest.Wait()
				got := strings.Join(b.chat.seen()[said:], "")
				if n := strings.Count(got, tt.says[0]); n != 1 {
					t.Errorf("answered %d times", n)
				}
				for _, w := range tt.says {
					if !strings.Contains(got, w) {
						t.Errorf("no %q in\n%s", w, got)
					}
				}
				for _, w := range tt.hides {
					if strings.Contains(got, w) {
						t.Errorf("%q in\n%s", w, got)
					}
				}
				if _, after := b.server.Tokens(); after != calls {
					t.Error("the model was asked")
				}
			})
		})
	}
}

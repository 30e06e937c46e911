package storagetest

import (
	"context"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// ManyAgents is how many agents BenchAgents needs, with the numbers from 1 on: agent i is
// that of claybot.User("telegram", "C<i>", "U<i>"), its id "a<i>", and the last 100 are
// subagents of a1, which works for "telegram/U1" like these. Each has one run.
const ManyAgents = 1_000_000

// AgentsAndRuns is what BenchAgents reads.
type AgentsAndRuns interface {
	storage.AgentReader
	storage.RunReader
}

// BenchAgents measures what list_agents and revoking a person read, among many agents.
func BenchAgents(b *testing.B, db AgentsAndRuns) {
	page := func(q storage.AgentQuery) func(ctx context.Context) (int, error) {
		return func(ctx context.Context) (int, error) {
			all, err := db.AgentPage(ctx, q)
			return len(all), err
		}
	}
	listed := func(ctx context.Context, owner string) (n int, err error) {
		for _, busy := range []bool{true, false} {
			all, err := db.AgentPage(ctx, storage.AgentQuery{Owner: owner, Busy: busy, Limit: 100})
			if err != nil {
				return n, err
			}
			for _, e := range all {
				if _, err := db.LastRun(ctx, e.ID); err != nil {
					return n, err
				}
			}
			n += len(all)
		}
		return n, nil
	}
	for _, x := range []struct {
		name string
		want int // results
		fn   func(ctx context.Context) (int, error)
	}{
		{"list_agents of a person", 100, func(ctx context.Context) (int, error) { return listed(ctx, "telegram/U1") }},
		{"list_agents of all", 100, func(ctx context.Context) (int, error) { return listed(ctx, "") }},
		{"page, first", 50, page(storage.AgentQuery{})},
		{"page, subagents", 50, page(storage.AgentQuery{Type: claybot.AgentSubagent})},
		{"page, users behind the middle", 50, page(storage.AgentQuery{Type: claybot.AgentUser, After: "a500000"})},
		{"revoke, one chat", 2, func(ctx context.Context) (int, error) { return revoked(ctx, db, "U777") }},
		{"revoke, 100 subagents", 102, func(ctx context.Context) (int, error) { return revoked(ctx, db, "U1") }},
		{"most recent chat of a person", 1, func(ctx context.Context) (n int, err error) {
			for _, err := range db.Foreground(ctx, []string{"telegram/U777"}) {
				return 1, err
			}
			return 0, nil
		}},
	} {
		b.Run(x.name, func(b *testing.B) {
			for b.Loop() {
				if n, err := x.fn(b.Context()); err != nil || n != x.want {
					b.Fatalf("%d results, %v, want %d", n, err, x.want)
				}
			}
		})
	}
}

// revoked reads what revoking the access of a person of Telegram does.
func revoked(ctx context.Context, db storage.AgentReader, user string) (int, error) {
	all, err := db.OwnedAgents(ctx, "telegram/"+user)
	if err != nil {
		return 0, err
	}
	inside, err := db.ChannelAgents(ctx, "telegram", "C"+user[1:])
	if err != nil {
		return 0, err
	}
	n := len(all) + len(inside)
	for _, e := range all {
		below, err := db.Children(ctx, e.ID)
		if err != nil {
			return 0, err
		}
		if e.Descriptor.Foreground() && len(below) > 0 && len(below) != n-2 {
			return 0, nil
		}
	}
	return n, nil
}

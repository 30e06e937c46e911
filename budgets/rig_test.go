package budgets_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/budgets"
	"github.com/claybot/claybot/cluster"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/sqlite"
	"github.com/claybot/claybot/texts"
)

// A rig is a store in a bubble and what a Limiter needs beside it: users without
// agents, and runs without subagents.
type rig struct {
	*testing.T
	db *sqlite.DB
	// identities are the owner ids of one person who has several.
	identities []string
	operators  []string
	notify     func(owner, key, text string) error
	// stops are the keys of the budgets that stopped a run.
	stops []string
	flows map[claybot.RunID][]claybot.RunBudget
}

// empty is a database without rows. A copy of it is ready much earlier than a new one.
var empty = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "budgets")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "claybot.db")
	db, err := sqlite.Open(context.Background(), name, sqlite.Config{})
	if err != nil {
		return nil, err
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(name)
})

func bubble(t *testing.T, test func(r *rig)) {
	t.Helper()
	content, err := empty() // what it starts is to live outside of the bubble
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		name := filepath.Join(t.TempDir(), "claybot.db")
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
		db, err := sqlite.Open(t.Context(), name, sqlite.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		test(&rig{T: t, db: db})
	})
}

// limiter makes the Limiter of one process.
func (r *rig) limiter(m *cluster.Membership, store storage.Budgets, rules ...budgets.Rule) *budgets.Limiter {
	return budgets.New(budgets.Config{
		Store: store, Agents: r.db, Questions: r.db, Runs: runsAlone{r.flows}, People: r, Members: m,
		Rules:     func() []budgets.Rule { return rules },
		Operators: func() []string { return r.operators },
		Consoles:  []string{"web/operator", "terminal/operator"},
		Profile:   func(claybot.Descriptor) string { return "default" },
		Zone:      func() *time.Location { return time.UTC },
		Stopped: func(_ context.Context, key string, _ int64) error {
			r.stops = append(r.stops, key)
			return nil
		},
		NewID: func() string { return string(claybot.NewID()) },
		Log:   slog.New(slog.DiscardHandler),
	})
}

// alone is the membership of a process that has the store for itself.
func alone() *cluster.Membership { return cluster.Alone(storage.Member{ID: "alone"}) }

// join returns a membership with a term, which leave ends; so does the end of the test.
func (r *rig) join(name string) (m *cluster.Membership, leave func()) {
	r.Helper()
	m = cluster.New(cluster.Config{Store: r.db, Claims: r.db, Self: storage.Member{Name: name}})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := m.Run(ctx); err != nil {
			r.Errorf("member %s: %v", name, err)
		}
	}()
	leave = func() {
		cancel()
		<-done
	}
	r.Cleanup(leave)
	if _, err := m.Joined(r.Context()); err != nil {
		r.Fatal(err)
	}
	return m, leave
}

// stands compares what is reserved and spent on the only budget.
func (r *rig) stands(reserved, spent int64) {
	r.Helper()
	list, err := r.db.Budgets(r.Context(), 10)
	if err != nil || len(list) > 1 {
		r.Fatal(list, err)
	}
	var b storage.Budget
	if len(list) == 1 {
		b = list[0]
	}
	if b.Reserved != reserved || b.Spent != spent {
		r.Errorf("%d are reserved and %d spent, want %d and %d", b.Reserved, b.Spent, reserved, spent)
	}
}

// Identities implements budgets.People.
func (r *rig) Identities(owner string) []string {
	for _, id := range r.identities {
		if id == owner {
			return r.identities
		}
	}
	return []string{owner}
}

// IsOperator implements budgets.People.
func (r *rig) IsOperator(string) bool { return false }

// Notify implements budgets.People.
func (r *rig) Notify(_ context.Context, owner, key string, say func(texts.Voice) string) error {
	return r.notify(owner, key, say(texts.Voice{}))
}

// runsAlone are runs that no other run began, with budgets of workflows.
type runsAlone struct {
	budgets map[claybot.RunID][]claybot.RunBudget
}

func (r runsAlone) Budgets(run claybot.RunID) []claybot.RunBudget      { return r.budgets[run] }
func (runsAlone) Root(run claybot.RunID) claybot.RunID                 { return run }
func (runsAlone) Owner(context.Context, claybot.RunID) (string, error) { return "", nil }
func (runsAlone) Resume(context.Context, claybot.AgentID, claybot.RunID, claybot.Answer) error {
	return nil
}

// allTokens is a hard budget of all agents.
func allTokens(limit int64) budgets.Rule {
	return budgets.Rule{Per: budgets.PerAll, Every: budgets.EveryAlways, Unit: storage.UnitTokens, Limit: limit, Hard: true}
}

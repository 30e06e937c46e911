package main

import (
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/budgets"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/storage/postgres"
	"github.com/claybot/claybot/storage/sqlite"
)

// Only an installation that has never started gets a default budget, and keeps it whatever
// comes later. One from before default budgets gets none, and the doctor says so.
func TestDefaultBudget(t *testing.T) {
	for name, tt := range map[string]struct {
		prepare func(*testing.T, string, *sqlite.DB)
		want    int64
	}{
		"new": {func(*testing.T, string, *sqlite.DB) {}, ownerTokens},
		"started before": {func(t *testing.T, _ string, db *sqlite.DB) {
			if err := db.SetCheckpoint(t.Context(), markInstallation, "x"); err != nil {
				t.Fatal(err)
			}
		}, 0},
		"with agents": {func(t *testing.T, dir string, db *sqlite.DB) {
			all, err := files.Open(files.Config{Dir: dir, Index: db, Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			defer all.Close()
			if _, err := all.AgentFor(t.Context(), claybot.User("telegram", "1", "1")); err != nil {
				t.Fatal(err)
			}
		}, 0},
		"another mark": {func(t *testing.T, _ string, db *sqlite.DB) {
			if err := db.SetCheckpoint(t.Context(), markBudget, "a lot"); err != nil {
				t.Fatal(err)
			}
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			db, err := sqlite.Open(t.Context(), filepath.Join(dir, "claybot.db"), sqlite.Config{})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			tt.prepare(t, dir, db)
			s := &stores{db: &revocable{DB: db, dir: dir}}
			for range 2 {
				if got, err := s.defaultBudget(t.Context()); err != nil || got != tt.want {
					t.Errorf("default budget %d, %v; want %d", got, err, tt.want)
				}
				if err := db.SetCheckpoint(t.Context(), markInstallation, "x"); err != nil { // as the start does
					t.Fatal(err)
				}
			}
			d := &doctor{config: configs.Config{DataDir: dir, Model: configs.Model{Name: "m", BaseURL: "http://127.0.0.1"}}, hide: strings.NewReplacer(), holder: "another"}
			d.budgets(t.Context())
			want := postgres.LevelOK
			if tt.want == 0 {
				want = postgres.LevelWarning
			}
			if len(d.all) != 1 || d.all[0].Level != want {
				t.Errorf("the doctor finds %+v, want %v", d.all, want)
			}
		})
	}
}

// A budget per owner of the configuration replaces the default, and so does an empty list.
func TestDefaultBudgetIsReplaced(t *testing.T) {
	given := budgets.Rule{Per: budgets.PerOwner, Every: budgets.EveryDay, Unit: storage.UnitTokens, Limit: 7, Hard: true, Default: true}
	for _, tt := range []struct {
		list   []configs.Budget
		tokens int64
		want   bool
	}{
		{nil, 7, true},
		{nil, 0, false},
		{[]configs.Budget{}, 7, false},
		{[]configs.Budget{{Per: configs.BudgetAll}}, 7, true},
		{[]configs.Budget{{Per: configs.BudgetAll}, {Per: configs.BudgetOwner, Match: "slack"}}, 7, false},
	} {
		got := withDefault(nil, configs.Config{Agents: configs.Agents{Budgets: tt.list}}, tt.tokens)
		if slices.Contains(got, given) != tt.want || len(got) > 1 {
			t.Errorf("%+v with %d: %+v", tt.list, tt.tokens, got)
		}
	}
}

package main

import (
	"path/filepath"
	"testing"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/storage/sqlite"
)

// Threads are conversations of their own only in an installation that began so, and stay what
// they were until the configuration says otherwise.
func TestThreadsOfInstallation(t *testing.T) {
	for name, tt := range map[string]struct {
		mark, said string
		want       bool
	}{
		"new":                         {"", "", true},
		"new, configured":             {"", configs.ThreadsShared, false},
		"started before":              {markInstallation, "", false},
		"started before, configured":  {markInstallation, configs.ThreadsOwn, true},
		"began with their own, later": {markThreads, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			db, err := sqlite.Open(t.Context(), filepath.Join(dir, "claybot.db"), sqlite.Config{})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if tt.mark != "" {
				if err := db.SetCheckpoint(t.Context(), tt.mark, configs.ThreadsOwn); err != nil {
					t.Fatal(err)
				}
			}
			s := &stores{db: &revocable{DB: db, dir: dir}}
			for range 2 {
				if s.threads, err = s.settled(t.Context(), markThreads, configs.ThreadsOwn, configs.ThreadsShared); err != nil {
					t.Fatal(err)
				}
				d := &daemon{config: newSettings(configs.Config{Sessions: configs.Sessions{Threads: tt.said}}, nil), stores: s}
				if got := d.ownThreads(); got != tt.want {
					t.Errorf("own threads: %v, want %v", got, tt.want)
				}
				if err := db.SetCheckpoint(t.Context(), markInstallation, "x"); err != nil { // as the start does
					t.Fatal(err)
				}
			}
		})
	}
}

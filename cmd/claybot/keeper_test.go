package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/storage/sqlite"
)

// newKeeper has a data directory with a few agents, whose database has been closed once.
func newKeeper(t *testing.T) *keeper {
	t.Helper()
	dir := t.TempDir()
	log := slog.New(slog.DiscardHandler)
	c := configs.Config{DataDir: dir, Storage: configs.Storage{CheckAt: "03:30", Copies: 2}, Schedule: configs.Schedule{Cron: configs.Cron{Zone: time.UTC}}}
	k := &keeper{config: newSettings(c, log), log: log, broken: make(chan error, 1)}
	for range 2 { // the second one reads what is in the file
		db, err := openDatabase(t.Context(), dir, sqlite.Config{Damaged: func(err error) { k.broken <- err }})
		if err != nil {
			t.Fatal(err)
		}
		agents, err := files.Open(files.Config{Dir: dir, Index: db})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 20 {
			a, err := agents.AgentFor(t.Context(), claybot.User("telegram", fmt.Sprint("C", i), "U1"))
			if err != nil {
				t.Fatal(err)
			}
			m := claybot.AgentMessage{ID: claybot.MessageID(fmt.Sprint("m", i)), Type: claybot.MessageUser, Text: strings.Repeat("text ", 500)}
			if _, err := db.Post(t.Context(), storage.Posting{To: a.ID, Message: m}); err != nil {
				t.Fatal(err)
			}
		}
		if k.db != nil {
			k.db, k.agents = db, agents
			t.Cleanup(func() { _ = errors.Join(agents.Close(), db.Close()) }) // it may be damaged
			return k
		}
		if k.db = db; errors.Join(agents.Close(), db.Close()) != nil {
			t.Fatal("cannot close the stores")
		}
	}
	return k
}

// Damage of the database that is met at run time ends the daemon with exit code 5 and
// the next command (R6).
func TestDamageAtRunTimeEndsTheDaemon(t *testing.T) {
	k := newKeeper(t)
	path := filepath.Join(k.config.Load().DataDir, "claybot.db")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	for at := 4096 + 100; at < len(b); at += 4096 { // a bit of each page but the first
		if _, err := f.WriteAt([]byte{b[at] ^ 1}, int64(at)); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	err = k.run(t.Context())
	if exitCode(err) != exitDamaged || !strings.Contains(err.Error(), "then put a backup of the directory in its place") {
		t.Errorf("ends with %v, exit code %d", err, exitCode(err))
	}
	// Nothing is answered from it meanwhile, and nothing is accepted.
	_, err = k.db.Post(t.Context(), storage.Posting{To: "nobody", Message: claybot.AgentMessage{ID: "x", Type: claybot.MessageUser}})
	if storage.ClassOf(err) != storage.ClassStore {
		t.Errorf("posting to it: %v", err)
	}
}

// A check finds what is wrong, and says so in status; what can be made anew is.
func TestKeeperChecks(t *testing.T) {
	k := newKeeper(t)
	dir := k.config.Load().DataDir
	k.check(t.Context())
	for what, c := range k.results() {
		if c.Problem {
			t.Errorf("check %s of a whole directory: %s", what, c.Text)
		}
	}
	histories, err := filepath.Glob(filepath.Join(dir, "agents", "*", "history.jsonl"))
	if err != nil || len(histories) != 20 {
		t.Fatalf("%d histories: %v", len(histories), err)
	}
	b, err := os.ReadFile(histories[3])
	if err != nil {
		t.Fatal(err)
	}
	b[7] ^= 1
	if err := errors.Join(os.WriteFile(histories[3], b, 0o600), os.Remove(histories[5])); err != nil {
		t.Fatal(err)
	}
	lost := claybot.AgentID(filepath.Base(filepath.Dir(histories[9])))
	if err := k.db.UnindexAgent(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	k.check(t.Context())
	c := k.results()["histories"]
	for _, i := range []int{3, 5} {
		if id := filepath.Base(filepath.Dir(histories[i])); !c.Problem || !strings.Contains(c.Text, id) {
			t.Errorf("agent %s is not named: %+v", id, c)
		}
	}
	if _, err := k.db.IndexedDescriptor(t.Context(), lost); err != nil {
		t.Errorf("the index was not made anew: %v", err)
	}
	if again := (&keeper{config: k.config, log: k.log, db: k.db}); true {
		again.load(t.Context())
		if again.results()["histories"].Text != c.Text {
			t.Errorf("after a restart: %+v", again.results())
		}
	}
}

// Copies are whole, private, and as many as configured; the newest whole one is restored.
func TestKeeperCopies(t *testing.T) {
	k := newKeeper(t)
	dir := k.config.Load().DataDir
	if err := os.Mkdir(filepath.Join(dir, copiesDir), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"claybot-20250101T000000Z.db", "claybot-20250102T000000Z.db"} {
		if err := os.WriteFile(filepath.Join(dir, copiesDir, name), []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	k.copy(t.Context())
	if c := k.results()["copy"]; c.Problem {
		t.Fatal(c.Text)
	}
	all, err := copies(filepath.Join(dir, copiesDir))
	if err != nil || len(all) != 2 || !strings.HasSuffix(all[1], "claybot-20250102T000000Z.db") {
		t.Fatalf("copies: %v %v", all, err)
	}
	if info, err := os.Stat(all[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the copy: %v %v", info, err)
	}
	if err := sqlite.Verify(t.Context(), all[0]); err != nil {
		t.Error(err)
	}
	// Restored: what waited has ended, and nothing is answered twice.
	path := filepath.Join(t.TempDir(), "claybot.db")
	ends := func(want storage.Ended) func(string) error {
		return func(fresh string) error {
			got, _, _, err := prepareRestored(t.Context(), filepath.Dir(path), fresh, time.Now())
			if err == nil && got != want {
				err = fmt.Errorf("ended %+v, want %+v", got, want)
			}
			return err
		}
	}
	if err := sqlite.Restore(t.Context(), all[0], path, path+"-aside", ends(storage.Ended{Messages: 20})); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path + "-aside"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("set aside: %v", err)
	}
	if err := ends(storage.Ended{})(path); err != nil {
		t.Errorf("a second time: %v", err)
	}
}

func drop(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

func move(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Files that are removed or replaced while the daemon works end it with exit code 5 and
// the next command, within seconds; nothing is accepted from then on.
func TestMovedFilesEndTheDaemon(t *testing.T) {
	for name, harm := range map[string]func(t *testing.T, path string){
		"removed": func(t *testing.T, path string) {
			drop(t, filepath.Dir(path), "claybot.db", "claybot.db-wal", "claybot.db-shm")
		},
		"the log is removed": func(t *testing.T, path string) { drop(t, filepath.Dir(path), "claybot.db-wal") },
		"replaced": func(t *testing.T, path string) {
			move(t, path, path+"2")
			if err := os.Rename(path+"2", path); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newKeeper(t)
				began := time.Now()
				ctx, stop := context.WithTimeout(t.Context(), time.Minute)
				defer stop()
				time.AfterFunc(2*lookPlace+time.Second, func() { harm(t, filepath.Join(k.config.Load().DataDir, "claybot.db")) })
				err := k.run(ctx)
				if exitCode(err) != exitDamaged || !strings.Contains(err.Error(), "claybot restore --data-dir") {
					t.Errorf("ends with %v, exit code %d", err, exitCode(err))
				}
				if took := time.Since(began); took != 3*lookPlace {
					t.Errorf("noticed after %v", took)
				}
				_, err = k.db.Post(t.Context(), storage.Posting{To: "any", Message: claybot.AgentMessage{ID: "x", Type: claybot.MessageUser}})
				if storage.ClassOf(err) != storage.ClassStore {
					t.Errorf("posting to it: %v", err)
				}
			})
		})
	}
}

// The first copy of a store that has none is made an hour after the start; what a copy
// left that was cut short goes before the next one.
func TestFirstCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeeper(t)
		dir := filepath.Join(k.config.Load().DataDir, copiesDir)
		stale := filepath.Join(dir, "claybot-20250101T000000Z.db.new")
		if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(stale, []byte("half"), 0o600)); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- k.run(ctx) }()
		for _, tt := range []struct {
			after time.Duration
			want  int
		}{{firstCopy - time.Minute, 0}, {2 * time.Minute, 1}, {time.Hour, 1}} {
			time.Sleep(tt.after)
			synctest.Wait()
			if all, err := copies(dir); err != nil || len(all) != tt.want {
				t.Errorf("after %v: %d copies, want %d (%v)", tt.after, len(all), tt.want, err)
			}
		}
		if _, err := os.Stat(stale); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("half a copy stays: %v", err)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestUntilNight(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	k := &keeper{config: newSettings(configs.Config{Storage: configs.Storage{CheckAt: "03:30"}, Schedule: configs.Schedule{Cron: configs.Cron{Zone: zone}}}, nil)}
	for _, tt := range []struct {
		now  string
		want time.Duration
	}{
		{"2026-01-01T03:29:00+01:00", time.Minute},
		{"2026-01-01T03:30:00+01:00", 24 * time.Hour},
		{"2026-03-28T04:30:00+01:00", 22 * time.Hour}, // an hour is left out
		{"2026-10-24T02:30:00Z", 24 * time.Hour},      // one comes twice, and it is past 04:30
	} {
		now, err := time.Parse(time.RFC3339, tt.now)
		if err != nil {
			t.Fatal(err)
		}
		if got := k.untilNight(now); got != tt.want {
			t.Errorf("%s: in %v, want %v", tt.now, got, tt.want)
		}
	}
	if !slices.Contains(configs.Keys(), "storage.check_at") {
		t.Error("there is no key storage.check_at")
	}
}

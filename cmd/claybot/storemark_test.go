package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/storage/sqlite"
)

// A life is a process that uses a data directory, as far as its stores are concerned.
type life struct {
	*testing.T
	dir    string
	keeper *keeper
	// lost: the start found that the database had gone back.
	lost bool
}

// begin starts a process in dir.
func begin(t *testing.T, dir string) *life {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	c := configs.Config{DataDir: dir, Storage: configs.Storage{CheckAt: "03:30", Copies: 2}, Schedule: configs.Schedule{Cron: configs.Cron{Zone: time.UTC}}}
	l := &life{T: t, dir: dir}
	db, err := openDatabase(t.Context(), dir, sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	agents, err := files.Open(files.Config{Dir: dir, Index: db})
	if err != nil {
		t.Fatal(err)
	}
	l.keeper = &keeper{config: newSettings(c, log), log: log, db: db, agents: agents}
	openBoots(t.Context(), dir, log, l.keeper)
	mark, err := db.Checkpoint(t.Context(), markRestored)
	if err != nil {
		t.Fatal(err)
	}
	l.lost = mark != ""
	if err := db.SetCheckpoint(t.Context(), markRestored, ""); err != nil { // people are told
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(agents.Close(), db.Close()) }) // it may have ended
	return l
}

// accept stores a message for an agent.
func (l *life) accept(id string) { l.acceptText(id, "text") }

func (l *life) acceptText(id, text string) {
	l.Helper()
	a, err := l.keeper.agents.AgentFor(l.Context(), claybot.User("telegram", "C1", "U1"))
	if err != nil {
		l.Fatal(err)
	}
	m := claybot.AgentMessage{ID: claybot.MessageID(id), Type: claybot.MessageUser, Text: text}
	if _, err := l.keeper.db.Post(l.Context(), storage.Posting{To: a.ID, Message: m}); err != nil {
		l.Fatal(err)
	}
}

// remind stores a reminder that is due.
func (l *life) remind(id string) {
	l.Helper()
	a, err := l.keeper.agents.AgentFor(l.Context(), claybot.User("telegram", "C1", "U1"))
	if err == nil {
		err = l.keeper.db.AddReminder(l.Context(), storage.Reminder{ID: id, Agent: a.ID, Due: claybot.Now() - 1, Note: "text"}, 10)
	}
	if err != nil {
		l.Fatal(err)
	}
}

// due is how many reminders are left.
func (l *life) due() int {
	l.Helper()
	all, err := l.keeper.db.NextReminders(l.Context(), 10)
	if err != nil {
		l.Fatal(err)
	}
	return len(all)
}

// skipped is why a message was not run, empty when it still waits.
func (l *life) skipped(id string) string {
	l.Helper()
	r, err := l.keeper.db.Receipt(l.Context(), claybot.MessageID(id))
	if err != nil {
		l.Fatal(err)
	}
	return r.Skipped
}

// end is an orderly end.
func (l *life) end() {
	l.Helper()
	k := l.keeper
	if err := errors.Join(k.Close(), k.agents.Close(), k.db.Close(), l.keeper.boots.Close()); err != nil {
		l.Fatal(err)
	}
}

// killed returns the directory as kill -9 leaves it.
func (l *life) killed() string {
	l.Helper()
	to := filepath.Join(l.TempDir(), "data")
	if err := os.CopyFS(to, os.DirFS(l.dir)); err != nil {
		l.Fatal(err)
	}
	if err := os.Chmod(to, 0o700); err != nil {
		l.Fatal(err)
	}
	return to
}

// minute is what happens every minute.
func (l *life) minute() { l.keeper.markCommits(l.Context()) }

// putBack returns the directory as kill -9 leaves it, with the database of another one.
func (l *life) putBack(saved string) string {
	l.Helper()
	dir := l.killed()
	for _, name := range []string{"claybot.db", "claybot.db-wal"} {
		move(l.T, filepath.Join(saved, name), filepath.Join(dir, name))
	}
	drop(l.T, dir, "claybot.db-shm")
	return dir
}

// checkpoint moves the log into the file, as it happens now and then.
func (l *life) checkpoint() {
	l.Helper()
	for i := range 20 {
		l.acceptText(fmt.Sprint("filler ", i), strings.Repeat("much text ", 60_000))
	}
	if info, err := os.Stat(filepath.Join(l.dir, "claybot.db")); err != nil || info.Size() <= 4096 {
		l.Fatalf("no checkpoint: %v %v", info, err)
	}
}

// TestSetBack lets a database lose its contents or go back in time in every way that an
// operator or a disk can bring about. The next start notices, ends what was unfinished
// and leaves word; the start behind it finds nothing. What happens every day is no loss.
func TestSetBack(t *testing.T) {
	for name, tt := range map[string]struct {
		// happens returns the directory of the next start, whose first process is l.
		happens func(l *life) string
		lost    bool
		// waits: the message from before waits again, and is ended by a loss.
		waits bool
	}{
		"an orderly end": {func(l *life) string { l.end(); return l.dir }, false, true},
		"kill -9":        {(*life).killed, false, true},
		"kill -9 twice":  {func(l *life) string { return begin(l.T, l.killed()).killed() }, false, true},
		"kill -9 behind a checkpoint": {func(l *life) string {
			l.checkpoint()
			return l.killed()
		}, false, true},
		"kill -9, and a command that opens the store": {func(l *life) string {
			dir := l.killed()
			if err := recovered(l.Context(), dir); err != nil {
				l.Fatal(err)
			}
			return dir
		}, false, true},
		"kill -9, and claybot doctor": {func(l *life) string {
			dir := l.killed()
			if _, err := sqlite.Look(l.Context(), filepath.Join(dir, "claybot.db"), true); err != nil {
				l.Fatal(err)
			}
			return dir
		}, false, true},
		"kill -9 between the marks of a start": {func(l *life) string {
			dir := l.killed()
			db, err := openDatabase(l.Context(), dir, sqlite.Config{})
			if err != nil {
				l.Fatal(err)
			}
			defer func() { _ = db.Close() }()
			b, err := files.ReadBoot(dir)
			if err == nil {
				_, err = grow(l.Context(), db, b.Store)
			}
			if err != nil {
				l.Fatal(err)
			}
			return (&life{T: l.T, dir: dir}).killed()
		}, false, true},
		"an older version wrote the record": {func(l *life) string {
			dir := l.killed()
			if err := os.WriteFile(filepath.Join(dir, "boots.json"), []byte(`{"unclean":0,"started":1700000000000}`), 0o600); err != nil {
				l.Fatal(err)
			}
			return dir
		}, false, true},
		"no record": {func(l *life) string {
			l.end()
			drop(l.T, l.dir, "boots.json")
			return l.dir
		}, false, true},
		"a copy of the whole directory": {func(l *life) string {
			l.end()
			return l.killed()
		}, false, true},
		"claybot restore": {func(l *life) string {
			copied := filepath.Join(l.TempDir(), "claybot-20260101T000000Z.db")
			if err := l.keeper.db.Backup(l.Context(), copied, 0); err != nil {
				l.Fatal(err)
			}
			l.accept("later")
			dir := l.killed()
			if code := run([]string{"restore", "--data-dir", dir, copied}, strings.NewReader(""), new(strings.Builder), os.Stderr); code != exitOK {
				l.Fatalf("claybot restore: exit code %d", code)
			}
			return dir
		}, true, true},
		"the log is removed from a young store": {func(l *life) string {
			dir := l.killed()
			drop(l.T, dir, "claybot.db-wal", "claybot.db-shm")
			return dir
		}, true, false},
		"the log of a young store that no record knows": {func(l *life) string {
			dir := l.killed()
			drop(l.T, dir, "claybot.db-wal", "claybot.db-shm", "boots.json")
			return dir
		}, true, false},
		"the log is removed behind a checkpoint": {func(l *life) string {
			l.checkpoint()
			dir := l.killed()
			drop(l.T, dir, "claybot.db-wal", "claybot.db-shm")
			return dir
		}, false, true}, // looks like a process that closed the database in order
		"a start that is killed before it has ended the work": {func(l *life) string {
			dir := l.killed()
			drop(l.T, dir, "claybot.db-wal", "claybot.db-shm")
			if _, err := expect(dir, filepath.Join(dir, "claybot.db")); err != nil {
				l.Fatal(err)
			}
			db, err := sqlite.Open(l.Context(), filepath.Join(dir, "claybot.db"), sqlite.Config{})
			if err != nil {
				l.Fatal(err)
			}
			defer func() { _ = db.Close() }()
			return (&life{T: l.T, dir: dir}).killed()
		}, true, false},
		"the database is removed": {func(l *life) string {
			l.end()
			drop(l.T, l.dir, "claybot.db")
			return l.dir
		}, true, false},
		"an older file is put in place": {func(l *life) string {
			l.end()
			saved := filepath.Join(l.TempDir(), "saved")
			move(l.T, filepath.Join(l.dir, "claybot.db"), saved)
			begin(l.T, l.dir).end()
			move(l.T, saved, filepath.Join(l.dir, "claybot.db"))
			return l.dir
		}, true, true},
		"a verified copy is put in place by hand": {func(l *life) string {
			l.keeper.copy(l.Context())
			all, err := copies(filepath.Join(l.dir, copiesDir))
			if err != nil || len(all) != 1 {
				l.Fatalf("copies: %v %v", all, err)
			}
			dir := l.killed()
			drop(l.T, dir, "claybot.db-wal", "claybot.db-shm")
			move(l.T, all[0], filepath.Join(dir, "claybot.db"))
			return dir
		}, true, true},
		"kill -9 after some minutes": {func(l *life) string {
			for i := range 3 {
				l.accept(fmt.Sprint("later ", i))
				l.minute()
			}
			return l.killed()
		}, false, true},
		"kill -9 between the marks of a minute": {func(l *life) string {
			l.minute()
			l.accept("later")
			if _, err := grow(l.Context(), l.keeper.db, l.keeper.boots.Store()); err != nil {
				l.Fatal(err)
			}
			return l.killed()
		}, false, true},
		"a state of the same process is put back": {func(l *life) string {
			saved := l.killed()
			l.accept("later")
			l.minute()
			return l.putBack(saved)
		}, true, true},
		"a state of the same minute is put back": {func(l *life) string {
			saved := l.killed()
			l.accept("later")
			return l.putBack(saved)
		}, false, true}, // looks like a process that was killed then
		"the log is removed while it is in use": {func(l *life) string {
			drop(l.T, l.dir, "claybot.db-wal")
			k := l.keeper
			if err := k.db.CheckPlace(l.Context()); !errors.Is(err, sqlite.ErrMoved) {
				l.Fatalf("not noticed: %v", err)
			}
			_ = errors.Join(k.Close(), k.agents.Close(), k.db.Close(), l.keeper.boots.Close()) // which moves it into the file
			return l.dir
		}, false, true},
		"the database of another directory": {func(l *life) string {
			l.end()
			other := begin(l.T, l.TempDir())
			other.accept("first")
			other.end()
			move(l.T, filepath.Join(other.dir, "claybot.db"), filepath.Join(l.dir, "claybot.db"))
			return l.dir
		}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			l := begin(t, t.TempDir())
			if l.lost {
				t.Fatal("the first start found a loss")
			}
			l.accept("first")
			l.remind("r1")
			next := begin(t, tt.happens(l))
			if next.lost != tt.lost {
				t.Fatalf("found a loss: %v, want %v", next.lost, tt.lost)
			}
			want, reminders := "", 1
			if tt.lost {
				want, reminders = "restored", 0
			}
			if got := next.due(); got != reminders {
				t.Errorf("%d reminders are left, want %d", got, reminders)
			}
			// Sources run nothing from before.
			if at, err := connectors.Restored(t.Context(), next.keeper.db, time.Now()); err != nil || at.IsZero() == tt.lost {
				t.Errorf("the sources read that it was restored at %v, %v", at, err)
			}
			if tt.waits {
				if got := next.skipped("first"); got != want {
					t.Errorf("the message from before: skipped %q, want %q", got, want)
				}
			}
			next.accept("second")
			again := begin(t, next.killed())
			if again.lost || again.skipped("second") != "" {
				t.Errorf("the start behind it found a loss: %v, skipped %q", again.lost, again.skipped("second"))
			}
		})
	}
}

// Without commits, the minutes write nothing.
func TestMarkCommits(t *testing.T) {
	l := begin(t, t.TempDir())
	was := int64(0)
	for i, grows := range []bool{true, false, false, true, false} {
		if i == 3 {
			l.accept("first")
		}
		l.minute()
		n := int64(l.keeper.boots.Store().N)
		if n > was != grows {
			t.Errorf("minute %d: the mark is %d, was %d, want it to grow: %t", i, n, was, grows)
		}
		was = n
	}
}

// A restore that is cut short between its renames leaves no database. No start makes an
// empty one: it names the command that goes on.
func TestRestoreCutShort(t *testing.T) {
	l := begin(t, t.TempDir())
	l.accept("first")
	l.keeper.copy(t.Context())
	l.end()
	path := filepath.Join(l.dir, "claybot.db")
	move(t, path, path+sqlite.Restoring)
	drop(t, l.dir, "claybot.db")
	_, err := openDatabase(t.Context(), l.dir, sqlite.Config{})
	if exitCode(err) != exitDamaged || !strings.Contains(err.Error(), "claybot restore --data-dir "+l.dir) {
		t.Fatalf("a start: %v, exit code %d", err, exitCode(err))
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("a database was made: %v", err)
	}
	if code := run([]string{"restore", "--data-dir", l.dir}, strings.NewReader(""), new(strings.Builder), os.Stderr); code != exitOK {
		t.Fatalf("claybot restore: exit code %d", code)
	}
	if next := begin(t, l.dir); !next.lost || next.skipped("first") != "restored" {
		t.Errorf("after the restore: told %v, skipped %q", next.lost, next.skipped("first"))
	}
}

// A restore that fails before it has ended the old work changes nothing.
func TestRestoreEndsBeforeItIsInPlace(t *testing.T) {
	l := begin(t, t.TempDir())
	l.accept("first")
	l.keeper.copy(t.Context())
	l.end()
	path := filepath.Join(l.dir, "claybot.db")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all, err := copies(filepath.Join(l.dir, copiesDir))
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("the old work cannot be ended")
	err = sqlite.Restore(t.Context(), all[0], path, path+"-aside", func(fresh string) error {
		if fresh == path {
			t.Error("the copy is in place already")
		}
		return broken
	})
	after, rerr := os.ReadFile(path)
	if !errors.Is(err, broken) || rerr != nil || string(after) != string(before) {
		t.Errorf("got %v, %v; the database has changed: %v", err, rerr, string(after) != string(before))
	}
	if _, err := os.Stat(path + sqlite.Restoring); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it left the copy: %v", err)
	}
}

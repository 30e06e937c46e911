package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// heard collects what a store tells of its commits.
type heard struct {
	mu   sync.Mutex
	list []storage.Commit
}

func (h *heard) add(c storage.Commit) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, c)
}

// TestToldOnlyOfCommits: of calls that were tried in one transaction, rolled
// back and tried again, only what was committed is told, once.
func TestToldOnlyOfCommits(t *testing.T) { synctest.Test(t, testToldOnlyOfCommits) }

func testToldOnlyOfCommits(t *testing.T) {
	var h heard
	db := openWith(t, filepath.Join(t.TempDir(), "claybot.db"), Config{Committed: h.add})
	if err := db.Sinks(t.Context(), true, "web"); err != nil {
		t.Fatal(err)
	}
	if err := db.IndexAgents(t.Context(), theAgent); err != nil {
		t.Fatal(err)
	}
	bad := errors.New("bad")
	ends := map[string]func(*conn) error{
		"good 1": func(*conn) error { return nil },
		"good 2": func(*conn) error { return nil },
		"failed": func(*conn) error { return bad },
		"panic":  func(*conn) error { panic("oh") },
	}
	for name := range ends { // each is to become a run that is canceled
		m := textMessage(claybot.MessageID(name))
		m.Run = claybot.RunID(name)
		if _, err := db.Post(t.Context(), storage.Posting{To: theAgent.ID, Message: m}); err != nil {
			t.Fatal(err)
		}
	}
	var group sync.WaitGroup
	gate := make(chan struct{})
	group.Go(func() { // keeps the writer busy until all others queue
		_ = db.change(t.Context(), func(*conn) error { <-gate; return nil })
	})
	group.Go(func() {
		if err := db.change(t.Context(), func(*conn) error { return bad }); !errors.Is(err, bad) {
			t.Errorf("refused: %v", err)
		}
	})
	for name, end := range ends {
		group.Go(func() {
			_, err := db.ending(end).Drop(t.Context(), theAgent.ID, "test", claybot.MessageID(name))
			if (err == nil) != strings.HasPrefix(name, "good") {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	synctest.Wait() // all of them queue
	close(gate)
	group.Wait()
	var told, owed []string
	for _, c := range h.list {
		for _, e := range c.Events {
			told = append(told, string(e.Run))
		}
	}
	backlog, err := db.Backlog(t.Context(), "web", 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range backlog {
		owed = append(owed, string(u.Run))
	}
	want := []string{"good 1", "good 2"}
	for _, list := range [][]string{told, owed} {
		if slices.Sort(list); !slices.Equal(list, want) {
			t.Errorf("got %q, want %q", list, want)
		}
	}
}

// TestWatcherPanics: the store outlives whom it tells.
func TestWatcherPanics(t *testing.T) {
	var log bytes.Buffer
	db := openWith(t, filepath.Join(t.TempDir(), "claybot.db"), Config{
		Log: slog.New(slog.NewTextHandler(&log, nil)), Committed: func(storage.Commit) { panic("oh") },
	})
	for i := range 3 {
		a := theAgent
		a.ID, a.Descriptor.UserID = claybot.AgentID(fmt.Sprint("a", i)), fmt.Sprint(i)
		if err := db.IndexAgents(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	if f, err := db.Stats(t.Context()); err != nil || f.Agents != 3 || !strings.Contains(log.String(), "panic in a watcher") {
		t.Errorf("%d agents, %v, log %q", f.Agents, err, log.String())
	}
}

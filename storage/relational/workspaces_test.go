package relational_test

import (
	"path/filepath"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claybot/claybot/workspace"
)

func TestWorkspaces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "claybot.db")
	db := openAt(t, path)
	ctx := t.Context()
	at := time.Date(2026, 3, 1, 12, 0, 0, 5e6, time.UTC)
	e := workspace.Entry{
		Node: "n1", Provider: "docker", Key: "agent/a", Agent: "a", State: workspace.Running, Image: "i", Platform: "linux/amd64",
		LastUsed: at, TTL: time.Hour, Data: true, Tries: 3, NextTry: at.Add(time.Minute), Problem: "no engine", Changed: at,
	}
	if _, ok, err := db.WorkspaceEntry(ctx, "n1", "docker", "agent/a"); ok || err != nil {
		t.Fatalf("an entry that is not there: %v, %v", ok, err)
	}
	ghost := e
	ghost.Version = 4
	if saved, err := db.SaveWorkspaceEntry(ctx, ghost); saved || err != nil {
		t.Errorf("a version of nothing: %v, %v", saved, err)
	}
	if saved, err := db.SaveWorkspaceEntry(ctx, e); !saved || err != nil {
		t.Fatal(saved, err)
	}
	if saved, err := db.SaveWorkspaceEntry(ctx, e); saved || err != nil {
		t.Errorf("the first version twice: %v, %v", saved, err)
	}
	e.Version = 1
	if got, ok, err := db.WorkspaceEntry(ctx, "n1", "docker", "agent/a"); !ok || err != nil || !reflect.DeepEqual(got, e) {
		t.Errorf("got %+v, %v, %v, want %+v", got, ok, err, e)
	}
	for _, other := range []workspace.Entry{
		{Node: "n2", Provider: "docker", Key: "agent/a", State: workspace.Removed, Changed: at},
		{Node: "n1", Provider: "docker", Key: "agent/b", State: workspace.Removed, Changed: at.Add(time.Hour)},
		{Node: "n1", Provider: "docker", Key: "agent/0", State: workspace.Idle, Changed: at},
	} {
		if saved, err := db.SaveWorkspaceEntry(ctx, other); !saved || err != nil {
			t.Fatal(saved, err)
		}
	}
	if _, err := db.SaveWorkspaceEntry(ctx, workspace.Entry{Node: "n1", Provider: "docker"}); err == nil {
		t.Error("an entry without a key is kept")
	}
	keys := func(node string) (list []string) {
		entries, err := db.WorkspaceEntries(ctx, node)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			list = append(list, e.Node+" "+string(e.Key))
		}
		return list
	}
	if got, want := keys(""), []string{"n1 agent/0", "n1 agent/a", "n1 agent/b", "n2 agent/a"}; !reflect.DeepEqual(got, want) {
		t.Errorf("all: %q", got)
	}
	if got, want := keys("n2"), []string{"n2 agent/a"}; !reflect.DeepEqual(got, want) {
		t.Errorf("of n2: %q", got)
	}
	if err := db.DropWorkspaceEntries(ctx, at.Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = openAt(t, path)
	if got, want := keys(""), []string{"n1 agent/0", "n1 agent/a", "n1 agent/b"}; !reflect.DeepEqual(got, want) {
		t.Errorf("after the old ones are dropped: %q", got)
	}
}

// Of many who write one version, one does.
func TestWorkspacesCompareAndSet(t *testing.T) {
	db := openAt(t, filepath.Join(t.TempDir(), "claybot.db"))
	for version := range int64(20) {
		var won atomic.Int32
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				saved, err := db.SaveWorkspaceEntry(t.Context(), workspace.Entry{Node: "n", Provider: "p", Key: "agent/a", State: workspace.Running, Version: version})
				if err != nil {
					t.Error(err)
				}
				if saved {
					won.Add(1)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Fatalf("version %d was written %d times", version+1, won.Load())
		}
	}
}

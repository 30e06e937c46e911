package files

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot/storage"
)

func TestSecrets(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "slack")
	f := NewSecrets(dir)
	if b, err := f.Get("x"); b != nil || err != nil {
		t.Errorf("%s, %v", b, err)
	}
	if err := f.Set("x", []byte("1")); err != nil {
		t.Fatal(err)
	}
	if err := f.Set("x", []byte("2")); err != nil {
		t.Fatal(err)
	}
	if b, err := f.Get("x"); string(b) != "2" || err != nil {
		t.Errorf("%s, %v", b, err)
	}
	for _, bad := range []string{"", "..", "../x", "a/b", "A"} {
		if err := f.Set(bad, nil); err == nil {
			t.Errorf("Set(%q)", bad)
		}
		if _, err := f.Get(bad); err == nil {
			t.Errorf("Get(%q)", bad)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "x.json"), 0o644); err != nil {
		t.Fatal(err)
	}
	if b, err := f.Get("x"); err == nil {
		t.Errorf("a file that others can read: %s", b)
	}
	if all, err := os.ReadDir(dir); len(all) != 1 || err != nil {
		t.Errorf("%v, %v", all, err)
	}
}

func TestTreeSecrets(t *testing.T) {
	tree := OpenTree(TreeConfig{Dir: t.TempDir()})
	a, b := storage.NewTreeSecrets(tree, "mcp"), storage.NewTreeSecrets(tree, "mcp")
	if got, err := a.Get("x"); got != nil || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	for _, secret := range []string{"1", "2"} {
		if err := a.Set("x", []byte(secret)); err != nil {
			t.Fatal(err)
		}
		if got, err := b.Get("x"); string(got) != secret || err != nil {
			t.Errorf("%s, %v", got, err)
		}
	}
	for _, bad := range []string{"", "..", "../x", "a/b", "A"} {
		if err := a.Set(bad, nil); err == nil {
			t.Errorf("Set(%q)", bad)
		}
		if _, err := a.Get(bad); err == nil {
			t.Errorf("Get(%q)", bad)
		}
		if _, err := a.Turn(t.Context(), bad); err == nil {
			t.Errorf("Turn(%q)", bad)
		}
	}
}

// One at a time has the turn, and one whose process is gone loses it.
func TestSecretTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tree := OpenTree(TreeConfig{Dir: t.TempDir()})
		a, b := storage.NewTreeSecrets(tree, "mcp"), storage.NewTreeSecrets(tree, "mcp")
		done, err := a.Turn(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := b.Turn(ctx, "x"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("two have the turn: %v", err)
		}
		time.AfterFunc(3*time.Second, done)
		start := time.Now()
		if _, err := b.Turn(t.Context(), "x"); err != nil || time.Since(start) > 4*time.Second {
			t.Errorf("the turn came after %v, %v", time.Since(start), err)
		}
		start = time.Now() // b is gone with it
		done, err = a.Turn(t.Context(), "x")
		if err != nil || time.Since(start) < 30*time.Second || time.Since(start) > 2*time.Minute {
			t.Errorf("a turn was taken over after %v, %v", time.Since(start), err)
		}
		done()
		if all, err := tree.List(t.Context(), "mcp"); err != nil || len(all) != 0 {
			t.Errorf("left are %+v, %v", all, err)
		}
	})
}

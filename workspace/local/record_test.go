package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claybot/claybot/workspace"
)

// A record that cannot be used loses no files: they are there again when
// the record is.
func TestDamagedRecord(t *testing.T) {
	const key = "agent/a"
	other, err := os.ReadFile(filepath.Join(made(t, "agent/b"), folder("agent/b"), recordName))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		damage func(record string) error
		file   string // which one the error names
	}{
		{"empty", func(r string) error { return os.WriteFile(r, nil, 0o600) }, recordName},
		{"cut off", func(r string) error { return os.WriteFile(r, []byte(`{"key":"agent/a","re`), 0o600) }, recordName},
		{"says nothing", func(r string) error { return os.WriteFile(r, []byte("{}"), 0o600) }, recordName},
		{"null", func(r string) error { return os.WriteFile(r, []byte("null"), 0o600) }, recordName},
		{"of another", func(r string) error { return os.WriteFile(r, other, 0o600) }, recordName},
		{"cannot be read", func(r string) error {
			if err := os.Remove(r); err != nil {
				return err
			}
			return os.Mkdir(r, 0o700)
		}, recordName},
		{"files are elsewhere", func(r string) error {
			files := filepath.Join(filepath.Dir(r), filesName)
			return os.Rename(files, files+".away")
		}, filesName},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := made(t, key)
			name := filepath.Join(dir, folder(key), recordName)
			good, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if err := tt.damage(name); err != nil {
				t.Fatal(err)
			}
			if _, err = New(Config{Dir: dir}).Open(t.Context(), key, open); !workspace.Is(err, workspace.Unavailable) ||
				!strings.Contains(err.Error(), filepath.Join(folder(key), tt.file)) {
				t.Errorf("opened: %v", err)
			}
			_ = os.Rename(filepath.Join(dir, folder(key), filesName+".away"), filepath.Join(dir, folder(key), filesName)) // where it is there
			if err := os.RemoveAll(name); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, good, 0o600); err != nil {
				t.Fatal(err)
			}
			w, err := New(Config{Dir: dir}).Open(t.Context(), key, open)
			if err != nil {
				t.Fatal(err)
			}
			if b, err := w.ReadFile(t.Context(), "thesis.txt", 100); err != nil || string(b) != "years of work" {
				t.Errorf("%q, %v", b, err)
			}
		})
	}
}

// What was cut off before it could be used is made anew.
func TestUnfinishedIsMadeAnew(t *testing.T) {
	dir := made(t, "agent/a")
	w := New(Config{Dir: dir}).of("agent/a")
	if err := w.save(record{Key: "agent/a"}); err != nil {
		t.Fatal(err)
	}
	v, err := New(Config{Dir: dir}).Open(t.Context(), "agent/a", open)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.ReadFile(t.Context(), "thesis.txt", 100); !workspace.Is(err, workspace.NotFound) {
		t.Error(err)
	}
}

// made makes a workspace with a file and returns the folder of all.
func made(t *testing.T, key workspace.Key) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "workspaces")
	w, err := New(Config{Dir: dir}).Open(t.Context(), key, open)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WriteFile(t.Context(), "thesis.txt", []byte("years of work")); err != nil {
		t.Fatal(err)
	}
	return dir
}

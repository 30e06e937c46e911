package documents_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/documents"
)

// TestLimited: files outside of the permitted directories are neither read, written nor
// listed, and permissions that cannot be read permit nothing.
func TestLimited(t *testing.T) {
	dir := t.TempDir()
	open := documents.Filesystem(func(tools.Env) (string, error) { return dir, nil })
	all, err := open(tools.Env{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"in/a", "in/deep/b", "inside", "out/c"} {
		if err := all.Write(t.Context(), name, "text"); err != nil {
			t.Fatal(err)
		}
	}
	b, err := documents.Limited(open, func(tools.Env) (claybot.Permissions, error) {
		return claybot.Permissions{ReadDirs: []string{"in"}, WriteDirs: []string{"in/deep"}}, nil
	})(tools.Env{})
	if err != nil {
		t.Fatal(err)
	}
	files, err := b.List(t.Context(), "")
	var names []string
	for _, f := range files {
		names = append(names, f.Path)
	}
	if got := strings.Join(names, " "); err != nil || got != "in/a in/deep/b" {
		t.Errorf("list: %q, %v", got, err)
	}
	for name, want := range map[string]bool{"in/a": true, "in/deep/b": true, "inside": false, "out/c": false} {
		if text, err := b.Read(t.Context(), name); (err == nil) != want {
			t.Errorf("read %s: %q, %v", name, text, err)
		}
	}
	for name, want := range map[string]bool{"in/deep/new": true, "in/a": false, "out/c": false} {
		if err := b.Write(t.Context(), name, "new"); (err == nil) != want {
			t.Errorf("write %s: %v", name, err)
		}
		if err := b.Remove(t.Context(), name); (err == nil) != want {
			t.Errorf("remove %s: %v", name, err)
		}
	}
	if _, err := documents.Limited(open, func(tools.Env) (claybot.Permissions, error) { return claybot.Permissions{}, errors.New("gone") })(tools.Env{}); err == nil {
		t.Error("without permissions, everything is permitted")
	}
}

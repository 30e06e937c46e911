package workspace_test

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/workspace"
	"github.com/claybot/claybot/workspace/local"
)

// openLocal returns a workspace with a few files and links, and its directory.
func openLocal(t *testing.T) workspace.Workspace {
	t.Helper()
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("commands need a Unix")
	}
	w, err := local.New(local.Config{Dir: t.TempDir()}).Open(t.Context(), "agent/a", workspace.Spec{Network: workspace.Network{Mode: workspace.NetworkHostUnsafe}})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"docs/a.txt": "open", "docs/sub/b.txt": "open", "secret/c.txt": "hidden", "d.txt": "hidden", "out/e.txt": "old", "docs.txt": "hidden"} {
		if err := w.WriteFile(t.Context(), name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	r, err := w.Exec(t.Context(), workspace.Command{Shell: "ln -s ../secret docs/link && ln -s ../d.txt docs/d.txt && ln -s ../secret out/link"})
	if err != nil || r.ExitCode != 0 {
		t.Fatal(r, err)
	}
	return w
}

func TestConfine(t *testing.T) {
	w := openLocal(t)
	if workspace.Confine(w, claybot.Permissions{}) != w {
		t.Error("no limits change the workspace")
	}
	c := workspace.Confine(w, claybot.Permissions{ReadDirs: []string{"docs", "out/deep"}, WriteDirs: []string{"out"}})
	for name, want := range map[string]string{
		"docs/a.txt": "open", "./docs//sub/b.txt": "open",
		"secret/c.txt": "not permitted; permitted: docs, out/deep", "d.txt": "not permitted", "docs.txt": "not permitted", "out/e.txt": "not permitted",
		"docs/../d.txt": "must not contain ..", "/etc/passwd": "is absolute", "docs/link/c.txt": "link", "docs/d.txt": "link", "docs/none.txt": "is not there",
	} {
		b, err := c.ReadFile(t.Context(), name, 100)
		switch {
		case want == "open" && (err != nil || string(b) != want):
			t.Errorf("%s: %q, %v", name, b, err)
		case want != "open" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %q, %v; want %s", name, b, err, want)
		}
	}
	for name, want := range map[string]string{
		"out/new/f.txt": "", "out/e.txt": "", "docs/a.txt": "not permitted; permitted: out", "f.txt": "not permitted", "out/link/f.txt": "link", "out/../f.txt": "must not contain ..",
	} {
		err := c.WriteFile(t.Context(), name, []byte("new"))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("write %s: %v, want %q", name, err, want)
		}
	}
	for dir, want := range map[string]string{
		"": "docs docs/a.txt docs/d.txt docs/link docs/sub docs/sub/b.txt out", ".": "docs docs/a.txt docs/d.txt docs/link docs/sub docs/sub/b.txt out",
		"docs/sub": "docs/sub/b.txt", "out": "",
	} {
		if got, err := listing(t.Context(), c, dir); err != nil || got != want {
			t.Errorf("list %q: %q, %v; want %q", dir, got, err, want)
		}
	}
	for _, dir := range []string{"secret", "docs/link", "/", "docs/.."} {
		if got, err := listing(t.Context(), c, dir); err == nil {
			t.Errorf("list %q: %q", dir, got)
		}
	}
	// What was listed is known, but a link that was listed is still none to follow.
	if b, err := c.ReadFile(t.Context(), "docs/d.txt", 100); err == nil {
		t.Errorf("after a list, the link leads to %q", b)
	}
	none := workspace.Confine(w, claybot.Permissions{ReadDirs: []string{}})
	if _, err := none.ReadFile(t.Context(), "docs/a.txt", 100); err == nil || !strings.Contains(err.Error(), "permitted: no directory") {
		t.Errorf("without directories: %v", err)
	}
}

// TestConfineDir: commands and lists begin in the working directory; paths do not.
func TestConfineDir(t *testing.T) {
	c := workspace.Confine(openLocal(t), claybot.Permissions{WorkingDir: "docs/sub"})
	r, err := c.Exec(t.Context(), workspace.Command{Shell: "ls"})
	if err != nil || strings.TrimSpace(r.Output) != "b.txt" {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := c.Exec(t.Context(), workspace.Command{Shell: "ls", Dir: "secret"}); err != nil || strings.TrimSpace(r.Output) != "c.txt" {
		t.Errorf("in a directory that the command names: %+v, %v", r, err)
	}
	if got, err := listing(t.Context(), c, ""); err != nil || got != "docs/sub/b.txt" {
		t.Errorf("%q, %v", got, err)
	}
	if b, err := c.ReadFile(t.Context(), "d.txt", 100); err != nil || string(b) != "hidden" {
		t.Errorf("%q, %v", b, err)
	}
}

func listing(ctx context.Context, w workspace.Workspace, dir string) (string, error) {
	files, _, err := w.List(ctx, dir, 100)
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = f.Path
	}
	slices.Sort(names)
	return strings.Join(names, " "), err
}

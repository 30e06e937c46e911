package documents_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Nothing but ordinary files inside the folder is read, shown or replaced.
func TestFolderKeepsInside(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	secret := filepath.Join(outside, "secret")
	must(t, os.WriteFile(secret, []byte("hidden\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "open"), []byte("shown\n"), 0o600))
	must(t, os.Symlink(secret, filepath.Join(dir, "file")))
	must(t, os.Symlink(outside, filepath.Join(dir, "folder")))
	must(t, os.Symlink("../../../../../../../../etc", filepath.Join(dir, "relative")))
	must(t, os.Symlink("open", filepath.Join(dir, "inner")))
	must(t, os.Symlink("loop", filepath.Join(dir, "loop")))
	must(t, os.Symlink("nowhere", filepath.Join(dir, "dangling")))
	must(t, os.Link(secret, filepath.Join(dir, "hard")))
	must(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	must(t, os.Mkdir(filepath.Join(dir, "empty"), 0o700))
	socket(t, dir)

	a := newAgent(t, ann, folder(dir))
	tests := []struct{ path, want string }{
		{"file", "is a symbolic link"},
		{"folder", "is a symbolic link"},
		{"folder/secret", `"folder" is a symbolic link`},
		{"folder/new", `"folder" is a symbolic link`},
		{"folder/new/deeper", `"folder" is a symbolic link`},
		{"relative/passwd", `"relative" is a symbolic link`},
		{"inner", "is a symbolic link"},
		{"loop", "is a symbolic link"},
		{"loop/x", `"loop" is a symbolic link`},
		{"dangling", "is a symbolic link"},
		{"hard", "has a second name elsewhere"},
		{"pipe", "is not a regular file"},
		{"pipe/x", `"pipe" is not a regular file`},
		{"socket", "is not a regular file"},
	}
	for _, tt := range tests {
		a.refused("read_file", m{"path": tt.path}, "EINVAL: ")
		a.refused("read_file", m{"path": tt.path}, tt.want)
		a.refused("write_file", m{"path": tt.path, "text": "x"}, tt.want)
		a.refused("edit_file", m{"path": tt.path, "old_text": "hidden", "new_text": "x"}, tt.want)
		a.refused("ls", m{"path": tt.path}, tt.want)
		a.refused("glob", m{"path": tt.path, "pattern": "**"}, tt.want)
		a.refused("grep", m{"path": tt.path, "pattern": "."}, tt.want)
	}
	a.refused("ls", m{"path": "empty"}, "ENOENT")
	a.refused("write_file", m{"path": "empty", "text": "x"}, "EISDIR")
	for tool, args := range map[string]m{"ls": {}, "glob": {"pattern": "**"}, "grep": {"pattern": "."}} {
		got := a.do(tool, args)
		if !strings.HasPrefix(got, "open") || strings.Contains(got, "\n") {
			t.Errorf("%s shows %q, want the open file only", tool, got)
		}
	}
	if b, err := os.ReadFile(secret); string(b) != "hidden\n" || err != nil {
		t.Errorf("the file outside is %q, %v", b, err)
	}
	if names, _ := os.ReadDir(outside); len(names) != 1 {
		t.Errorf("outside there is %v now", names)
	}
}

// socket makes one by a short name: their paths are limited.
func socket(t *testing.T, dir string) {
	t.Helper()
	t.Chdir(dir)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: "socket", Net: "unix"})
	must(t, err)
	t.Cleanup(func() { l.Close() })
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestFolderModesAndLeftovers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "yet")
	a := newAgent(t, ann, folder(dir))
	a.do("ls", m{})
	a.do("write_file", m{"path": "x/y", "text": "1"})
	must(t, os.Chmod(filepath.Join(dir, "x/y"), 0o666))
	a.do("write_file", m{"path": "x/y", "text": "2"})
	for name, want := range map[string]os.FileMode{"x": 0o700 | os.ModeDir, "x/y": 0o600, "": 0o700 | os.ModeDir} {
		info, err := os.Stat(filepath.Join(dir, name))
		must(t, err)
		if info.Mode() != want {
			t.Errorf("%q has mode %v, want %v", name, info.Mode(), want)
		}
	}
	// What a crash cut off is not shown, and goes in time.
	fresh, stale := filepath.Join(dir, ".claybot-fresh"), filepath.Join(dir, "x", ".claybot-stale")
	for _, name := range []string{fresh, stale} {
		must(t, os.WriteFile(name, []byte("half"), 0o600))
	}
	old := time.Now().Add(-24 * time.Hour)
	must(t, os.Chtimes(stale, old, old))
	if got := a.do("glob", m{"pattern": "**"}); got != "x/y" {
		t.Errorf("shows %q", got)
	}
	a.do("write_file", m{"path": "z", "text": "3"})
	if _, err := os.Stat(fresh); err != nil {
		t.Errorf("a file that is being written is gone: %v", err)
	}
	if _, err := os.Stat(stale); err == nil {
		t.Error("the leftover is still there")
	}
	if names, _ := os.ReadDir(dir); len(names) != 4 {
		t.Errorf("the folder has %v, want x, z, the fresh one and what is kept aside", names)
	}
}

// Files that others put there are read with the same care.
func TestFolderOfOthers(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "binary"), []byte("a\x00b"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "latin"), []byte("caf\xe9 a"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "long"), []byte(strings.Repeat("a\n", 600_000)), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "line\nbreak"), []byte("a"), 0o600))
	must(t, os.Mkdir(filepath.Join(dir, "bad\xff"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "bad\xff", "x"), []byte("a"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "text"), []byte("a"), 0o600))
	a := newAgent(t, ann, folder(dir))
	if got := a.do("glob", m{"pattern": "**"}); got != "binary\nlatin\nlong\ntext" {
		t.Errorf("shows %q", got)
	}
	a.refused("read_file", m{"path": "binary"}, `EINVAL: "binary" is not text`)
	a.refused("read_file", m{"path": "latin"}, `EINVAL: "latin" is not text`)
	a.refused("read_file", m{"path": "long"}, `EINVAL: "long" has 1200000 bytes, the limit is 1048576`)
	a.refused("grep", m{"pattern": "a", "path": "binary"}, "is not text")
	a.refused("edit_file", m{"path": "binary", "old_text": "a", "new_text": "b"}, "is not text")
	if got := a.do("grep", m{"pattern": "a"}); got != "text:1: a\n[left out because they are not text or too long: 3 files]" {
		t.Errorf("grep shows %q", got)
	}
	a.do("write_file", m{"path": "binary", "text": "now text"})
}

// A folder that is swapped against a link while files are written never leads
// out.
func TestFolderRace(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "d"), 0o700))
	must(t, os.Symlink(outside, filepath.Join(dir, "link")))
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		d, link, third := filepath.Join(dir, "d"), filepath.Join(dir, "link"), filepath.Join(dir, "third")
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Rename(d, third) // a write may have made d anew
			_ = os.Rename(link, d)
			_ = os.Rename(d, link)
			_ = os.Rename(third, d)
		}
	}()
	a := newAgent(t, ann, folder(dir))
	for range 200 {
		a.call("write_file", m{"path": "d/f", "text": "x"})
		a.call("read_file", m{"path": "d/f"})
		a.call("grep", m{"path": "d", "pattern": "x"})
	}
	close(stop)
	<-done
	if names, _ := os.ReadDir(outside); len(names) != 0 {
		t.Errorf("outside there is %v", names)
	}
}

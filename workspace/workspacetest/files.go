package workspacetest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot/workspace"
)

func (s *suite) files(t *testing.T) {
	w := s.open(t)
	ctx := t.Context()
	big := bytes.Repeat([]byte("\x00\xffabc\n"), 300_000)
	for name, content := range map[string][]byte{"a.txt": []byte("one"), "d/e/f.txt": nil, "d/ü 1": []byte("x"), "d/big": big} {
		if err := w.WriteFile(ctx, name, content); err != nil {
			t.Fatalf("write %s: %v", name, err)
		}
		if got, err := w.ReadFile(ctx, name, int64(len(content))); err != nil || !bytes.Equal(got, content) {
			t.Errorf("read %s: %d bytes of %d, %v", name, len(got), len(content), err)
		}
	}
	_, err := w.ReadFile(ctx, "a.txt", 2)
	wantCode(t, "a file above the limit", err, workspace.TooBig)
	_, err = w.ReadFile(ctx, "nowhere/x", 10)
	wantCode(t, "a file that is not there", err, workspace.NotFound)
	if _, err = w.ReadFile(ctx, "d", 10); err == nil {
		t.Error("a folder can be read")
	}
	if err = w.WriteFile(ctx, "d", []byte("x")); err == nil {
		t.Error("a folder can be written")
	}
	// Commands and files are the same place.
	if r := sh(t, w, "cat a.txt; echo changed > a.txt; mkdir made; chmod 700 made"); r.Output != "one" {
		t.Errorf("a command reads %q", r.Output)
	}
	if b, err := w.ReadFile(ctx, "a.txt", 100); err != nil || string(b) != "changed\n" {
		t.Errorf("read %q, %v", b, err)
	}
	sh(t, w, "echo '#!/bin/sh' > run.sh; chmod 755 run.sh")
	if err := w.WriteFile(ctx, "run.sh", []byte("#!/bin/sh\necho ran\n")); err != nil {
		t.Error(err)
	}
	if r := sh(t, w, "./run.sh"); r.Output != "ran\n" {
		t.Errorf("a rewritten script: %+v", r)
	}
	s.list(t, w)
	for range 2 {
		for _, name := range []string{"a.txt", "d"} {
			if err := w.(workspace.Remover).Remove(ctx, name); err != nil {
				t.Errorf("remove %s: %v", name, err)
			}
			if _, err := w.ReadFile(ctx, name, 10); code(err) != workspace.NotFound {
				t.Errorf("%s is still there: %v", name, err)
			}
		}
	}
}

func (s *suite) list(t *testing.T, w workspace.Workspace) {
	ctx := t.Context()
	files, more, err := w.List(ctx, "", 100)
	var names []string
	for _, f := range files {
		if !strings.HasPrefix(f.Path, ".") {
			names = append(names, f.Path)
		}
		if f.Path == "a.txt" && (f.Size != 8 || f.Dir || f.At.IsZero()) || f.Path == "d" && !f.Dir {
			t.Errorf("listed %+v", f)
		}
	}
	want := []string{"a.txt", "d", "d/big", "d/e", "d/e/f.txt", "d/ü 1", "made", "run.sh"}
	if err != nil || more || !slices.Equal(names, want) {
		t.Errorf("listed %q, %v, %v, want %q", names, more, err, want)
	}
	files, more, err = w.List(ctx, "d", 2)
	if err != nil || !more || len(files) != 2 || files[0].Path != "d/big" || files[1].Path != "d/e" {
		t.Errorf("listed %+v, %v, %v", files, more, err)
	}
	_, _, err = w.List(ctx, "nowhere", 10)
	wantCode(t, "a folder that is not there", err, workspace.NotFound)
}

// paths tries to get out.
func (s *suite) paths(t *testing.T) {
	w := s.open(t)
	ctx := t.Context()
	dir := strings.TrimSpace(sh(t, w, "pwd").Output)
	if err := w.WriteFile(ctx, dir+"/abs/file", []byte("x")); err != nil {
		t.Errorf("a path with the directory in front: %v", err)
	}
	if b, err := w.ReadFile(ctx, "./abs//file", 10); err != nil || string(b) != "x" {
		t.Errorf("read %q, %v", b, err)
	}
	r := sh(t, w, "ln -s /etc/passwd file-link; ln -s /etc dir-link; ln -s ../../../../../../etc up-link; ln -s /tmp tmp-link; ln -s loop loop; mkfifo pipe; ln -s /dev/zero zero; ln -s /proc/self/root proc-link")
	if r.ExitCode != 0 {
		t.Fatalf("links: %+v", r)
	}
	outside := []string{
		"..", "../x", "a/../../x", "a/../b", "/etc/passwd", "/", dir + "x", dir + "/../x", "/proc/self/environ",
		"file-link", "dir-link/passwd", "up-link/passwd", "zero", "proc-link/etc/passwd",
	}
	for _, name := range outside {
		_, err := w.ReadFile(ctx, name, 1<<20)
		wantCode(t, "read "+name, err, workspace.Outside)
	}
	for _, name := range []string{"../x", "/etc/claybot-test", "dir-link/claybot-test", "tmp-link/claybot-test", "up-link/claybot-test", "proc-link/tmp/claybot-test"} {
		wantCode(t, "write "+name, w.WriteFile(ctx, name, []byte("x")), workspace.Outside)
		wantCode(t, "remove "+name, w.(workspace.Remover).Remove(ctx, name), workspace.Outside)
	}
	for _, name := range []string{"..", "/etc", "dir-link", "up-link/"} {
		_, _, err := w.List(ctx, name, 10)
		wantCode(t, "list "+name, err, workspace.Outside)
		_, err = w.Exec(ctx, workspace.Command{Shell: "true", Dir: name})
		wantCode(t, "run in "+name, err, workspace.Outside)
	}
	for _, name := range []string{"a\x00b", "a\nb", "a\xff", strings.Repeat("a/", 2100), strings.Repeat("a", 256)} {
		_, err := w.ReadFile(ctx, name, 10)
		wantCode(t, "read an odd name", err, workspace.Refused)
		wantCode(t, "write an odd name", w.WriteFile(ctx, name, nil), workspace.Refused)
	}
	for _, name := range []string{"loop", "pipe", "pipe/x"} { // no way to hang
		if _, err := w.ReadFile(ctx, name, 10); err == nil {
			t.Errorf("%s can be read", name)
		}
	}
	// Writing to a link replaces it, or refuses; what it leads to stays.
	_ = w.WriteFile(ctx, "file-link", []byte("x"))
	if r := sh(t, w, "grep -c root /etc/passwd"); r.Output == "0\n" {
		t.Error("a file outside was written")
	}
	if err := w.(workspace.Remover).Remove(ctx, "dir-link"); err != nil {
		t.Errorf("remove a link: %v", err)
	}
	if r := sh(t, w, "[ -e /etc/passwd ] && [ ! -e dir-link ]"); r.ExitCode != 0 {
		t.Error("removing a link removed more, or less")
	}
	for _, name := range []string{"", ".", dir} {
		if err := w.(workspace.Remover).Remove(ctx, name); err == nil {
			t.Errorf("the workspace itself can be removed as %q", name)
		}
	}
}

func (s *suite) pipe(t *testing.T) {
	w := s.open(t)
	p, err := w.Pipe(t.Context(), workspace.Command{Shell: `echo "to stderr" >&2; while read line; do echo "got $line $VAR"; done; exit 4`, Env: []workspace.Var{{Name: "VAR", Value: "v"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"one", "two"} {
		if _, err := io.WriteString(p, word+"\n"); err != nil {
			t.Fatal(err)
		}
		line := make([]byte, len("got one v\n"))
		if _, err := io.ReadFull(p, line); err != nil || string(line) != "got "+word+" v\n" {
			t.Fatalf("read %q, %v", line, err)
		}
	}
	if err := p.CloseWrite(); err != nil {
		t.Error(err)
	}
	if rest, err := io.ReadAll(p); err != nil || len(rest) != 0 {
		t.Errorf("at its end: %q, %v", rest, err)
	}
	if exit, err := p.Wait(t.Context()); err != nil || exit != 4 {
		t.Errorf("exit %d, %v", exit, err)
	}
	if got := p.Stderr(); got != "to stderr\n" {
		t.Errorf("stderr %q", got)
	}
	for range 2 {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}

	// Close and the end of the context end it, however it feels about that.
	for _, byContext := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		p, err := w.Pipe(ctx, workspace.Command{Shell: "trap '' TERM; echo on; while :; do sleep 1; done"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(p, make([]byte, 3)); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if byContext {
			cancel()
		} else if err := p.Close(); err != nil {
			t.Error(err)
		}
		if _, err := p.Wait(t.Context()); err != nil {
			if e, ok := errors.AsType[*workspace.Error](err); !ok {
				t.Errorf("wait: %v", err)
			} else if e.Code != workspace.Gone && e.Code != workspace.Failed {
				t.Errorf("wait: %s %v", e.Code, err)
			}
		}
		if took := time.Since(start); took > within {
			t.Errorf("by context %v: ended after %v", byContext, took)
		}
		_ = p.Close()
		cancel()
	}
}

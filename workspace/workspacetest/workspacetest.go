// Package workspacetest is the suite that every provider of workspaces passes, so
// that tools behave alike on each.
//
// Only tests import it.
package workspacetest

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot/workspace"
)

// Options say what a provider is tested with.
type Options struct {
	// Spec is what all workspaces of the suite are opened with; its limits and
	// image are those of the provider.
	Spec workspace.Spec
	// Host names variables and values of this process that no command may see;
	// the suite looks for the values.
	Host []string
}

// Test runs the suite. open returns a provider without any workspace; it is called
// once. The suite removes what it makes.
func Test(t *testing.T, open func(t *testing.T) workspace.Provider, o Options) {
	s := &suite{Options: o, p: open(t)}
	if s.p.Name() == "" {
		t.Error("the provider has no name")
	}
	if err := s.p.Check(t.Context()); err != nil {
		t.Fatalf("check: %v", err)
	}
	for _, g := range []struct {
		name string
		run  func(*suite, *testing.T)
	}{
		{"exec", (*suite).exec},
		{"output", (*suite).output},
		{"env", (*suite).env},
		{"limits", (*suite).limits},
		{"cancel", (*suite).cancel},
		{"refused", (*suite).refused},
		{"pipe", (*suite).pipe},
		{"files", (*suite).files},
		{"paths", (*suite).paths},
		{"life", (*suite).life},
	} {
		t.Run(g.name, func(t *testing.T) { g.run(s, t) })
	}
}

type suite struct {
	Options
	p workspace.Provider
}

// open opens the workspace of a test, which is removed with its data at its end.
func (s *suite) open(t *testing.T) workspace.Workspace {
	t.Helper()
	return s.openAs(t, workspace.Key("agent/"+strings.ReplaceAll(t.Name(), "/", "-")), s.Spec)
}

func (s *suite) openAs(t *testing.T, key workspace.Key, spec workspace.Spec) workspace.Workspace {
	t.Helper()
	w, err := s.p.Open(t.Context(), key, spec)
	if err != nil {
		t.Fatalf("open %s: %v", key, err)
	}
	t.Cleanup(func() {
		if err := s.p.Remove(context.WithoutCancel(t.Context()), key, true); err != nil {
			t.Errorf("remove %s: %v", key, err)
		}
	})
	return w
}

// sh runs a command that ends well.
func sh(t *testing.T, w workspace.Workspace, line string) workspace.Result {
	t.Helper()
	r, err := w.Exec(t.Context(), workspace.Command{Shell: line, Wall: 5 * time.Minute})
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return r
}

// code is the code of an error; empty for none, and the error for a strange one.
func code(err error) workspace.Code {
	if e, ok := errors.AsType[*workspace.Error](err); ok {
		return e.Code
	}
	if err != nil {
		return workspace.Code("strange: " + err.Error())
	}
	return ""
}

func wantCode(t *testing.T, what string, err error, want workspace.Code) {
	t.Helper()
	if got := code(err); got != want {
		t.Errorf("%s: got %q (%v), want %q", what, got, err, want)
	}
}

func (s *suite) exec(t *testing.T) {
	w := s.open(t)
	if w.Place() == "" || !strings.Contains(w.Place(), s.p.Name()) {
		t.Errorf("place %q does not name the provider", w.Place())
	}
	if err := w.WriteFile(t.Context(), "sub/in dir", nil); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		c    workspace.Command
		exit int
		out  string
	}{
		{"success", workspace.Command{Shell: "echo hi"}, 0, "hi\n"},
		{"exit code", workspace.Command{Shell: "echo no; exit 7"}, 7, "no\n"},
		{"unknown command", workspace.Command{Shell: "no-such-command 2>/dev/null"}, 127, ""},
		{"both streams", workspace.Command{Shell: "echo a; echo b >&2; wait"}, 0, "a\nb\n"},
		{"arguments", workspace.Command{Args: []string{"/bin/echo", "a b", "$HOME", "'"}}, 0, "a b $HOME '\n"},
		{"directory", workspace.Command{Shell: "ls", Dir: "sub"}, 0, "in dir\n"},
		{"stdin ends", workspace.Command{Shell: "cat; echo end"}, 0, "end\n"},
		{"stdin", workspace.Command{Args: []string{"cat"}, Stdin: []byte("abc\n")}, 0, "abc\n"},
		{"unread stdin", workspace.Command{Shell: "exec 0<&-; echo ok", Stdin: bytes.Repeat([]byte("x"), 1<<20)}, 0, "ok\n"},
		{"no output", workspace.Command{Shell: ":"}, 0, ""},
		{"killed", workspace.Command{Shell: "kill -9 $$"}, 137, ""},
		{"another program", workspace.Command{Shell: "exec echo there; echo on"}, 0, "there\n"},
		{"trap", workspace.Command{Shell: "trap 'echo bye' EXIT; exit 4"}, 4, "bye\n"},
		{"signal that is caught", workspace.Command{Shell: "trap 'echo caught; exit 5' TERM; kill $$; sleep 10"}, 5, "caught\n"},
		{"parameters", workspace.Command{Shell: `echo "$0 $# $1"`}, 0, "/bin/sh 0 \n"},
		{"several lines", workspace.Command{Shell: "echo 'a\nb'\\''c'\n# d\necho \"$((1+1))\""}, 0, "a\nb'c\n2\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.c.Wall = time.Minute
			r, err := w.Exec(t.Context(), tt.c)
			if err != nil {
				t.Fatal(err)
			}
			out := r.Output
			if tt.name == "both streams" && out == "b\na\n" {
				out = tt.out // two pipes have no common order
			}
			if r.ExitCode != tt.exit || out != tt.out || r.Bytes != int64(len(tt.out)) || r.Whole != "" {
				t.Errorf("got %+v, want exit %d, output %q", r, tt.exit, tt.out)
			}
			if (r.Reason != "") != (tt.exit == 137) {
				t.Errorf("reason %q", r.Reason)
			}
			if r.Took <= 0 {
				t.Error("it took no time")
			}
		})
	}
	s.planted(t, w)
	_, err := w.Exec(t.Context(), workspace.Command{Shell: "true", Dir: "nowhere"})
	wantCode(t, "a directory that is not there", err, workspace.NotFound)
	_, err = w.Exec(t.Context(), workspace.Command{Shell: "true", Dir: "../.."})
	wantCode(t, "a directory outside", err, workspace.Outside)
}

// planted writes what shells read when they begin: no later command may run it.
func (s *suite) planted(t *testing.T, w workspace.Workspace) {
	t.Helper()
	files := []string{".profile", ".bash_profile", ".bash_login", ".bashrc", ".shrc", ".kshrc", ".ashrc"}
	for _, name := range files {
		if err := w.WriteFile(t.Context(), name, []byte("echo planted\n")); err != nil {
			t.Fatal(err)
		}
	}
	home := sh(t, w, "pwd").Output
	if r := sh(t, w, `echo "$HOME"; echo ~; cd; pwd`); r.Output != home+home+home {
		t.Errorf("got %q, want the workspace, %q", r.Output, home)
	}
	for _, name := range []string{"ENV", "BASH_ENV"} {
		_, err := w.Exec(t.Context(), workspace.Command{Shell: "true", Env: []workspace.Var{{Name: name, Value: strings.TrimSpace(home) + "/.shrc"}}})
		wantCode(t, "the variable "+name, err, workspace.Refused)
	}
	r, err := w.Exec(t.Context(), workspace.Command{Shell: `echo "$HOME"`, Env: []workspace.Var{{Name: "HOME", Value: "/elsewhere"}}})
	if err != nil || r.Output != "/elsewhere\n" {
		t.Errorf("a HOME of its own: %q, %v", r.Output, err)
	}
	for _, name := range files {
		if err := w.(workspace.Remover).Remove(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *suite) output(t *testing.T) {
	w := s.open(t)
	r := sh(t, w, `printf '\033[31mred\033[0m\000 \303'; printf '\244\377\n'`)
	if want := "red ä\uFFFD\n"; r.Output != want {
		t.Errorf("got %q, want %q", r.Output, want)
	}
	// Longer than the tail: the whole is in a file.
	r = sh(t, w, "i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done")
	if len(r.Output) != workspace.MaxTail || !strings.HasSuffix(r.Output, "line 1999\n") || r.Whole == "" {
		t.Fatalf("output of %d characters, whole %q", len(r.Output), r.Whole)
	}
	b, err := w.ReadFile(t.Context(), r.Whole, workspace.MaxWhole)
	if err != nil || int64(len(b)) != r.Bytes || !bytes.HasPrefix(b, []byte("line 0\nline 1\n")) || !bytes.HasSuffix(b, []byte("line 1999\n")) {
		t.Errorf("the whole output has %d of %d bytes, %v", len(b), r.Bytes, err)
	}
	if !testing.Short() {
		r = sh(t, w, "yes 0123456789abcde | head -c 100000000")
		if len(r.Output) != workspace.MaxTail || r.Bytes != 100_000_000 {
			t.Errorf("%d characters of %d bytes", len(r.Output), r.Bytes)
		}
	}
}

func (s *suite) env(t *testing.T) {
	w := s.openAs(t, "agent/env", func() workspace.Spec {
		spec := s.Spec
		spec.Env = append(spec.Env, workspace.Var{Name: "SPEC_VAR", Value: "from the spec"}, workspace.Var{Name: "BOTH", Value: "spec"})
		return spec
	}())
	r, err := w.Exec(t.Context(), workspace.Command{
		Shell: `echo "$SPEC_VAR|$BOTH|$ONE"`, Wall: time.Minute,
		Env: []workspace.Var{{Name: "ONE", Value: "a 'b' $c\nd"}, {Name: "BOTH", Value: "command"}},
	})
	if want := "from the spec|command|a 'b' $c\nd\n"; err != nil || r.Output != want {
		t.Errorf("got %q, %v, want %q", r.Output, err, want)
	}
	if r := sh(t, w, `echo "$ONE|$BOTH"`); r.Output != "|spec\n" {
		t.Errorf("the next command sees %q", r.Output)
	}
	r = sh(t, w, "env; cat /proc/[0-9]*/environ 2>/dev/null | tr '\\000' '\\n'; true")
	for _, secret := range s.Host {
		if strings.Contains(r.Output, secret) {
			t.Error("a command sees a variable of this process")
		}
		if r.Whole != "" {
			b, err := w.ReadFile(t.Context(), r.Whole, workspace.MaxWhole)
			if err != nil || bytes.Contains(b, []byte(secret)) {
				t.Errorf("a command sees a variable of this process, %v", err)
			}
		}
	}
	_, err = w.Exec(t.Context(), workspace.Command{Shell: "true", Env: []workspace.Var{{Name: "A=B", Value: "c"}}})
	wantCode(t, "a bad name", err, workspace.Refused)
}

func (s *suite) refused(t *testing.T) {
	w := s.open(t)
	for name, c := range map[string]workspace.Command{
		"nothing":        {},
		"two forms":      {Shell: "true", Args: []string{"true"}},
		"negative limit": {Shell: "true", Wall: -1},
		"NUL":            {Shell: "echo a\x00b"},
	} {
		_, err := w.Exec(t.Context(), c)
		wantCode(t, name, err, workspace.Refused)
		_, err = w.Pipe(t.Context(), c)
		wantCode(t, name+", as a pipe", err, workspace.Refused)
	}
	for name, change := range map[string]func(*workspace.Spec){
		"platform":     func(s *workspace.Spec) { s.Platform = "plan9/mips" },
		"network":      func(s *workspace.Spec) { s.Network = workspace.Network{Mode: "some"} },
		"memory":       func(s *workspace.Spec) { s.Memory = -1 },
		"cpus":         func(s *workspace.Spec) { s.CPUs = -2 },
		"pids":         func(s *workspace.Spec) { s.PIDs = -1 },
		"disk":         func(s *workspace.Spec) { s.Disk = -1 },
		"variable":     func(s *workspace.Spec) { s.Env = []workspace.Var{{Value: "x"}} },
		"same name":    func(s *workspace.Spec) { s.Env = []workspace.Var{{Name: "A"}, {Name: "A"}} },
		"unknown risk": func(s *workspace.Spec) { s.Unsafe = []string{"no-such-protection"} },
	} {
		spec := s.Spec
		change(&spec)
		_, err := s.p.Open(t.Context(), "agent/refused", spec)
		wantCode(t, name, err, workspace.Refused)
	}
	if w, err := s.p.Open(t.Context(), "", s.Spec); err == nil {
		t.Errorf("a workspace without a key: %s", w.Place())
	}
}

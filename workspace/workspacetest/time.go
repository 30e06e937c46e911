package workspacetest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot/workspace"
)

// within is how long after its limit a command may still run. The design has 2 s,
// which benchmarks measure; on a busy machine it is only known that it ended by its
// limit, as all of them would run for ten minutes.
const within = time.Minute

// begins is the limit of commands that have written something when it comes: even a
// machine that is busy has begun them by then.
const begins = 10 * time.Second

func (s *suite) limits(t *testing.T) {
	for _, tt := range []struct {
		name string
		c    workspace.Command
		want workspace.Code
		out  string
	}{
		{"wall", workspace.Command{Shell: "echo begun; sleep 600", Wall: begins}, workspace.WallLimit, "begun\n"},
		{"busy", workspace.Command{Shell: "while :; do :; done", Wall: time.Second}, workspace.WallLimit, ""},
		{"idle", workspace.Command{Shell: "echo begun; sleep 600", Wall: 5 * time.Minute, Idle: begins}, workspace.IdleLimit, "begun\n"},
		{"waits for input", workspace.Command{Shell: "sleep 600 | cat", Idle: time.Second}, workspace.IdleLimit, ""},
		{"ignores TERM", workspace.Command{Shell: "trap '' TERM INT HUP; echo begun; while :; do sleep 1; done", Wall: begins}, workspace.WallLimit, "begun\n"},
		{"child in the background", workspace.Command{Shell: "sleep 600 & sleep 600", Wall: time.Second}, workspace.WallLimit, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel() // most of it is waiting
			w := s.open(t)
			start := time.Now()
			r, err := w.Exec(t.Context(), tt.c)
			took := time.Since(start)
			wantCode(t, "the command", err, tt.want)
			limit := tt.c.Wall
			if tt.want == workspace.IdleLimit {
				limit = tt.c.Idle
			}
			if took < limit || took > limit+within {
				t.Errorf("ended after %v, limit %v", took, limit)
			}
			if e, ok := errors.AsType[*workspace.Error](err); ok && (e.Output != tt.out || !strings.Contains(e.Text, limit.String())) {
				t.Errorf("text %q, output %q, want %q; result %+v", e.Text, e.Output, tt.out, r)
			}
			// The workspace goes on.
			if r := sh(t, w, "echo again"); r.Output != "again\n" {
				t.Errorf("the next command wrote %q", r.Output)
			}
		})
	}
	t.Run("output keeps it alive", func(t *testing.T) {
		t.Parallel()
		w := s.open(t)
		c := workspace.Command{Shell: "for i in 1 2 3 4 5 6 7 8 9 0; do printf .; sleep 1.7; done", Idle: 16 * time.Second, Wall: 5 * time.Minute}
		if r, err := w.Exec(t.Context(), c); err != nil || r.Output != ".........." {
			t.Errorf("got %+v, %v", r, err)
		}
	})
}

// cancel ends commands by their context, with a child that they started.
func (s *suite) cancel(t *testing.T) {
	w := s.open(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := w.Exec(ctx, workspace.Command{Shell: "(while :; do echo x >> alive; sleep 0.1; done) & echo > begun; wait", Wall: 10 * time.Minute})
		done <- err
	}()
	s.await(t, w, "begun")
	start := time.Now()
	cancel()
	err := <-done
	if took := time.Since(start); took > within {
		t.Errorf("ended after %v", took)
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the end of the context", err)
	}
	sh(t, w, "cp alive before 2>/dev/null || : > before; sleep 1; [ -e alive ] || : > alive; cmp alive before || echo > grown")
	if _, err := w.ReadFile(t.Context(), "grown", 10); code(err) != workspace.NotFound {
		t.Errorf("a child lives on: %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	if _, err := w.Exec(ctx, workspace.Command{Shell: "echo > late"}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}

// await waits for a file, with another command.
func (s *suite) await(t *testing.T, w workspace.Workspace, file string) {
	t.Helper()
	r := sh(t, w, "i=0; while [ ! -e "+file+" ] && [ $i -lt 2400 ]; do sleep 0.1; i=$((i+1)); done; [ -e "+file+" ]")
	if r.ExitCode != 0 {
		t.Fatalf("%s never came", file)
	}
}

func (s *suite) life(t *testing.T) {
	const key = "agent/life"
	spec := s.Spec
	spec.InitialScript = "echo run >> script"
	w := s.openAs(t, key, spec)
	if err := w.WriteFile(t.Context(), "kept", []byte("data")); err != nil {
		t.Fatal(err)
	}
	w = s.openAs(t, key, spec)
	if b, err := w.ReadFile(t.Context(), "script", 100); err != nil || string(b) != "run\n" {
		t.Errorf("opened twice, the script wrote %q, %v", b, err)
	}
	list, err := s.p.List(t.Context())
	if err != nil || len(list) != 1 || list[0].Key != key || list[0].Provider != s.p.Name() || list[0].State == "" {
		t.Errorf("list %+v, %v", list, err)
	}
	other := s.openAs(t, "thread/a/b.c:1", s.Spec)
	if _, err := other.ReadFile(t.Context(), "kept", 100); code(err) != workspace.NotFound {
		t.Errorf("another workspace sees the file: %v", err)
	}
	if err := s.p.Remove(t.Context(), key, false); err != nil {
		t.Fatal(err)
	}
	w = s.openAs(t, key, spec)
	if b, err := w.ReadFile(t.Context(), "kept", 100); err != nil || string(b) != "data" {
		t.Errorf("without its data removed, it has %q, %v", b, err)
	}
	for range 2 {
		if err := s.p.Remove(t.Context(), key, true); err != nil {
			t.Fatal(err)
		}
	}
	w = s.openAs(t, key, s.Spec)
	if _, err := w.ReadFile(t.Context(), "kept", 100); code(err) != workspace.NotFound {
		t.Errorf("data is left after its removal: %v", err)
	}
	failing := s.Spec
	failing.InitialScript = "echo 'cannot prepare'; exit 3"
	for range 2 { // the half-made one is not taken for a whole one
		_, err = s.p.Open(t.Context(), "agent/failing", failing)
		if e, ok := errors.AsType[*workspace.Error](err); !ok || !strings.Contains(e.Text+e.Output, "cannot prepare") {
			t.Errorf("a failing script: %v", err)
		}
	}
	list, err = s.p.List(t.Context())
	for _, i := range list {
		if i.Key == "agent/failing" {
			t.Errorf("a half-made workspace is left: %+v, %v", i, err)
		}
	}
}

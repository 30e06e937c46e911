package schedule

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestGate(t *testing.T) {
	t.Setenv("SECRET_TOKEN", "hunter2")
	for _, c := range []struct {
		name, command string
		timeout       time.Duration
		stop          bool
		output, note  string
	}{
		{"yes", "echo; echo ' there is mail '; exit 0", time.Minute, false, "there is mail", ""},
		{"silent", "true", time.Minute, false, "", ""},
		{"no", "echo nothing; exit 1", time.Minute, true, "", ""},
		{"another no", "exit 75", time.Minute, true, "", ""},
		{"not found", "./missing", time.Minute, true, "", ""},
		{"not permitted", "./plain", time.Minute, false, "", "could not be run"},
		{"too long", "sleep 600", 50 * time.Millisecond, false, "", "did not end within 50ms"},
		{"too long, with a child", "sleep 600 & wait", 50 * time.Millisecond, false, "", "did not end within 50ms"},
		{"child left behind", "sleep 600 & echo done", time.Minute, false, "done", ""},
		{"environment", "env | grep -c -e SECRET; echo $CLAYBOT_TASK $TZ $LANG; test \"$HOME\" = \"$PWD\"", time.Minute, false, "0\nmail UTC C.UTF-8", ""},
		{"not UTF-8", "printf 'a\\377b'", time.Minute, false, "ab", ""},
		{"reads nothing", "cat", time.Minute, false, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "plain"), []byte("#!/bin/sh\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			g := Gate{Command: c.command, Timeout: c.timeout, Dir: dir, Task: "mail", Zone: time.UTC}
			v, err := g.Ask(t.Context())
			if err != nil || v.Stop != c.stop || v.Output != c.output || (c.note == "") != (v.Note == "") || !strings.Contains(v.Note, c.note) {
				t.Errorf("%+v, %v", v, err)
			}
		})
	}
}

func TestGateOutputIsCut(t *testing.T) {
	g := Gate{Command: "yes | head -c 100000", Timeout: time.Minute, Dir: t.TempDir(), Zone: time.UTC}
	v, err := g.Ask(t.Context())
	if err != nil || len(v.Output) > maxGateOutput || len(v.Output) < maxGateOutput-2 {
		t.Errorf("%d bytes, %v", len(v.Output), err)
	}
}

func TestGateEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	dir := t.TempDir()
	go func() {
		for { // until the gate runs
			if _, err := os.Stat(filepath.Join(dir, "begun")); err == nil || t.Context().Err() != nil {
				cancel(stop)
				return
			}
		}
	}()
	g := Gate{Command: "touch begun; sleep 600", Timeout: time.Minute, Dir: dir, Zone: time.UTC}
	if _, err := g.Ask(ctx); !errors.Is(err, stop) {
		t.Errorf("ask = %v, want %v", err, stop)
	}
}

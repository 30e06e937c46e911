package docker

import (
	"context"
	"testing"
	"time"

	"github.com/claybot/claybot/workspace"
)

// What a killed process has left running ends with the start of the next one, and
// its files stay.
func TestEndLeftovers(t *testing.T) {
	p := provider(t)
	w, err := p.Open(t.Context(), "agent/leftovers", workspace.Spec{Image: testImage})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WriteFile(t.Context(), "kept", []byte("x")); err != nil {
		t.Fatal(err)
	}
	run, err := w.(*Workspace).start(t.Context(), workspace.Command{Shell: "echo begun; while :; do sleep 1; done"}, false)
	if err != nil {
		t.Fatal(err)
	}
	// An engine says that it runs a moment after it was asked to start it.
	if _, err := run.stream.Reader.ReadByte(); err != nil {
		t.Fatal(err)
	}
	run.stream.Close() // as when the process that watched it is gone

	next := New(p.cfg)
	defer func() { _ = next.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if err := next.EndLeftovers(ctx); err != nil {
		t.Fatal(err)
	}
	e, err := next.connect()
	if err != nil {
		t.Fatal(err)
	}
	if next.running(ctx, e, []string{run.id}) {
		t.Error("the command runs on")
	}
	again, err := next.Open(ctx, "agent/leftovers", workspace.Spec{Image: testImage})
	if err != nil {
		t.Fatal(err)
	}
	if b, err := again.ReadFile(ctx, "kept", 10); err != nil || string(b) != "x" {
		t.Errorf("%q, %v", b, err)
	}
	if r, err := again.Exec(ctx, workspace.Command{Shell: "echo on"}); err != nil || r.Output != "on\n" {
		t.Errorf("%+v, %v", r, err)
	}
	absent := New(Config{Host: "unix:///nowhere/docker.sock"})
	if err := absent.EndLeftovers(ctx); err != nil {
		t.Errorf("without an engine: %v", err)
	}
}

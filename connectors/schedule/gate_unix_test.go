//go:build unix

package schedule

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// What a gate leaves behind is ended with it.
func TestGateLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	g := Gate{
		Command: "(touch begun; sleep 100; echo late) >pipe & while ! test -e begun; do sleep 0.01; done",
		Timeout: time.Minute, Dir: dir, Task: "a", Zone: time.UTC,
	}
	if got, err := g.Ask(t.Context()); got != (Verdict{}) || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if text, err := io.ReadAll(in); err != nil || len(text) != 0 {
		t.Errorf("it lived on and said %q, %v", text, err)
	}
}

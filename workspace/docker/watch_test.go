package docker

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claybot/claybot/workspace"
)

// notes keeps what a provider logs.
type notes struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (n *notes) Write(b []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.b.Write(b)
}

func (n *notes) text() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.b.String()
}

func noted(t *testing.T) (*Provider, *notes) {
	t.Helper()
	n := new(notes)
	return provider(t, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(n, nil)) }), n
}

// stops waits until a container does not run any more, which nobody asks it for.
func stops(t *testing.T, id string) {
	t.Helper()
	for end := time.Now().Add(endsWithin); ; { // each look is a call of the engine
		if _, runs := there(t, id); !runs {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the container still runs")
		}
	}
}

// A command that has returned leaves something behind that fills the disk: the container
// is stopped when it grows beyond its limit, and not before the limit.
func TestDiskLeftBehind(t *testing.T) {
	t.Parallel()
	p, log := noted(t)
	w := opened(t, p, "agent/left disk", workspace.Spec{Disk: 8 << 20, KeepOnTimeout: true})
	if _, err := w.measure(t.Context()); err != nil {
		t.Fatal(err)
	}
	sh(t, w, `(i=0; while [ $i -lt 5 ]; do dd if=/dev/zero of=g$i bs=1M count=1; i=$((i+1)); done; : > within) >/dev/null 2>&1 &`)
	sh(t, w, "until [ -e within ]; do sleep 0.1; done")
	sh(t, w, `(i=0; while [ $i -lt 60 ]; do dd if=/dev/zero of=f$i bs=1M count=1; sleep 0.1; i=$((i+1)); done; sleep 900) >/dev/null 2>&1 &`)
	stops(t, w.box.id)
	if r := sh(t, w, "ls within; rm -f f*; echo again"); r.Output != "within\nagain\n" {
		t.Errorf("the next command: %+v", r)
	}
	if left := leftOver(t, w.box.id); len(left) > 0 {
		t.Errorf("left over: %q", left)
	}
	if text := log.text(); strings.Count(text, "stopped a workspace for what a command left running") != 1 || !strings.Contains(text, "8 MiB") {
		t.Errorf("the log: %s", text)
	}
}

// A command whose output and input are connected is watched as well.
func TestDiskOfPipe(t *testing.T) {
	t.Parallel()
	w := opened(t, provider(t), "agent/pipe disk", workspace.Spec{Disk: 8 << 20})
	if _, err := w.measure(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := w.Pipe(t.Context(), workspace.Command{Shell: "i=0; while [ $i -lt 60 ]; do dd if=/dev/zero of=f$i bs=1M count=1; sleep 0.1; i=$((i+1)); done; sleep 900"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = c.Wait(t.Context())
	wantCode(t, "a process that fills the disk", err, workspace.DiskLimit, "8 MiB", "remove files")
}

// What ends the measuring does not escape the limit by that.
func TestMeasuringEnded(t *testing.T) {
	t.Parallel()
	p, log := noted(t)
	w := opened(t, p, "agent/blind", workspace.Spec{})
	// Measuring so many files takes longer than a look at all processes does, however busy the machine is.
	sh(t, w, `mkdir many; i=0; while [ $i -lt 20000 ]; do : > many/$i; i=$((i+1)); done`)
	sh(t, w, `setsid sh -c 'while :; do for p in /proc/[0-9]*; do read -r c <$p/comm && case $c in du|find|tail|wc) kill -9 ${p#/proc/};; esac; done; done' >/dev/null 2>&1 &`)
	stops(t, w.box.id)
	if text := log.text(); !strings.Contains(text, "could not be measured") {
		t.Errorf("the log: %s", text)
	}
	if r := sh(t, w, "echo again"); r.Output != "again\n" {
		t.Errorf("the next command: %+v", r)
	}
}

// What a command left behind has all processes: the container is stopped from outside,
// whether another command comes or not, and the next one works.
func TestProcessesUsedUp(t *testing.T) {
	t.Parallel()
	const hog = `(i=0; while [ $i -lt 200 ]; do sleep 900 & i=$((i+1)); done) >/dev/null 2>&1; true`
	t.Run("no command comes", func(t *testing.T) {
		t.Parallel()
		p, log := noted(t)
		w := opened(t, p, "agent/hog", workspace.Spec{PIDs: 64, KeepOnTimeout: true})
		sh(t, w, hog)
		stops(t, w.box.id)
		if text := log.text(); !strings.Contains(text, "stopped a workspace") || !strings.Contains(text, "of 64") {
			t.Errorf("the log: %s", text)
		}
	})
	t.Run("another command comes", func(t *testing.T) {
		t.Parallel()
		w := opened(t, provider(t), "agent/hog again", workspace.Spec{PIDs: 64, KeepOnTimeout: true})
		if err := w.WriteFile(t.Context(), "kept", []byte("x")); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			sh(t, w, hog)
			if r := sh(t, w, "cat kept; echo again"); r.Output != "xagain\n" {
				t.Errorf("the next command: %+v", r)
			}
		}
		sh(t, w, hog)
		if b, err := w.ReadFile(t.Context(), "kept", 10); err != nil || string(b) != "x" {
			t.Errorf("a file: %q, %v", b, err)
		}
	})
}

// A watch ends when nothing is left to watch, and Close stops what would have none.
func TestWatchEnds(t *testing.T) {
	t.Parallel()
	p := provider(t)
	w := opened(t, p, "agent/watched", workspace.Spec{})
	watched := func() string {
		w.slot.mu.Lock()
		defer w.slot.mu.Unlock()
		return w.slot.watched
	}
	sh(t, w, "sleep 900 >/dev/null 2>&1 &")
	if watched() != w.box.id {
		t.Error("what was left behind is not watched")
	}
	sh(t, w, "kill $(pidof sleep) 2>/dev/null; true")
	for end := time.Now().Add(endsWithin); watched() != ""; inspect(t, w.box.id) {
		if time.Now().After(end) {
			t.Fatal("an idle container is watched")
		}
	}
	next := New(p.cfg)
	again, err := next.Open(t.Context(), "agent/watched", workspace.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	sh(t, again, "sleep 900 >/dev/null 2>&1 &")
	if err := next.Close(); err != nil {
		t.Fatal(err)
	}
	if _, runs := there(t, w.box.id); runs {
		t.Error("Close leaves something running that nothing watches")
	}
}
